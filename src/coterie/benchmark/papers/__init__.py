"""What single papers show beside their main tables: ablations, sweeps, curves and maps, a module a paper; and our own.

A module has ``ROWS`` (settings that the main tables do not have), ``TABLES`` and ``FIGURES``.
"""

from __future__ import annotations

from types import ModuleType

from coterie.benchmark.papers import aecl, clusterbert, deccrl, own, sccl, uftc

PAPERS: tuple[ModuleType, ...] = (sccl, aecl, deccrl, clusterbert, uftc, own)
