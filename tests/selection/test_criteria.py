"""The table of label-free criteria: what each needs, who uses it, and that a new one is one entry."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.metrics.internal.likelihood import gaussian_likelihood, word_likelihood_gain
from coterie.metrics.internal.modularity import modularity, normalised_modularity
from coterie.metrics.internal.silhouette import cosine_silhouette
from coterie.selection import criteria, guard, k_criteria
from coterie.selection.criteria import CRITERIA, Criterion, Evidence, Labels, compute_criteria, relative_change
from coterie.selection.guard import score_candidate
from coterie.selection.neighbour_graphs import LexicalGraph, NeighbourGraphs, build_graphs

TRUTH = np.repeat(np.arange(3), 8)
TEXTS = [f"{'abc'[label]}word{i % 4} {'abc'[label]}word{(i + 1) % 4}" for i, label in enumerate(TRUTH)]


@pytest.fixture(scope="module")
def graphs() -> NeighbourGraphs:
    vectors = np.eye(3, 6)[TRUTH] + np.random.default_rng(0).normal(scale=0.3, size=(len(TRUTH), 6))
    return build_graphs(vectors, LexicalGraph.build(TEXTS), 3)


def test_each_criterion_is_its_measure_on_its_evidence(graphs: NeighbourGraphs) -> None:
    labels = np.random.default_rng(1).integers(3, size=len(TRUTH))
    assert graphs.lexical is not None
    assert compute_criteria(CRITERIA, labels, graphs) == {
        "semantic_modularity": modularity(labels, *graphs.semantic_pairs),
        "normalised_semantic_modularity": normalised_modularity(labels, *graphs.semantic_pairs),
        "lexical_modularity": modularity(labels, *graphs.lexical.pairs),
        "word_likelihood_gain": word_likelihood_gain(graphs.lexical.word_presence, labels),
        "silhouette": cosine_silhouette(graphs.units, labels),
        "gaussian_likelihood": gaussian_likelihood(graphs.points, labels),
    }


def test_true_clusters_are_better_by_every_criterion(graphs: NeighbourGraphs) -> None:
    shuffled = np.random.default_rng(2).permutation(TRUTH)
    good, bad = (compute_criteria(CRITERIA, labels, graphs) for labels in (TRUTH, shuffled))
    assert all(good[name] > bad[name] for name in CRITERIA)


def test_without_texts_the_lexical_criteria_are_unknown(graphs: NeighbourGraphs) -> None:
    found = compute_criteria(CRITERIA, TRUTH, build_graphs(graphs.units))
    unknown = {name for name, value in found.items() if np.isnan(value)}
    assert unknown == {"lexical_modularity", "word_likelihood_gain"}


def test_everything_that_is_chosen_by_is_in_the_table() -> None:
    assert {*guard.CRITERIA, *k_criteria.NAMES.values()} <= set(CRITERIA)
    assert all(each.description for each in CRITERIA.values())


def test_a_new_criterion_is_one_entry(graphs: NeighbourGraphs, monkeypatch: pytest.MonkeyPatch) -> None:
    def smallest_cluster(labels: Labels, evidence: Evidence) -> float:
        return float(np.bincount(labels).min() / len(evidence.units))

    entry = {"smallest_cluster": Criterion("the share of the smallest cluster", smallest_cluster)}
    monkeypatch.setattr(criteria, "CRITERIA", {**CRITERIA, **entry})
    monkeypatch.setattr(guard, "CRITERIA", (*guard.CRITERIA, "smallest_cluster"))
    scored = score_candidate("the topics", TRUTH, graphs)
    assert scored.criteria["smallest_cluster"] == pytest.approx(1 / 3)


def test_relative_changes_are_shares_of_the_value_before() -> None:
    assert relative_change(0.8, 0.84) == pytest.approx(0.05)
    assert relative_change(0.1, 0.15) == pytest.approx(0.1)
    assert relative_change(-0.8, -0.4) == pytest.approx(0.5)
