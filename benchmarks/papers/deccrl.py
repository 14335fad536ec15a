"""DECCRL: the ablations and curves of its paper. Its Table 4 is printed by ``coterie benchmark topics``."""

from __future__ import annotations

from functools import partial

from coterie.benchmark.matplotlib_plots import curves, maps, over_setting
from coterie.benchmark.rows import Row
from coterie.benchmark.specs import FROZEN, FigureSpec, TableSpec

SETS = ("agnews", "stackoverflow", "biomedical")
# What guides the representations of clusters: nothing, the latent vectors, topics.
STRATEGIES = ("deccrl-no-crl", "deccrl-lsr", "deccrl")
# T of the paper's sweep, without the 5 of the main row.
OTHER_TOPICS = (1, 10, 15, 20, 25, 30)
BY_TOPICS = {"deccrl": 5, **{f"deccrl-topics-{number}": number for number in OTHER_TOPICS}}

ROWS: tuple[Row, ...] = (
    Row("deccrl-no-crl", "DECCRL without CRL", "deccrl", {"variant": "none"}, published="deccrl/no_crl"),
    Row("deccrl-lsr", "DECCRL with LSR for CRL", "deccrl", {"variant": "latent"}, published="deccrl/no_crl_lsr"),
    *(
        Row(f"deccrl-topics-{number}", f"DECCRL, T = {number}", "deccrl", {"n_topics": number})
        for number in OTHER_TOPICS
    ),
)
TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "4-deccrl-3",
        "What guides DECCRL's representations",
        SETS,
        ("nmi", "accuracy"),
        # Much of Table 3 is lost in the text form of the paper; the full method is in Table 2 as well.
        (("deccrl", 3), ("deccrl", 2)),
        (FROZEN, *STRATEGIES),
        remark="CRL: topics that rebuild the texts' words from the cluster centres. LSR: the latent vectors squeezed "
        "to half their width and rebuilt. Figures of the paper that are missing here are lost in its text form.",
    ),
)
FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "deccrl-2",
        "StackOverflow by SCCL and by DECCRL: t-SNE, coloured by class",
        ("sccl", "deccrl"),
        ("stackoverflow",),
        partial(
            maps,
            picks=(
                ("sccl", "SCCL, before training", 0),
                ("sccl", "SCCL, after training", -1),
                ("deccrl", "DECCRL, before training", 0),
                ("deccrl", "DECCRL, after training", -1),
            ),
            columns=2,
        ),
        traced=True,
    ),
    FigureSpec(
        "deccrl-3",
        "Silhouette while DECCRL is trained",
        STRATEGIES,
        SETS,
        partial(curves, measures={"silhouette": "silhouette of the clusters"}),
        traced=True,
    ),
    FigureSpec(
        "deccrl-4",
        "DECCRL by its number of topics",
        tuple(BY_TOPICS),
        SETS,
        partial(over_setting, panels={"topics a cluster (T)": BY_TOPICS}, measures=("nmi", "accuracy")),
    ),
)
