"""Words of texts with and without spaces, and the way back."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.text.word_segmentation import has_no_spaces, split_text, split_words

TEXTS = {
    "English": "Where is my parcel, please?",
    "Korean": "택배가 어디에 있나요?",
    "Chinese": "我的包裹，在Berlin吗？",
    "Japanese": "私は「東京」に住んでいます。コンピュータが好きだ",
    "Thai": "ภาษาไทยเป็นภาษาที่มีระดับเสียง",
    "Lao": "ຂ້ອຍຮັກປະເທດລາວ",
    "Khmer": "ខ្ញុំស្រលាញ់ប្រទេសកម្ពុជា",
    "Burmese": "မြန်မာနိုင်ငံသည် အရှေ့တောင်အာရှ",
}
# Letters, marks, brackets and white space of many scripts, so that odd neighbours meet.
ALPHABET = "ab1 \t\n.,!?()「」，。（_-'ñ́你我他々のはっきゃーアンカภษาไเ็้ำๆກາຮັខ្ញុំမန််ာ한글éÄ😀👩‍💻"
texts = st.text(alphabet=ALPHABET, max_size=30)


@given(texts)
@settings(max_examples=300, deadline=None)
def test_nothing_is_lost(text: str) -> None:
    split = split_text(text)
    assert split.replace_words(split.words) == text
    assert len(split.gaps) == len(split.words) + 1
    assert all(gap == "" or gap.isspace() for gap in split.gaps)
    assert all(word and not any(character.isspace() for character in word) for word in split.words)
    assert "".join(split.words) == "".join(text.split())
    assert split_words(text) == list(split.words)


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_comes_back(text: str) -> None:
    split = split_text(text)
    assert split.replace_words(split.words) == text


@given(st.text(alphabet="abc ?!\t\n'é", max_size=40))
def test_white_space_separates_words(text: str) -> None:
    assert split_words(text) == text.split()


@given(texts)
@settings(max_examples=200, deadline=None)
def test_no_mark_is_parted_from_its_base(text: str) -> None:
    for chunk in text.split():
        for word in split_words(chunk)[1:]:
            assert unicodedata.category(word[0]) not in {"Mn", "Mc", "Me"}, (chunk, split_words(chunk))


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("English", ["Where", "is", "my", "parcel,", "please?"]),
        ("Korean", ["택배가", "어디에", "있나요?"]),
        ("Chinese", ["我", "的", "包", "裹，", "在", "Berlin", "吗？"]),
        (
            "Japanese",
            ["私", "は", "「東", "京」", "に", "住", "んでい", "ます。", "コンピュータ", "が", "好", "きだ"],
        ),
        ("Burmese", ["မြန်", "မာ", "နိုင်", "ငံ", "သည်", "အ", "ရှေ့", "တောင်", "အာ", "ရှ"]),
    ],
)
def test_words(language: str, expected: list[str]) -> None:
    assert split_words(TEXTS[language]) == expected


@pytest.mark.parametrize("language", ["Chinese", "Japanese", "Thai", "Lao", "Khmer", "Burmese"])
def test_a_text_without_spaces_is_not_one_word(language: str) -> None:
    words = split_words(TEXTS[language])
    assert len(words) >= 4
    assert max(map(len, words)) <= 8


def test_thai_keeps_vowels_and_tones_with_their_consonant() -> None:
    assert split_words("ภาษาไทยเป็น") == ["ภา", "ษา", "ไทย", "เป็น"]
    assert split_words("ที่นี่") == ["ที่", "นี่"]
    assert split_words("ปี ๒๕๖๗") == ["ปี", "๒๕๖๗"]


def test_keeping_some_words() -> None:
    assert split_text("one  two\tthree").keep_words([0, 2]) == "one three"
    assert split_text(" one  two ").keep_words([1]) == "two"
    assert split_text("我的包裹在哪里").keep_words([0, 2, 3]) == "我包裹"
    assert split_text("你好 世界").keep_words([0, 3]) == "你 界"  # there was a space in between
    assert split_text("abc中def").keep_words([0, 2]) == "abc def"  # not one word of two
    assert split_text("one two").keep_words([]) == ""


def test_putting_words_in() -> None:
    assert split_text("one two").insert_words([(0, "new")]) == "new one two"
    assert split_text("one  two").insert_words([(1, "new"), (1, "er")]) == "one new er two"
    assert split_text("one  two three").insert_words([(3, "new")]) == "one  two three new"
    assert split_text(" one ").insert_words([(1, "new")]) == " one new "
    assert split_text("你好").insert_words([(1, "们")]) == "你们好"
    assert split_text("用Java写").insert_words([(1, "coffee")]) == "用coffee Java写"


def test_putting_words_in_the_place_of_others() -> None:
    assert split_text("one  two\n").replace_words(["1", "2"]) == "1  2\n"
    assert split_text("abc中def").replace_words(["中", "abc", "def"]) == "中abc def"
    with pytest.raises(ValueError):
        split_text("one two").replace_words(["one"])


def test_scripts_with_and_without_spaces() -> None:
    assert not any(map(has_no_spaces, ["parcel", "посылка", "طرد", "पार्सल", "택배", "1", "?", "😀", ""]))
    assert all(map(has_no_spaces, ["包", "は", "カ", "ｶ", "ไทย", "ລາວ", "ខ្មែរ", "မြန်", "abc中"]))
