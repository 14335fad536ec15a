"""What a fit of the default method says about its start and its result, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coterie.selection.joined_vectors import SMALLEST_AGREEMENT
from coterie.text.language_identification import find_language_split

if TYPE_CHECKING:
    from coterie.methods.auto.method import Coterie
    from coterie.selection.start_choice import ChosenStart


def describe_start(start: ChosenStart, settings: Coterie) -> str:
    """Return a sentence on how the start was made."""
    if settings.start == "kmeans":
        return "the start is k-means of the encoder's vectors"
    voters = sum(each.weight > 0 for each in start.candidates)
    words = (
        f"words have a share of {start.lexical_share:.0%} in the vectors that are compared"
        if start.lexical_share
        else "words are left out of the vectors, since clusters by words and by meaning differ"
    )
    if not settings.words:
        words = "words are not used"
    equal = start.sizes.weight("equal")
    sizes = "equal" if equal == 1 else "uneven" if equal == 0 else "slightly uneven"
    tail = f"; cluster sizes look {sizes}" if settings.sizes == "found" else ""
    return f"the start is the consensus of {voters} clusterings; {words}{tail}"


def find_disagreement(texts: Sequence[str], start: ChosenStart, trained_weight: float) -> str:
    """Return why the start should not be trained on: it separates languages, or the views disagree; else ``""``.

    Parameters
    ----------
    texts:
        The distinct texts.
    trained_weight:
        Weight that clusterings after training would have; 0 where the views disagree.
    """
    if languages := find_language_split(texts, start.labels):
        return f"the clusters are languages ({', '.join(languages)}), not subjects"
    if trained_weight:
        return ""
    return (
        f"clusters by meaning and by words disagree ({start.view_agreement:.2f} on a scale from 0 to 1; "
        f"{SMALLEST_AGREEMENT} is needed), so training would learn mistakes"
    )


def describe_result(trained: bool, agreement: float | None) -> str:
    """Return what a fit returns, as the end of a sentence, and why.

    Parameters
    ----------
    trained:
        Whether clusterings after training count in it.
    agreement:
        How well clusters by meaning and by words agree, from 0 to 1; ``None`` without words.
    """
    if not trained:
        return "the start is returned, with the pretrained encoder unchanged"
    returned = "the consensus of the clusterings before and after training is returned"
    if agreement is None:
        return returned
    return f"{returned}, because clusters by meaning and by words agree ({agreement:.2f} on a scale from 0 to 1)"
