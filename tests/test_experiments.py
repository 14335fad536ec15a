"""The papers' settings must be settings that the methods take, on data sets that there are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from coterie.datasets.cards import dataset_card
from coterie.methods.base import ClusteringMethod
from coterie.methods.build_method import build_method
from coterie.methods.registry import METHODS, find_method

FILES = sorted((Path(__file__).parent.parent / "experiments").glob("*/*.yaml"))
KEYS = {"method", "paper", "dataset", "n_clusters", "part", "settings", "published", "ablations", "remarks"}
SCORES = {"accuracy", "nmi", "purity"}
PUBLISHED_KEYS = {"table", "runs", "note", "nmi_average", *SCORES}
SHORT_TEXTS = {
    "agnews",
    "searchsnippets",
    "stackoverflow",
    "biomedical",
    "googlenews_ts",
    "googlenews_t",
    "googlenews_s",
    "tweet",
}
DATASETS = {
    "sccl": SHORT_TEXTS,
    "aecl": SHORT_TEXTS,
    "deccrl": {"agnews", "stackoverflow", "biomedical"},
    "clusterbert": {"stackoverflow", "biomedical", "searchsnippets", "bbc_sentences", "googlenews_t", "agnews_raw32k"},
    "uftc": {"trec6", "dbpedia14", "yelp5_balanced"},
}
# Printed with another number of clusters than the data have classes; a remark says so.
OTHER_CLUSTERS = {"clusterbert_searchsnippets": 20}

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def _experiment(name: str) -> dict[str, Any]:
    return _read(next(path for path in FILES if path.stem == name))


def _build(experiment: Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> ClusteringMethod:
    settings = {**experiment["settings"], **(changes or {})}
    nested = settings.pop("training", {})
    settings |= {f"training.{name}": value for name, value in nested.items()}
    model = build_method(experiment["method"], experiment["n_clusters"], 0, settings, {})
    model._check_settings()
    return model


def _check_scores(scores: Mapping[str, Any]) -> None:
    assert isinstance(scores["table"], int)
    assert SCORES & set(scores), "a score as printed"
    for name in SCORES & set(scores):
        assert 1 < scores[name] <= 100, "in percent"


@every_file
def test_an_experiment_can_be_built(path: Path) -> None:
    experiment = _read(path)
    assert set(experiment) <= KEYS
    _build(experiment)
    card = dataset_card(experiment["dataset"])
    assert path.stem == f"{experiment['method']}_{experiment['dataset']}"
    assert experiment["n_clusters"] == OTHER_CLUSTERS.get(path.stem, card.classes)
    assert path.parent.name == experiment["method"]
    assert experiment["paper"] == find_method(experiment["method"]).citation
    assert not card.tuning_only, "tuning sets are in no report"


@every_file
def test_published_scores_are_named_and_in_percent(path: Path) -> None:
    experiment = _read(path)
    published = experiment["published"]
    assert set(published) <= PUBLISHED_KEYS
    _check_scores(published)
    assert published.get("nmi_average", "geometric") == "geometric"
    # The paper of UFTC prints nothing but purity.
    assert (set(published) & SCORES) == ({"purity"} if experiment["method"] == "uftc" else {"accuracy", "nmi"})
    for remark in experiment.get("remarks", []):
        assert isinstance(remark, str) and remark.endswith(".")


@every_file
def test_ablations_can_be_built_and_change_something(path: Path) -> None:
    experiment = _read(path)
    full = _build(experiment).settings()
    for name, ablation in experiment.get("ablations", {}).items():
        _check_scores(ablation)
        assert _build(experiment, ablation["settings"]).settings() != full, name


def test_every_paper_has_its_data_sets() -> None:
    found: dict[str, set[str]] = {}
    for path in FILES:
        found.setdefault(path.parent.name, set()).add(_read(path)["dataset"])
    assert found == DATASETS
    assert set(found) == {info.name for info in METHODS if info.kind == "paper"}


def test_a_setting_that_a_method_lacks_is_noticed() -> None:
    from coterie.errors import SettingError

    experiment = _experiment("uftc_trec6")
    with pytest.raises(SettingError, match="no_such_setting"):
        _build(experiment, {"no_such_setting": 1})
    with pytest.raises(SettingError, match="mask_ratio"):
        _build(experiment, {"mask_ratio": 2.0})


@pytest.mark.parametrize(
    ("name", "table", "scores"),
    [
        ("sccl_agnews", 1, {"accuracy": 88.2, "nmi": 68.2}),
        ("aecl_agnews", 2, {"accuracy": 86.21, "nmi": 64.91}),
        ("aecl_biomedical", 2, {"accuracy": 45.25, "nmi": 38.87}),
        ("aecl_googlenews_ts", 2, {"accuracy": 85.45, "nmi": 93.71}),
        ("aecl_tweet", 2, {"accuracy": 80.46, "nmi": 87.60}),
        ("deccrl_agnews", 2, {"accuracy": 88.9, "nmi": 69.2}),
        ("deccrl_stackoverflow", 2, {"accuracy": 82.3, "nmi": 76.7}),
        ("deccrl_biomedical", 2, {"accuracy": 47.0, "nmi": 41.5}),
        # Its table has NMI before accuracy.
        ("clusterbert_biomedical", 2, {"accuracy": 38.2, "nmi": 43.4}),
        ("clusterbert_googlenews_t", 2, {"accuracy": 63.2, "nmi": 76.9}),
        ("clusterbert_bbc_sentences", 2, {"accuracy": 87.8, "nmi": 67.9}),
        ("uftc_trec6", 1, {"purity": 39.91}),
        ("uftc_yelp5_balanced", 1, {"purity": 33.40}),
    ],
)
def test_figures_as_printed(name: str, table: int, scores: dict[str, float]) -> None:
    published = _experiment(name)["published"]
    assert published["table"] == table
    assert {key: published[key] for key in scores} == scores


@pytest.mark.parametrize(
    ("dataset", "balance", "first", "second"),
    [
        ("agnews", 10, 10, 1),
        ("searchsnippets", 0.18, 10, 1),
        ("stackoverflow", 10, 2, 1),
        ("biomedical", 10, 2, 1),
        ("googlenews_ts", 0.09, 10, 6),
        ("googlenews_t", 0.09, 10, 6),
        ("googlenews_s", 0.09, 10, 6),
        ("tweet", 0.09, 20, 10),
    ],
)
def test_aecl_by_balance_and_size(dataset: str, balance: float, first: int, second: int) -> None:
    """Sections 4.9 and 4.10."""
    experiment = _experiment(f"aecl_{dataset}")
    settings = experiment["settings"]
    assert (settings["lambda4"], settings["stage_1"], settings["stage_2"]) == (balance, first, second)
    assert (settings["tau_instance"], settings["tau_cluster"]) == (1, 0.5)
    variants = [settings, *({**settings, **each["settings"]} for each in experiment.get("ablations", {}).values())]
    for variant in variants:
        assert variant["stage_1"] + variant["stage_2"] + variant["stage_3"] == 70 == settings["training"]["max_epochs"]


def test_biomedical_differs_where_deccrl_says_so() -> None:
    settings = {name: _experiment(f"deccrl_{name}")["settings"] for name in DATASETS["deccrl"]}
    assert {name: (each["alpha"], each["n_topics"]) for name, each in settings.items()} == {
        "agnews": (1, 5),
        "stackoverflow": (1, 5),
        "biomedical": (10, 20),
    }


def test_clusterbert_has_the_epochs_of_its_stages() -> None:
    for dataset in DATASETS["clusterbert"]:
        settings = _experiment(f"clusterbert_{dataset}")["settings"]
        clustering = settings["reclusterings"] * settings["clustering_epochs"]
        total = settings["adaptation_epochs"] + clustering + settings["hardening_epochs"]
        assert total == settings["training"]["max_epochs"]
