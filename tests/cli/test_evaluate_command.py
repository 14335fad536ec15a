"""``coterie evaluate``: assignments against known labels."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import (
    column,
    coterie,
    done,
    read_rows,
    refusal,
    refusal_line,
    tree,
    write_csv,
    write_jsonl,
    write_parquet,
)
from conftest import topic_texts

from coterie.methods.persistence import load
from coterie.metrics.external.pairs import KINDS
from coterie.metrics.external.run_evaluation import attention_of_model, read_snapshots
from coterie.metrics.external.scores import evaluate

TEXTS, TOPICS = topic_texts(30)
# Mostly the topics, with mistakes and two rows in no cluster.
NUMBER = {"parcel": 0, "password": 1, "refund": 2}
CLUSTERS = [NUMBER[topic] if i % 7 else (NUMBER[topic] + 1) % 3 for i, topic in enumerate(TOPICS)]
CLUSTERS[4] = CLUSTERS[20] = -1
IDS = [f"t{i}" for i in range(30)]


@pytest.fixture
def assignments(tmp_path: Path) -> Path:
    columns = {
        "row": list(range(1, 31)),
        "id": IDS,
        "cluster": CLUSTERS,
        "confidence": ["0.5000"] * 30,
        "status": ["assigned"] * 30,
        "text": TEXTS,
    }
    return write_csv(tmp_path / "assignments.csv", columns)


def scores(*arguments: object) -> dict[str, float]:
    outcome = done("evaluate", *arguments, "--json")
    assert outcome.err == ""
    content: dict[str, float] = json.loads(outcome.out)
    return content


def expected(labels: Sequence[object]) -> dict[str, float]:
    return evaluate(labels, CLUSTERS).to_dict()  # type: ignore[arg-type]


def test_json_holds_what_the_library_computes(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": TOPICS})
    found = scores(assignments, "--labels", labels)
    assert found == expected(TOPICS)
    assert 0.7 < found["accuracy"] < 0.95
    assert (found["n_rows"], found["n_unassigned"], found["n_without_label"], found["n_clusters"]) == (30, 2, 0, 3)


def test_the_table_shows_the_same_in_percent(assignments: Path, tmp_path: Path) -> None:
    blanks = [*TOPICS[:-3], "", "", ""]
    labels = write_csv(tmp_path / "gold.csv", {"topic": blanks})
    outcome = done("evaluate", assignments, "--labels", labels, "--label-column", "topic")
    wanted = expected(blanks)
    for name, key in (
        ("accuracy (best one-to-one match)", "accuracy"),
        ("normalised mutual information", "nmi"),
        ("with the geometric mean", "nmi_geometric"),
        ("adjusted Rand index", "ari"),
        ("purity", "purity"),
    ):
        assert f"{name} {100 * wanted[key]:.1f}" in outcome.words
    assert "rows scored 27" in outcome.words
    assert "in no cluster 2" in outcome.words
    assert "rows without a label, left out 3" in outcome.words
    assert "clusters with texts 3" in outcome.words
    assert "labels 3" in outcome.words
    assert "Accuracy matches" not in outcome.out  # there is a label for every cluster
    inside = [place for place, cluster in enumerate(CLUSTERS) if cluster >= 0]
    alone = evaluate([blanks[place] for place in inside], [CLUSTERS[place] for place in inside])
    assert f"of the rows in a cluster: accuracy {100 * alone.accuracy:.1f}" in outcome.words
    assert f"of the rows in a cluster: purity {100 * alone.purity:.1f}" in outcome.words


def test_clusters_without_a_label_of_their_own_are_mentioned(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("cluster\n0\n0\n1\n2\n3\n")
    (tmp_path / "l.csv").write_text("label\nx\nx\nx\ny\ny\n")
    outcome = done("evaluate", tmp_path / "a.csv", "--labels", tmp_path / "l.csv")
    assert "labels 2" in outcome.words
    assert "2 of 4 clusters have none and count as wrong" in outcome.words
    assert "of the rows in a cluster" not in outcome.words


def test_rows_are_matched_by_id(assignments: Path, tmp_path: Path) -> None:
    order = list(range(30))
    random.Random(0).shuffle(order)
    # More labels than rows are no mistake when they are matched by id.
    columns = {"key": [IDS[i] for i in order] + ["extra"], "label": [TOPICS[i] for i in order] + ["parcel"]}
    labels = write_csv(tmp_path / "gold.csv", columns)
    assert scores(assignments, "--labels", labels, "--id-column", "key") == expected(TOPICS)
    same_length = write_csv(tmp_path / "rows.csv", {name: values[:30] for name, values in columns.items()})
    assert scores(assignments, "--labels", same_length) == expected([TOPICS[i] for i in order])


def test_numbers_serve_as_labels_and_ids(assignments: Path, tmp_path: Path) -> None:
    numbers = [NUMBER[topic] + 10 for topic in TOPICS]
    columns = {"label": numbers, "key": IDS}
    for labels in (write_jsonl(tmp_path / "gold.jsonl", columns), write_parquet(tmp_path / "gold.parquet", columns)):
        assert scores(assignments, "--labels", labels) == expected(numbers)
        assert scores(assignments, "--labels", labels, "--id-column", "key") == expected(numbers)
    ours = write_csv(tmp_path / "ours.csv", {"id": list(range(30)), "cluster": CLUSTERS})
    theirs = write_parquet(tmp_path / "theirs.parquet", {"n": list(range(29, -1, -1)), "label": numbers[::-1]})
    assert scores(ours, "--labels", theirs, "--id-column", "n") == expected(numbers)


@pytest.mark.parametrize("write", [write_csv, write_jsonl, write_parquet])
def test_rows_without_a_label_are_left_out_and_counted(write: object, assignments: Path, tmp_path: Path) -> None:
    ending = {write_csv: "csv", write_jsonl: "jsonl", write_parquet: "parquet"}[write]  # type: ignore[index]
    blank = "" if ending == "csv" else None
    blanks = [blank if i in (0, 4, 9) else topic for i, topic in enumerate(TOPICS)]
    labels = write(tmp_path / f"gold.{ending}", {"label": blanks})  # type: ignore[operator]
    found = scores(assignments, "--labels", labels)
    assert found == expected(blanks)
    assert (found["n_rows"], found["n_without_label"], found["n_unassigned"]) == (27, 3, 1)


def test_a_run_is_scored_from_its_own_files(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"text": TEXTS, "key": IDS, "subject": TOPICS})
    done("fit", path, "-k", 3, "-m", "tfidf", "-q", "--id-column", "key", "-o", tmp_path / "run")
    done("predict", tmp_path / "run", path, "-q", "--id-column", "key", "-o", tmp_path / "out.csv")
    options = ("--labels", path, "--label-column", "subject")
    by_row = scores(tmp_path / "run" / "assignments.csv", *options)
    assert by_row["n_rows"] == 30
    assert not math.isnan(by_row["ari"])
    for file in (tmp_path / "run" / "assignments.csv", tmp_path / "out.csv"):
        assert scores(file, *options, "--id-column", "key") == by_row


def test_different_lengths_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": TOPICS[:29]})
    message = refusal("evaluate", assignments, "--labels", labels)
    assert "29" in message and "30" in message and "--id-column" in message


def test_missing_columns_are_named(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"topic": TOPICS, "key": IDS})
    message = refusal("evaluate", assignments, "--labels", labels)
    assert str(labels) in message and "'label'" in message and "'topic', 'key'" in message
    message = refusal("evaluate", assignments, "--labels", labels, "--label-column", "topic", "--id-column", "idd")
    assert "'idd'" in message
    message = refusal("evaluate", labels, "--labels", labels, "--label-column", "topic")
    assert "'cluster'" in message
    no_ids = write_csv(tmp_path / "no-ids.csv", {"cluster": CLUSTERS})
    message = refusal("evaluate", no_ids, "--labels", labels, "--label-column", "topic", "--id-column", "key")
    assert str(no_ids) in message and "'id'" in message


def test_rows_whose_id_has_no_label_are_left_out_and_counted(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": TOPICS[2:], "key": IDS[2:]})
    scores = json.loads(done("evaluate", assignments, "--labels", labels, "--id-column", "key", "--json").out)
    assert scores["n_without_label"] == 2
    assert scores["n_rows"] == len(TOPICS) - 2


def test_ids_of_another_file_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": TOPICS, "key": [f"other-{i}" for i in range(len(TOPICS))]})
    assert "'key'" in refusal("evaluate", assignments, "--labels", labels, "--id-column", "key")


def test_a_run_folder_stands_for_its_assignments(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": TOPICS})
    run = tmp_path / "as-run"
    run.mkdir()
    (run / "assignments.csv").write_bytes(assignments.read_bytes())
    assert done("evaluate", run, "--labels", labels).out == done("evaluate", assignments, "--labels", labels).out


def test_two_labels_for_one_id_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": [*TOPICS, "other"], "key": [*IDS, "t3"]})
    outcome = coterie("evaluate", assignments, "--labels", labels, "--id-column", "key")
    assert str(labels) in refusal_line(outcome) and "'key'" in refusal_line(outcome)


def test_bad_values_are_refused(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": TOPICS})
    words = write_csv(tmp_path / "words.csv", {"cluster": TOPICS})
    assert "whole numbers" in refusal("evaluate", words, "--labels", labels)
    lists = write_jsonl(tmp_path / "lists.jsonl", {"label": [[topic] for topic in TOPICS]})
    assert "list" in refusal("evaluate", assignments, "--labels", lists)
    blank = write_csv(tmp_path / "blank.csv", {"label": [""] * 30})
    assert "none of the 30 rows has a true label" in refusal("evaluate", assignments, "--labels", blank)


def test_missing_files_are_refused_and_nothing_is_written(assignments: Path, tmp_path: Path) -> None:
    labels = write_csv(tmp_path / "gold.csv", {"label": TOPICS})
    before = tree(tmp_path)
    assert "no such file" in refusal("evaluate", tmp_path / "none.csv", "--labels", labels)
    assert "no such file" in refusal("evaluate", assignments, "--labels", tmp_path / "none.csv")
    done("evaluate", assignments, "--labels", labels)
    assert tree(tmp_path) == before


# --- what a run kept: snapshots, pairs, attention ---


@pytest.fixture(scope="module")
def aecl_run(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Path) -> Path:
    """A run of AECL with snapshots; its second row is empty, its last repeats the first text under another label."""
    folder = tmp_path_factory.mktemp("aecl")
    texts, labels = [TEXTS[0], "", *TEXTS[1:], TEXTS[0]], [TOPICS[0], "", *TOPICS[1:], "other"]
    path = write_csv(folder / "in.csv", {"text": texts, "key": list(range(32)), "topic": labels})
    settings = ["stage_1=1", "stage_2=1", "stage_3=1", "augmentation=word_deletion"]
    settings += ["training.batch_size=8", "training.max_epochs=3"]
    options = [part for setting in settings for part in ("--set", setting)]
    options += ["-m", "aecl", "--encoder", str(tiny_encoder), "-q", "--snapshots", "1", "--text-column", "text"]
    done("fit", path, "-k", 3, "-o", folder / "run", *options, "--id-column", "key")
    return folder


def topics(folder: Path) -> tuple[object, ...]:
    return ("--labels", folder / "in.csv", "--label-column", "topic")


def test_snapshots_need_no_labels(aecl_run: Path) -> None:
    table = done("evaluate", aecl_run / "run", "--snapshots").words
    assert "silhouette Dunn intra inter" in table and "ACC" not in table
    labelled = json.loads(done("evaluate", aecl_run / "run", "--snapshots", *topics(aecl_run), "--json").out)
    plain = json.loads(done("evaluate", aecl_run / "run", "--snapshots", "--json").out)
    assert [set(one) - set(two) for one, two in zip(labelled, plain, strict=True)] == [{"accuracy", "nmi", "ari"}] * 4


def test_pairs_as_json_hold_rows_texts_labels_and_similarities(aecl_run: Path) -> None:
    run = aecl_run / "run"
    content = json.loads(done("evaluate", run, "--pairs", *topics(aecl_run), "--json").out)
    assert [each["stage"] for each in content["snapshots"]] == ["start", "stage_1", "stage_2", "stage_3"]
    pairs = content["pairs"]
    assert {pair["kind"] for pair in pairs} <= set(KINDS) - {"rise", "fall"}
    assert [pair["kind"] for pair in pairs].count("same_close") == 10
    rows = read_rows(run / "assignments.csv")
    truth = column(aecl_run / "in.csv", "topic")
    snapshots, _ = read_snapshots(run)
    texts = [text for text in dict.fromkeys(row["text"] for row in rows) if text]
    for pair in pairs:
        both = (pair["first"], pair["second"])
        for each in both:
            assert rows[each["row"] - 1]["text"] == each["text"]
            assert truth[each["row"] - 1] == each["label"] != "other"
        assert (both[0]["label"] == both[1]["label"]) == pair["kind"].startswith("same")
        vectors = [snapshots[-1].embeddings[texts.index(each["text"])] for each in both]
        cosine = vectors[0] @ vectors[1] / math.sqrt((vectors[0] @ vectors[0]) * (vectors[1] @ vectors[1]))
        assert pair["similarities"][-1] == pytest.approx(cosine, abs=1e-5)
        assert len(pair["similarities"]) == 4


def test_pairs_are_shown_with_their_texts(aecl_run: Path) -> None:
    run = aecl_run / "run"
    labelled = done("evaluate", run, "--pairs", *topics(aecl_run))
    pairs = json.loads(done("evaluate", run, "--pairs", *topics(aecl_run), "--json").out)["pairs"]
    assert pairs
    for pair in pairs:
        assert KINDS[pair["kind"]] in labelled.words
        assert pair["first"]["text"] in labelled.out and pair["second"]["text"] in labelled.out
        assert f"{pair['similarities'][0]:.3f} {pair['similarities'][-1]:.3f}" in labelled.words
    plain = done("evaluate", run, "--pairs")
    assert "same label" not in plain.words and "label" not in plain.words
    kinds = {pair["kind"] for pair in json.loads(done("evaluate", run, "--pairs", "--json").out)["pairs"]}
    assert kinds and kinds <= {"rise", "fall"}
    assert all(KINDS[kind] in plain.words for kind in kinds)


def test_attention_of_a_saved_run(aecl_run: Path) -> None:
    run = aecl_run / "run"
    found = json.loads(done("evaluate", run, "--attention", *topics(aecl_run), "--json").out)
    rows, truth = read_rows(run / "assignments.csv"), column(aecl_run / "in.csv", "topic")
    wanted = attention_of_model(load(run / "model"), [row["text"] for row in rows], truth)
    assert found == pytest.approx(wanted.to_dict(), abs=1e-6)
    assert 0 < found["negative"] < 1
    shown = done("evaluate", run, "--attention", *topics(aecl_run), "--id-column", "key").words
    assert f"(NS) {100 * found['negative']:.1f} %" in shown
    assert f"evenly {100 * found['even']:.1f} %" in shown
    assert f"(PS) {100 * found['positive']:.1f} %" in shown


def test_what_a_run_lacks_is_named(assignments: Path, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "in.csv", {"text": TEXTS, "label": TOPICS})
    done("fit", path, "-k", 3, "-m", "tfidf", "-q", "--text-column", "text", "-o", tmp_path / "run")
    message = refusal("evaluate", tmp_path / "run", "--labels", path, "--attention")
    assert "AECL" in message and "TfIdf" in message and "--method aecl" in message
    assert "--snapshots 1" in refusal("evaluate", tmp_path / "run", "--pairs")
    assert "--snapshots 1" in refusal("evaluate", tmp_path / "run", "--snapshots")
    assert "coterie.json" in refusal("evaluate", assignments, "--labels", path, "--attention")


def test_another_file_than_the_runs_own_is_refused(aecl_run: Path) -> None:
    other = write_csv(aecl_run / "run" / "other.csv", {"text": TEXTS[:3], "cluster": [0, 1, 2]})
    message = refusal("evaluate", other, "--pairs")
    other.unlink()
    assert "3 rows" in message and "32" in message


@pytest.mark.parametrize(
    ("options", "word"),
    [((), "--labels"), (("--attention",), "--labels"), (("--pairs", "--snapshots"), "--pairs")],
)
def test_wrong_combinations_are_wrong_usage(options: tuple[str, ...], word: str, assignments: Path) -> None:
    outcome = coterie("evaluate", assignments, *options)
    assert outcome.code == 2 and outcome.out == ""
    assert "Usage:" in outcome.err and word in outcome.err and "Traceback" not in outcome.err
