"""Rows, tables and figures that reproduce the papers, and those of our own method; loaded by ``coterie benchmark``.

A module per paper, with ``ROWS`` (settings that the main tables do not have), ``TABLES`` and ``FIGURES``. They are not
part of the installed package: see :mod:`coterie.benchmark.paper_definitions`.
"""

from __future__ import annotations

from types import ModuleType

from . import aecl, clusterbert, deccrl, main, own, sccl, uftc

# In the order of tables and figures.
PAPERS: tuple[ModuleType, ...] = (main, sccl, aecl, deccrl, clusterbert, uftc, own)
