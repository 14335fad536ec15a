"""Judge without labels whether fine-tuning helped: the one verdict that notes, reports and the explorer show.

The rule is that of the guard (:mod:`coterie.selection.guard`), which decides whether the start or a trained partition
is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from coterie.errors import InputError
from coterie.selection.criteria import CRITERIA
from coterie.selection.guard import Candidate, score_candidate
from coterie.selection.neighbour_graphs import LexicalGraph, build_graphs

Outcome: TypeAlias = Literal["helped", "helped on balance", "did not help", "changed little", "unknown"]

# Most texts on which a partition is judged, which bounds the time of the neighbour search. A larger set is sampled.
SAMPLE_SIZE = 4_000
# Fewest distinct texts for a verdict: two texts have no neighbour to lose.
FEWEST_TEXTS = 3
# Smallest difference of a criterion (a share, or nats per word) that is worth mentioning.
NOTICEABLE = 0.005


@dataclass(frozen=True)
class CriterionChange:
    """A criterion of the partition before training and of the one after it; larger is better."""

    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """How much the criterion rose."""
        return self.after - self.before


@dataclass(frozen=True)
class TrainingVerdict:
    """Whether fine-tuning helped, judged without labels.

    Attributes
    ----------
    outcome:
        ``"helped"``: the guard's gain is positive and no criterion fell. ``"helped on balance"``: the gain is
        positive, but a criterion fell. ``"changed little"``: no gain, and no criterion changed noticeably.
        ``"did not help"``: no gain. ``"unknown"``: there was nothing to judge.
    criteria:
        The label-free criteria before and after; empty where the outcome is unknown.
    sentence:
        The outcome for people.
    """

    outcome: Outcome
    criteria: tuple[CriterionChange, ...]
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data, for JSON."""
        return {
            "outcome": self.outcome,
            "criteria": [asdict(each) for each in self.criteria],
            "sentence": self.sentence,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> TrainingVerdict:
        """Read what :meth:`to_dict` wrote."""
        if content["outcome"] not in get_args(Outcome):
            raise InputError(f"{content['outcome']!r} is not the outcome of a training verdict")
        criteria = tuple(
            CriterionChange(each["name"], float(each["before"]), float(each["after"])) for each in content["criteria"]
        )
        return cls(cast(Outcome, content["outcome"]), criteria, content["sentence"])

    @classmethod
    def unknown(cls, reason: str) -> TrainingVerdict:
        """Return the verdict where nothing can be judged, with the reason in a sentence."""
        return cls("unknown", (), reason)


def compare_candidates(start: Candidate, trained: Candidate) -> TrainingVerdict:
    """Judge a trained partition against the one before training, both scored on the same neighbour graphs."""
    criteria = tuple(
        CriterionChange(CRITERIA[name].description, float(start.criteria[name]), float(after))
        for name, after in trained.criteria.items()
        # Without lexical neighbours the lexical criteria are NaN.
        if not np.isnan(after)
    )
    outcome = _outcome(start, trained, criteria)
    return TrainingVerdict(outcome, criteria, describe_verdict(outcome, criteria))


def _outcome(start: Candidate, trained: Candidate, criteria: Sequence[CriterionChange]) -> Outcome:
    if trained.gain_over(start) > 0:
        return "helped on balance" if any(each.change < 0 for each in criteria) else "helped"
    # An unchanged partition is not a small change: the guard, or the training, found nothing better than the start.
    if not _same_partition(start.labels, trained.labels) and all(abs(each.change) < NOTICEABLE for each in criteria):
        return "changed little"
    return "did not help"


def describe_verdict(outcome: Outcome, criteria: Sequence[CriterionChange]) -> str:
    """Return the outcome as a sentence, with every criterion before and after."""
    changes = "; ".join(f"{each.name}: {each.before:.3f} before, {each.after:.3f} after" for each in criteria)
    return f"Fine-tuning {outcome} by the label-free criteria ({changes})."


def judge_training(
    texts: Sequence[str],
    frozen_vectors: NDArray[Any] | None,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    *,
    seed: int = 0,
) -> TrainingVerdict:
    """Judge without labels whether the partition after fine-tuning is better than the one before.

    Both are scored on the same graphs of nearest neighbours: by the pretrained encoder's vectors and by the words of
    the texts. Training changes neither. Of more than 4,000 distinct texts, 4,000 are sampled.

    Parameters
    ----------
    texts:
        One text per row. Only the first row of a repeated text counts.
    frozen_vectors:
        Vectors of the pretrained encoder, one row per text; ``None`` where it cannot be loaded: the outcome is then
        ``"unknown"``.
    before, after:
        Cluster of each text; rows with -1 in either are left out.
    seed:
        Seed of the sample and of the k-means behind the weight of the lexical criteria.

    Examples
    --------
    >>> import numpy as np
    >>> texts = ["late parcel", "parcel is late", "parcel late again", "my password", "new password", "password lost"]
    >>> vectors = np.repeat(np.eye(2), 3, axis=0)
    >>> judge_training(texts, vectors, np.array([0, 1, 0, 1, 0, 1]), np.array([0, 0, 0, 1, 1, 1])).outcome
    'helped'
    """
    if frozen_vectors is None:
        return TrainingVerdict.unknown(
            "Whether fine-tuning helped was not judged: the pretrained encoder could not be loaded."
        )
    if not len(texts) == len(frozen_vectors) == len(before) == len(after):
        raise InputError(
            f"{len(texts)} texts, {len(frozen_vectors)} vectors and {len(before)} and {len(after)} labels: "
            "one of each per text is needed"
        )
    first_rows: dict[str, int] = {}
    for row in np.flatnonzero((before >= 0) & (after >= 0)).tolist():
        first_rows.setdefault(texts[row], row)
    usable = np.fromiter(first_rows.values(), dtype=np.int64, count=len(first_rows))
    rows = np.sort(np.random.default_rng(seed).permutation(usable)[:SAMPLE_SIZE])
    if len(rows) < FEWEST_TEXTS:
        return TrainingVerdict.unknown("There are too few texts to judge whether fine-tuning helped.")
    lexical = LexicalGraph.build([texts[row] for row in rows.tolist()])
    graphs = build_graphs(frozen_vectors[rows], lexical, len(np.unique(before[rows])), seed=seed)
    start, trained = (
        score_candidate(name, labels[rows], graphs) for name, labels in (("before", before), ("after", after))
    )
    return compare_candidates(start, trained)


def _same_partition(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Return whether both have the same clusters, however they are numbered."""
    pairs = np.unique(np.stack([first, second]), axis=1).shape[1]
    return pairs == len(np.unique(first)) == len(np.unique(second))
