"""The main tables, whose rows are those of the package, and our own figure."""

from __future__ import annotations

from coterie.benchmark.matplotlib_plots import quality_against_cost
from coterie.benchmark.rows import Row
from coterie.benchmark.sets import EIGHT_SHORT, IMBALANCES, WRONG_K
from coterie.benchmark.specs import FINAL, FROZEN, HELD_OUT, ORACLE, TRAINED, FigureSpec, TableSpec

ROWS: tuple[Row, ...] = ()
# Printed under tables with these data sets.
ENCODER_REMARK = (
    "The encoder was trained on titles from stackoverflow.com and of scientific papers: StackOverflow and Biomedical "
    "are made of such titles."
)
TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "1",
        "All methods on the eight short-text sets",
        EIGHT_SHORT,
        ("accuracy", "nmi", "ari"),
        (("sccl", 1), ("aecl", 2), ("deccrl", 2)),
        remark=ENCODER_REMARK,
    ),
    TableSpec(
        "1-answers",
        "Trained methods by each of their answers",
        EIGHT_SHORT,
        ("accuracy", "nmi"),
        rows=(*TRAINED, "rstc"),
        answers=("head", "kmeans", ORACLE),
        remark="Table 1 has the partition that a method returns: k-means for SCCL and ClusterBERT, the head for the "
        "others. The oracle is the epoch with the best accuracy, which cannot be chosen without labels.",
    ),
    TableSpec(
        "2",
        "The sets of ClusterBERT",
        ("stackoverflow", "biomedical", "searchsnippets", "bbc_sentences", "googlenews_t", "agnews_raw32k"),
        ("accuracy", "nmi", "ari"),
        (("clusterbert", 2), ("clusterbert", 3)),
        remark=f"{ENCODER_REMARK} The paper cut SearchSnippets into 20 clusters, where there are 8 classes, and has "
        "41,700 texts of Biomedical: its figures for these two are of another task.",
    ),
    TableSpec(
        "2-split",
        "DECCRL's way: learned on four fifths, scored on the fifth held out",
        ("agnews-heldout", "stackoverflow-heldout", "biomedical-heldout", "searchsnippets-heldout"),
        ("accuracy", "nmi"),
        (("deccrl", 2),),
        (FROZEN, *TRAINED),
        (FINAL, HELD_OUT),
        "The paper does not say which part its Table 2 scores; fitted on everything: table 1.",
    ),
    TableSpec(
        "3",
        "The sets of UFTC",
        ("trec6", "dbpedia14", "yelp5_balanced"),
        ("purity", "accuracy", "nmi", "ari"),
        (("uftc", 1), ("uftc", 2)),
    ),
    TableSpec(
        "5-k",
        "The number of clusters given wrong",
        tuple(f"{name}-k{share:g}" for name in ("stackoverflow", "searchsnippets") for share in WRONG_K),
        ("nmi", "ari", "accuracy"),
        rows=(FROZEN, "frozen-ward", *TRAINED),
        remark="k0.5 is half the number of classes, k1.5 one and a half times. Accuracy matches a cluster with one "
        "class at most, so it falls with the wrong number by itself; NMI and ARI say more here.",
    ),
    TableSpec(
        "5-imbalance",
        "Classes of uneven size, made from StackOverflow",
        ("stackoverflow", *(f"stackoverflow-i{ratio}" for ratio in IMBALANCES)),
        ("accuracy", "nmi", "ari"),
        rows=(FROZEN, "frozen-ward", *TRAINED),
        remark="i20: the largest class is twenty times the smallest, sizes fall evenly on a logarithmic scale.",
    ),
)
FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "cost",
        "Quality on eight short-text sets against the cost of one of them",
        (FROZEN, "tfidf", "frozen-ward", "umap-kmeans", "dec-embedding", "idec-embedding", "rstc", "tsdae", *TRAINED),
        EIGHT_SHORT,
        quality_against_cost,
    ),
)
