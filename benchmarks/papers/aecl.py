"""AECL (Yao and Li, 2025): the ablations, sweeps and maps of its paper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from coterie.benchmark.matplotlib_plots import epoch_curves, maps, over_setting
from coterie.benchmark.rows import Row
from coterie.benchmark.sets import EIGHT_SHORT
from coterie.benchmark.specs import FigureSpec, TableSpec

MAIN = "aecl"
ABLATED = ("searchsnippets", "stackoverflow")
# The data sets of the paper's Figures 8 and 9.
STAGED = ("stackoverflow", "googlenews_ts", "tweet")
# Our choice, since the paper does not name the data sets of Figure 7: balanced, slightly and heavily imbalanced.
WEIGHTED = ("stackoverflow", "searchsnippets", "googlenews_ts")
# Epochs of all stages together. Stage 3 has those that the other two leave, so all runs are equally long.
EPOCHS = 50
# The settings that are swept, with their values in the main row.
DEFAULTS: Mapping[str, float] = MappingProxyType(
    {"lambda1": 10, "lambda2": 5, "lambda3": 0.01, "lambda4": 1, "stage_1": 5, "stage_2": 15}
)
# The paper's values, and ours where it lacks them; those of stage 2 are ours, around the paper's choice.
GRIDS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "lambda1": (0, 5, 10, 15, 20),
        "lambda2": (1, 5, 10, 15),
        "lambda3": (0.001, 0.005, 0.01, 0.1),
        "lambda4": (0.09, 0.18, 0.5, 1, 10),
        "stage_1": (2, 5, 6, 10, 15, 20),
        "stage_2": (1, 6, 10, 15, 20),
    }
)
DECADES_APART = ("lambda3", "lambda4")
SYMBOLS: Mapping[str, str] = MappingProxyType(
    {"lambda1": "λ1", "lambda2": "λ2", "lambda3": "λ3", "lambda4": "λ4", "stage_1": "E1", "stage_2": "E2"}
)
# Share of stage 1 beside which the one epoch of stage 3, which cannot be omitted, rounds to no step.
ALL_OF_IT = 100_000


def _lasting(**stages: int) -> dict[str, Any]:
    """Return the settings of stages 1 and 2, and of stage 3 for the remaining epochs."""
    first, second = (stages.get(name, int(DEFAULTS[name])) for name in ("stage_1", "stage_2"))
    return {**stages, "stage_3": EPOCHS - first - second}


def _swept(setting: str) -> dict[str, float]:
    """Return the value of each row of a sweep; that of the default is the main row."""
    names = {value: f"{MAIN}-{setting.replace('stage_', 'e')}-{value:g}" for value in GRIDS[setting]}
    return {MAIN if value == DEFAULTS[setting] else name: value for value, name in names.items()}


def _sweep(setting: str) -> tuple[Row, ...]:
    """Return a row per value, except the default."""
    return tuple(
        Row(
            name,
            f"AECL, {SYMBOLS[setting]} = {value:g}",
            "aecl",
            _lasting(**{setting: int(value)}) if setting.startswith("stage") else {setting: value},
        )
        for name, value in _swept(setting).items()
        if name != MAIN
    )


ROWS: tuple[Row, ...] = (
    Row("aecl-no-ic", "AECL without Eq. 7 (no IC)", "aecl", {"contrast": "instance"}, published="aecl/no_ic"),
    Row("aecl-no-stage-1", "AECL without stage 1", "aecl", _lasting(stage_1=0), published="aecl/no_stage_1"),
    Row("aecl-no-stage-2", "AECL without stage 2", "aecl", _lasting(stage_2=0), published="aecl/no_stage_2"),
    Row("aecl-no-pg", "AECL without pseudo-labels (no PG)", "aecl", {"lambda2": 0}, published="aecl/no_pg"),
    Row("aecl-no-rc", "AECL without L_E1 (no RC)", "aecl", {"lambda3": 0}, published="aecl/no_rc"),
    Row("aecl-plain", "AECL with plain contrast", "aecl", {"contrast": "plain"}),
    Row("aecl-ccssl", "AECL with CCSSL's contrast", "aecl", {"contrast": "confidence"}),
    Row("aecl-contrast-alone", "AECL, L_I alone", "aecl", {"stage_1": ALL_OF_IT, "stage_2": 0, "stage_3": 1}),
    *(row for setting in GRIDS for row in _sweep(setting)),
)


def _ablation(number: int, title: str, rows: tuple[str, ...], remark: str) -> TableSpec:
    measures, papers = ("accuracy", "nmi"), (("aecl", number),)
    return TableSpec(f"4-aecl-{number}", title, ABLATED, measures, papers, (MAIN, *rows), remark=remark)


TABLES: tuple[TableSpec, ...] = (
    _ablation(
        3,
        "AECL: what is gained by not separating false negatives",
        ("aecl-no-ic",),
        "No IC: other texts are never positives (Eq. 7 left out, Eq. 6 kept).",
    ),
    _ablation(
        4,
        "AECL: what its three stages are worth",
        ("aecl-no-stage-1", "aecl-no-stage-2"),
        "Without a stage the run is as long as with it: the last stage has the time.",
    ),
    _ablation(
        5,
        "AECL: what pseudo-labels are worth",
        ("aecl-no-pg", "aecl-no-rc"),
        "No PG: without L_P (Eq. 12), in both stages that have it. No RC: without the entropy of single assignments "
        "(Eq. 5); that of their mean stays.",
    ),
)


def _sweep_figure(number: int, title: str, sets: tuple[str, ...], settings: Mapping[str, str]) -> FigureSpec:
    """Return the figure of a sweep; ``settings`` has the label of the axis by the name of a setting."""
    panels = {words: _swept(setting) for setting, words in settings.items()}
    wide = [words for setting, words in settings.items() if setting in DECADES_APART]
    measures = ("accuracy",) if len(settings) > 1 else ("accuracy", "nmi")
    plot = partial(over_setting, panels=panels, measures=measures, logarithmic=wide)
    rows = dict.fromkeys(row for values in panels.values() for row in values)
    return FigureSpec(f"aecl-{number}", title, tuple(rows), sets, plot)


# A frozen encoder is not trained and has no trace: its map is that of AECL's start.
MAPS = ((MAIN, "Frozen encoder", 0), ("sccl", "SCCL", -1), ("rstc", "RSTC", -1), (MAIN, "AECL", -1))

FIGURES: tuple[FigureSpec, ...] = (
    FigureSpec(
        "aecl-4",
        "Embeddings of StackOverflow (t-SNE), coloured by class",
        ("sccl", "rstc", MAIN),
        ("stackoverflow",),
        partial(maps, picks=MAPS, columns=2),
        traced=True,
    ),
    FigureSpec(
        "aecl-5",
        "AECL: dealing with false negatives (band: deviation between seeds)",
        ("aecl-plain", "aecl-ccssl", MAIN),
        ("tweet",),
        partial(
            epoch_curves,
            measures={"cosine_same": "cosine of texts of one class", "accuracy": "ACC of k-means"},
        ),
        traced=True,
    ),
    FigureSpec(
        "aecl-6",
        "Mean cosine of two texts of different classes while AECL is trained",
        ("aecl-contrast-alone", MAIN),
        EIGHT_SHORT,
        partial(epoch_curves, measures={"cosine_other": "cosine of texts of two classes"}),
        traced=True,
    ),
    _sweep_figure(
        7,
        "AECL: weights of the loss",
        WEIGHTED,
        {
            "lambda1": "λ1 (contrast)",
            "lambda2": "λ2 (pseudo-labels)",
            "lambda3": "λ3 (entropy of assignments)",
            "lambda4": "λ4 (entropy of their mean)",
        },
    ),
    _sweep_figure(8, "AECL: length of stage 1", STAGED, {"stage_1": f"E1, of {EPOCHS} epochs"}),
    _sweep_figure(9, "AECL: length of stage 2", STAGED, {"stage_2": f"E2, of {EPOCHS} epochs"}),
)
