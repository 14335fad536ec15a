"""ClusterBERT: the clusterings, stages and maps of its paper."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coterie.benchmark.figures import FigureData
from coterie.benchmark.matplotlib_plots import COLORS, legend_below, maps, plain, style
from coterie.benchmark.partitions import ON
from coterie.benchmark.rows import ROWS as MAIN_ROWS
from coterie.benchmark.rows import Row
from coterie.benchmark.sets import find_set
from coterie.benchmark.specs import AT, MEASURE_TITLES, FigureSpec, TableSpec
from coterie.benchmark.traces import RANKING_MEASURES, at_stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIX_SETS = ("stackoverflow", "biomedical", "searchsnippets", "bbc_sentences", "googlenews_t", "agnews_raw32k")
# The paper does not name its four data sets: those of similar origin, and the one with maps.
FOUR_SETS = SIX_SETS[:4]
# In place of AskUbuntu, which the paper ranks by models of the six sets. Here one is trained on its own texts.
RETRIEVAL, RANKED_ON = "semeval2016_cqa", "SemEval 2016, trained on its own texts"
CLUSTERINGS = ("kmeans", "umap", "idec", "umap-idec")
# Our names of the stages, in the paper's order.
STAGES = ("start", "adaptation", "clustering", "hardening")
FULL, WITHOUT = "clusterbert", "clusterbert-no-reconstruction"


def _reclustered(main: str, name: str = "", published: str = "") -> Row:
    """Return a main row with all clusterings of Table 3 on its embeddings; with its name there, if another."""
    row = next(each for each in MAIN_ROWS if each.name == main)
    title = row.title.removesuffix(" + k-means")
    name, published = f"clusterbert-3-{name or main}", published or row.published
    return replace(row, name=name, title=title, published=published, reclustered=CLUSTERINGS)


TABLE_3 = (
    _reclustered("tfidf-2000", "tfidf"),
    _reclustered("sif"),
    _reclustered("frozen-kmeans", "frozen"),
    _reclustered("tsdae"),
    _reclustered("sccl"),
    _reclustered("vascl"),
    _reclustered("clusterbert"),
)
ROWS: tuple[Row, ...] = (
    *TABLE_3,
    Row(WITHOUT, "ClusterBERT without reconstruction", "clusterbert", {"reconstruction": False}),
)
TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "4-clusterbert-3",
        "Other clusterings of the same embeddings",
        SIX_SETS,
        ("accuracy", "nmi"),
        (("clusterbert", 3),),
        tuple(row.name for row in TABLE_3),
        tuple(f"{ON}{name}" for name in CLUSTERINGS),
        "IDEC and UMAP have one dimension more than there are clusters, as in the paper. Beside the frozen encoder "
        "stands the paper's RoBERTa; its TF-IDF was clustered by k-means alone. Pairs of figures that the paper prints "
        "under two sets are left out.",
    ),
    TableSpec(
        "4-clusterbert-4",
        "What other papers report, as ClusterBERT's paper gathers it",
        SIX_SETS[:3],
        ("accuracy", "nmi"),
        (("clusterbert", 4),),
        ("tfidf", "sif", "self-train", "sccl", "vascl", "clusterbert"),
        remark="The paper calls Self-Train SIF+IDEC. Its figures for TF-IDF, SIF and Self-Train are those of Hadifar "
        "et al. (2019), for SCCL and VaSCL those of their papers.",
    ),
    TableSpec(
        "4-clusterbert-5",
        "How alike texts of one class and of two are, stage by stage",
        ("bbc_sentences",),
        ("cosine_same", "cosine_other"),
        rows=(FULL,),
        answers=tuple(f"{AT}{stage}" for stage in STAGES),
        remark="Means over all pairs of 1,000 texts. The paper prints seven chosen pairs instead, with cosines before "
        "and after training: such pairs are shown by `coterie evaluate RUN --pairs --labels FILE` for a run that was "
        "fitted with --snapshots 1.",
    ),
)


def _maps_of_stages(data: FigureData, figure: Figure) -> None:
    """Plot maps of the same texts at the ends of the three stages."""
    from matplotlib.collections import PathCollection

    maps(data, figure, [(FULL, f"Stage {at}: {stage}", stage) for at, stage in enumerate(STAGES) if at])
    trace = data.trace(FULL, data.sets[0])
    scatters = [points for axes in figure.axes for points in axes.collections if isinstance(points, PathCollection)]
    if trace and scatters:
        numbers = sorted(set(trace["classes"]))
        handles, _ = scatters[0].legend_elements(num=numbers)
        names = [trace["class_names"][number] for number in numbers]
        figure.legend(handles, names, frameon=False, fontsize=8, ncols=len(names), loc="outside lower center")


def _measures_over_stages(data: FigureData, figure: Figure) -> None:
    """Plot a panel per measure, with a line per data set."""
    shown = {"nmi": "NMI", "accuracy": "ACC", "silhouette": "silhouette", "dunn": "Dunn index"}
    figure.set_size_inches(7.2, 5.2)
    grid = figure.subplots(2, 2)
    for axes, (measure, words) in zip(grid.flat, shown.items(), strict=True):
        for place, name in enumerate(data.sets):
            points = _over_stages(measure, [data.trace(FULL, name)])
            axes.plot(*points, **style(place), label=find_set(name).title)
        _label(axes, words)
    legend_below(figure, grid[0][0])


def _with_and_without_reconstruction(data: FigureData, figure: Figure) -> None:
    """Plot measures of clustering, as means over data sets, on the left, and of ranking on the right."""
    figure.set_size_inches(7.6, 4.2)
    left, right = figure.subplots(1, 2)
    # Means of both rows are over the same data sets.
    both = [name for name in data.sets if all(data.trace(row, name) for row in data.rows)]
    clustered = [name for name in both if name != RETRIEVAL]
    ranked = [name for name in both if name == RETRIEVAL]
    counted = f"mean over {len(clustered)} set{'' if len(clustered) == 1 else 's'}" if clustered else "not run"
    panels = (
        (left, ("accuracy", "nmi"), clustered, f"clustering ({counted})"),
        (right, RANKING_MEASURES, ranked, f"ranking ({RANKED_ON if ranked else 'not run'})"),
    )
    for axes, measures, sets, words in panels:
        for row, line in zip(data.rows, ("-", ":"), strict=True):
            for place, measure in enumerate(measures):
                points = _over_stages(measure, [data.trace(row, name) for name in sets])
                kind = "with" if row == FULL else "without"
                look = {**style(place), "linestyle": line, "color": COLORS[place]}
                axes.plot(*points, **look, label=f"{MEASURE_TITLES[measure]}, {kind} reconstruction")
        _label(axes, "percent")
        axes.set_title(words, fontsize=9)
        axes.legend(frameon=False, fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _over_stages(measure: str, traces: Sequence[dict[str, Any] | None]) -> tuple[list[int], list[float]]:
    """Return the mean of a measure at the end of each stage, over the traces that have it."""
    points = []
    for place, stage in enumerate(STAGES):
        moments = [at_stage(trace, stage) for trace in traces if trace is not None]
        values = [each[measure] for each in moments if each is not None and each[measure] is not None]
        if values:
            points.append((place, statistics.mean(values)))
    return [place for place, _ in points], [value for _, value in points]


def _label(axes: Axes, words: str) -> None:
    axes.set_xticks(range(len(STAGES)), [f"{at}\n{stage}" for at, stage in enumerate(STAGES)], fontsize=8)
    axes.set_xlim(-0.3, len(STAGES) - 0.7)  # the same where a stage has no value
    axes.set_ylabel(words)
    plain(axes)


def _figure(
    number: int, title: str, rows: tuple[str, ...], sets: tuple[str, ...], plot: Callable[[FigureData, Figure], None]
) -> FigureSpec:
    return FigureSpec(f"clusterbert-{number}", title, rows, sets, plot, traced=True)


FIGURES: tuple[FigureSpec, ...] = (
    _figure(1, "BBC sentences at the ends of ClusterBERT's stages", (FULL,), ("bbc_sentences",), _maps_of_stages),
    _figure(3, "ClusterBERT at the ends of its stages", (FULL,), FOUR_SETS, _measures_over_stages),
    _figure(
        4,
        "ClusterBERT with and without reconstruction",
        (FULL, WITHOUT),
        (*SIX_SETS, RETRIEVAL),
        _with_and_without_reconstruction,
    ),
)
