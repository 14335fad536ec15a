"""What a fit says about its start and its result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie import Coterie
from coterie.methods.auto.notes import describe_result, describe_start
from coterie.selection import choose_start
from coterie.selection.cluster_sizes import SizeEstimate


def test_the_result_says_why_training_counts() -> None:
    assert describe_result(False, 0.9) == "the start is returned, with the pretrained encoder unchanged"
    without_words = describe_result(True, None)
    assert without_words == "the consensus of the clusterings before and after training is returned"
    with_words = describe_result(True, 0.876)
    assert with_words.startswith(without_words) and "agree (0.88 on a scale from 0 to 1)" in with_words


def test_the_start_says_what_it_is_made_of() -> None:
    corners = np.repeat(np.eye(4), 20, axis=0) + np.random.default_rng(0).normal(scale=0.05, size=(80, 4))
    start = choose_start(None, 4, vectors=corners)
    voters = sum(each.weight > 0 for each in start.candidates)
    for agreement, words in ((None, "words are left out of the vectors"), (0.9, "words have a share of 25%")):
        for cost, sizes in ((0.0, "equal"), (0.15, "slightly uneven"), (0.3, "uneven")):
            found = replace(start, view_agreement=agreement, sizes=SizeEstimate(cost))
            note = describe_start(found, Coterie(4))
            assert f"the consensus of {voters} clusterings" in note
            assert words in note and note.endswith(f"cluster sizes look {sizes}")
    assert "sizes" not in describe_start(start, Coterie(4, sizes="free"))
    assert "words are not used" in describe_start(start, Coterie(4, words=False))
    assert describe_start(start, Coterie(4, start="kmeans")) == "the start is k-means of the encoder's vectors"
