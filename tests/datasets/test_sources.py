"""The public formats, each on a few lines that look like its real file."""

from __future__ import annotations

import io
import zipfile

import pytest

from coterie.datasets import sources


def test_converters() -> None:
    assert sources.label_tab_text([b"1\tcentrepoint winter\n152\twild  turkey\r\n\n"]).rows == (
        ("1", "centrepoint winter"),
        ("152", "wild turkey"),
    )
    stories = [b"earn\tone  two three four five six seven eight nine ten eleven twelve thirteen \n", b"acq\tsold\n"]
    assert sources.label_tab_first_words(stories).rows == (
        ("earn", "one two three four five six seven eight nine ten eleven twelve"),
        ("acq", "sold"),
    )
    assert sources.text_and_label_lines([b"jet lands airport \nplane  parked \n", b"0\n19\n"]).rows == (
        ("0", "jet lands airport"),
        ("19", "plane parked"),
    )
    assert sources.dbpedia_csv([b"2,Clifford Ward , a singer .\tHe sang .\n13,A novel .\n"]).rows == (
        ("Artist", "Clifford Ward , a singer . He sang ."),
        ("WrittenWork", "A novel ."),
    )
    assert sources.octis_tsv([b"fast cut protocol\ttrain\t1\nmethod web mining\tval\t3\n"]).rows == (
        ("1", "fast cut protocol"),
        ("3", "method web mining"),
    )
    files = [b"play a\n", b"PlayMusic\n", b"rate b\n", b"RateBook\n", "add c\u2028d\n".encode(), b"Add\n"]
    assert sources.intent_lines(files).rows == (
        ("PlayMusic", "play a", "train"),
        ("RateBook", "rate b", "valid"),
        ("Add", "add c d", "test"),
    )
    banking = [b'text,category\r\n"In the US,\n now.",card\r\n', b"text,category\r\nWhere?,country\r\n"]
    assert sources.banking_csv(banking).rows == (
        ("card", "In the US, now.", "train"),
        ("country", "Where?", "test"),
    )


def test_converter_of_the_question_archive() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("qc/train.txt", b"DESC:manner How did it develop ?\nLOC:city Which sister\xf0city ?\n")
        archive.writestr("qc/test.txt", b"NUM:dist How far ?\n")
    table = sources.trec_zip([stream.getvalue()])
    assert table.columns == ("label", "text", "fine", "split")
    assert table.rows == (
        ("DESC", "How did it develop ?", "DESC:manner", "train"),
        ("LOC", "Which sisterðcity ?", "LOC:city", "train"),
        ("NUM", "How far ?", "NUM:dist", "test"),
    )


def test_texts_and_labels_out_of_step_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        sources.intent_lines([b"a\nb\n", b"X\n", b"", b"", b"", b""])
    with pytest.raises(ValueError, match="longer"):
        sources.text_and_label_lines([b"a\nb\n", b"X\n"])
