"""SCCL (Zhang et al., 2021): the augmentations, ablations and curves of its paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coterie.benchmark.augmentation_cosines import BINS
from coterie.benchmark.figures import FigureData
from coterie.benchmark.matplotlib_plots import COLORS, bars, curves, legend_below, maps, over_shared_setting
from coterie.benchmark.rows import Row
from coterie.benchmark.sets import EIGHT_SHORT, find_set
from coterie.benchmark.specs import FROZEN, FigureSpec, TableSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Shares of a text's words that are changed (A.2). The paper prints the best of the three, chosen by labels.
STRENGTHS = (0.1, 0.2, 0.3)
NO_WEIGHTS = "no weights"
# One model per augmented view (section 4.3.1).
MODELS = ("bert-base-uncased", "roberta-base")
CONTEXTUAL = " | ".join(f"contextual(model={model})" for model in MODELS)
CONTEXTUAL_SWAP = " | ".join(f"contextual(model={model})+char_swap" for model in MODELS)


def _row_of(name: str, strength: float) -> str:
    return f"sccl-{name}-{100 * strength:.0f}"


def _strengths(
    name: str, title: str, augmentation: str, published: str = "", missing: str = "", but: float | None = None
) -> tuple[Row, ...]:
    """Return a row per strength, except that of the main row; in a composition, every augmenter has that strength."""
    return tuple(
        Row(
            _row_of(name, strength),
            f"SCCL, {title}, {strength:.0%}".replace("%", " %"),
            "sccl",
            {"augmentation": augmentation, "augmentation_ratio": strength},
            published=published,
            missing=missing,
        )
        for strength in STRENGTHS
        if strength != but
    )


def _by_strength(name: str, but: float | None = None) -> dict[str, float]:
    """Return the strength by row; the main row where it is its strength."""
    return {"sccl" if strength == but else _row_of(name, strength): strength for strength in STRENGTHS}


# The strength of the main row, which all contrastive methods share.
MAIN_STRENGTH = 0.2
WORDNET = _strengths("wordnet", "WordNet", "synonyms", "sccl/wordnet")
PARAPHRASES = tuple(
    Row(
        f"sccl-back-translation-{strength}",
        f"SCCL, back-translation, {words}",
        "sccl",
        {"augmentation": f"back_translation(strength={strength})"},
        published="sccl/back_translation",
        missing=NO_WEIGHTS,
    )
    for strength, words in (("low", "nearest pair"), ("middle", "middle pair"), ("high", "farthest pair"))
)
MASKED = _strengths("contextual", "contextual", CONTEXTUAL, "sccl", NO_WEIGHTS)
DELETION = _strengths("deletion", "word deletion", "word_deletion", but=MAIN_STRENGTH)
ABLATION = (
    Row("sccl-instance", "SCCL, Instance-CL alone", "sccl", {"variant": "instance"}),
    Row("sccl-clustering", "SCCL, clustering alone", "sccl", {"variant": "cluster"}),
    Row("sccl-sequential", "SCCL-Seq", "sccl", {"variant": "sequential"}),
)
ROWS: tuple[Row, ...] = (
    *WORDNET,
    *PARAPHRASES,
    *MASKED,
    *DELETION,
    *ABLATION,
    *_strengths("wordnet-swap", "WordNet, then char swap", "synonyms+char_swap"),
    *_strengths("deletion-swap", "word deletion, then char swap", "word_deletion+char_swap"),
    *_strengths("contextual-swap", "contextual, then char swap", CONTEXTUAL_SWAP, missing=NO_WEIGHTS),
)

TABLES: tuple[TableSpec, ...] = (
    TableSpec(
        "4-sccl-3",
        "SCCL with other augmentations, every strength",
        EIGHT_SHORT,
        ("accuracy", "nmi"),
        (("sccl", 3),),
        (
            FROZEN,
            *(row.name for row in (*WORDNET, *PARAPHRASES, *MASKED)),
            *_by_strength("deletion", MAIN_STRENGTH),
        ),
        remark="SCCL alone is the row of the other tables: word deletion, 20 %; what the paper prints beside it is of "
        "the contextual augmenter. The paper prints the best of three strengths, chosen by labels, so the same "
        "figure is printed beside each of the three here. Of ten back-translations the nearest pair is that of the "
        "highest BLEU. Word deletion is not in the paper.",
    ),
)

# Figure 5: compositions of augmenters, and their rows.
COMPOSITIONS = {
    "WordNet": _by_strength("wordnet"),
    "WordNet, then char swap": _by_strength("wordnet-swap"),
    "word deletion": _by_strength("deletion", MAIN_STRENGTH),
    "word deletion, then char swap": _by_strength("deletion-swap"),
    "contextual": _by_strength("contextual"),
    "contextual, then char swap": _by_strength("contextual-swap"),
}
COSINE_ROWS = {
    "sccl-wordnet-20": "WordNet",
    "sccl-wordnet-swap-20": "WordNet, then char swap",
    "sccl": "word deletion",
    "sccl-deletion-swap-20": "word deletion, then char swap",
}
ABLATED = (*(row.name for row in ABLATION), "sccl")


def _ablation(data: FigureData, figure: Figure) -> None:
    bars(data, figure, ("accuracy", "nmi"))


def _maps(data: FigureData, figure: Figure) -> None:
    picks = (
        ("sccl", "frozen encoder", 0),
        ("sccl-instance", "Instance-CL alone", -1),
        ("sccl-clustering", "clustering alone", -1),
        ("sccl", "SCCL", -1),
    )
    maps(data, figure, picks, columns=2)


def _distances(data: FigureData, figure: Figure) -> None:
    """Plot distances of the true classes and, dashed, of the clusters."""
    words = {"within": "distance to own centre", "between": "distance to closest other"}
    curves(data, figure, words, dashed={"within": "within_clusters", "between": "between_clusters"})
    figure.set_size_inches(6.4, 5.4)


def _composition(data: FigureData, figure: Figure) -> None:
    over_shared_setting(data, figure, "share of the words changed", COMPOSITIONS)


def _cosines(data: FigureData, figure: Figure) -> None:
    """Plot the share of texts by the cosine to their first augmented view, before training, per data set and row."""
    figure.set_size_inches(1 + 3.2 * len(data.sets), 3.2)
    panels = figure.subplots(1, len(data.sets), squeeze=False, sharey=True)[0]
    edges = [2 * place / BINS - 1 for place in range(BINS + 1)]
    for axes, name in zip(panels, data.sets, strict=True):
        for place, (row, words) in enumerate(COSINE_ROWS.items()):
            found = [run["augmented_cosines"] for run in data.runs(row, name) if run.get("augmented_cosines")]
            if found:
                shares = [count / sum(found[0]) for count in found[0]]
                axes.stairs(shares, edges, color=COLORS[place], label=words)
        axes.set_title(find_set(name).title, fontsize=9)
        axes.set_xlabel("cosine to the original")
        axes.set_xlim(0, 1)
    panels[0].set_ylabel("share of the texts")
    legend_below(figure, panels[0])


FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "sccl-1",
        "SearchSnippets before and after training, coloured by true class",
        ("sccl", "sccl-instance", "sccl-clustering"),
        ("searchsnippets",),
        _maps,
        traced=True,
    ),
    FigureSpec(
        "sccl-3",
        "SCCL and its parts, without Biomedical",
        ABLATED,
        tuple(name for name in EIGHT_SHORT if name != "biomedical"),
        _ablation,
    ),
    FigureSpec(
        "sccl-4",
        "Distances while training (solid: true classes, dashed: clusters found)",
        ("sccl-instance", "sccl-clustering", "sccl"),
        ("searchsnippets",),
        _distances,
        traced=True,
    ),
    FigureSpec(
        "sccl-5",
        "SCCL with one augmentation, and with two in a row",
        tuple(row for rows in COMPOSITIONS.values() for row in rows),
        ("googlenews_ts", "stackoverflow"),
        _composition,
    ),
    FigureSpec(
        "sccl-5-cosines",
        "How near augmented texts lie to their originals before training (20 % of the words)",
        tuple(COSINE_ROWS),
        ("googlenews_ts", "stackoverflow"),
        _cosines,
    ),
    FigureSpec("sccl-6", "SCCL and its parts", ABLATED, EIGHT_SHORT, _ablation),
)
