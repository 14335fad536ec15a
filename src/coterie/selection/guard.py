"""Score the partitions before and during training without labels, and select one of them.

The criteria use only the pretrained encoder's vectors and the words of the texts. In the trained embeddings, which
training pulled apart along the clusters, every trained partition would look good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.metrics.internal.neighbourhoods import kept_together
from coterie.metrics.internal.wording import words_told
from coterie.selection.choose_start import relative
from coterie.selection.neighbour_graphs import Seen


@dataclass(frozen=True)
class Candidate:
    """A partition and its criteria; larger is better.

    Attributes
    ----------
    name, labels:
        ``"start"``, or the round after which the partition was made.
    semantic_modularity:
        Modularity of the partition on nearest neighbours by the pretrained encoder.
    lexical_modularity:
        The same on nearest neighbours by TF-IDF; NaN where no texts share a word.
    word_gain:
        How much better the words of a text are predicted from its cluster than from all texts, in nats per word
        (:func:`~coterie.metrics.internal.wording.words_told`); NaN as above.
    lexical_weight:
        Weight of the two lexical criteria beside the semantic one, from 0 to 1
        (see :func:`~coterie.selection.neighbour_graphs.see`).
    """

    name: str
    labels: NDArray[np.int64]
    semantic_modularity: float
    lexical_modularity: float
    word_gain: float
    lexical_weight: float

    def gain_over(self, start: Candidate) -> float:
        """Return the weighted sum of the relative changes of the criteria since ``start``; positive is better.

        Training always separates some neighbours of the pretrained encoder. The lexical gains must outweigh that.
        """
        semantic = relative(start.semantic_modularity, self.semantic_modularity)
        if np.isnan(self.lexical_modularity):
            return semantic
        lexical = relative(start.lexical_modularity, self.lexical_modularity) + relative(
            start.word_gain, self.word_gain
        )
        return semantic + self.lexical_weight * lexical


def score_candidate(name: str, labels: NDArray[np.int64], graphs: Seen) -> Candidate:
    """Compute the criteria of a partition on the neighbour graphs of the texts before training."""
    lexical = word_gain = float("nan")
    if graphs.words is not None:
        lexical, word_gain = kept_together(labels, *graphs.words.akin), words_told(graphs.words.table, labels)
    semantic = kept_together(labels, *graphs.pairs)
    return Candidate(name, labels, semantic, lexical, word_gain, graphs.say_of_words)


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the largest gain over the first one, and the earliest of equals.

    So the start is kept unless training shows a gain.
    """
    return max(candidates, key=lambda each: each.gain_over(candidates[0]))
