"""BagOfWords and TfIdf: the vectors worked out by hand, and texts without words."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import BagOfWords, TfIdf
from coterie.errors import InputError

TEXTS = ["late parcel", "parcel is late", "new password", "password code", "late parcel"]


def test_bag_of_words_counts() -> None:
    model = BagOfWords(2).fit(TEXTS)
    # In the alphabet's order: code is late new parcel password; unknown words and single letters count for nothing.
    vectors = model.transform(["late LATE parcel", "a code, b code; c-code", "nothing known", ""]).toarray()
    np.testing.assert_array_equal(vectors, [[0, 0, 2, 0, 1, 0], [3, 0, 0, 0, 0, 0], [0] * 6, [0] * 6])


def test_tfidf_by_hand() -> None:
    model = TfIdf(2).fit(TEXTS)
    # Smoothed idf is log((1 + n) / (1 + df)) + 1 over the five rows, duplicates counted: late 3, parcel 3, new 1.
    late, new = np.log(6 / 4) + 1, np.log(6 / 2) + 1
    length = np.hypot(late, new)
    vectors = model.transform(["late new", "zzz"]).toarray()
    np.testing.assert_allclose(vectors, [[0, 0, late / length, new / length, 0, 0], [0] * 6], atol=1e-12)


@pytest.mark.parametrize("method", [BagOfWords, TfIdf])
def test_the_most_frequent_words_are_kept_counting_duplicates(method: type[BagOfWords] | type[TfIdf]) -> None:
    texts = ["rare words here", "other words there", *["common phrase"] * 5]
    model = method(2, max_features=2).fit(texts)
    assert set(model.words_.vocabulary) == {"common", "phrase"}
    assert any("hold none of the 2 words" in note and note.startswith("2 ") for note in model.notes_)


@pytest.mark.parametrize("method", [BagOfWords, TfIdf])
def test_stop_words_can_be_left_out(method: type[BagOfWords] | type[TfIdf]) -> None:
    assert "is" in method(2).fit(TEXTS).words_.vocabulary
    assert "is" not in method(2, stop_words="english").fit(TEXTS).words_.vocabulary


@pytest.mark.parametrize("method", [BagOfWords, TfIdf])
def test_texts_without_words_are_refused(method: type[BagOfWords] | type[TfIdf]) -> None:
    with pytest.raises(InputError, match="no words to count.*encoder"):
        method(2).fit(["?", "!", "a b c"])
    with pytest.raises(InputError, match="stop words are left out"):
        method(2, stop_words="english").fit(["it is", "they were", "not you"])


@pytest.mark.parametrize("clusterer", ["kmeans", "spherical", "ward", "average"])
@pytest.mark.parametrize("method", [BagOfWords, TfIdf])
def test_a_row_of_zeros_gets_one_cluster_for_good(method: type[BagOfWords] | type[TfIdf], clusterer: str) -> None:
    """A text without known words is equally far from everything of unit length: alone and in fit alike."""
    for n in range(1, 6):
        texts = ["?", *["aa aa"] * n, *["bb"] * 3, *["cc cc cc"] * 2]
        model = method(2, clusterer=clusterer).fit(texts)
        if clusterer in ("kmeans", "spherical"):
            np.testing.assert_array_equal(model.predict(texts), model.labels_)
        else:
            assert model.predict_agreement_ == pytest.approx((model.predict(texts) == model.labels_).mean())
        assert model.predict(["!"])[0] == model.predict(["?", "aa", "bb"])[0]


def test_a_text_without_known_words_is_sure_of_nothing() -> None:
    from coterie import TfIdf, describe_clusters

    texts = ["late parcel", "parcel late again", "lost parcel late", "password reset", "reset my password", "? !"]
    model = TfIdf(2).fit(texts)
    assert model.confidence_[-1] == 0 and (model.confidence_[:-1] > 0).all()
    assert model.assign(["zzz qqq"]).confidence.tolist() == [0]
    summaries = describe_clusters(texts, model.labels_, center_distance=model.center_distance_, n_representatives=1)
    assert all(summary.representatives != ("? !",) for summary in summaries)
