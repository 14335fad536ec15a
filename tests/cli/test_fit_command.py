"""``coterie fit``: what a run folder holds, from every kind of file and by every method."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from command_line import (
    OWN_COLUMNS,
    RUN_FILES,
    column,
    coterie,
    done,
    read_header,
    read_json,
    read_rows,
    write_csv,
    write_jsonl,
    write_parquet,
)
from conftest import topic_texts

from coterie import __version__, load
from coterie.methods.build_method import setting_defaults
from coterie.methods.registry import METHODS, find_method
from coterie.runs.saved_run import SavedRun

# Two empty rows, a repeated text, and texts that need quotes in a CSV.
TEXTS = [*topic_texts(30)[0], "", "  \t", 'my "late" parcel, again', "reset\nmy password", "grüße, refund 🎉"]
TEXTS.append(TEXTS[0])
EMPTY = [30, 31]
CARD_FIELDS = ("name", "borderline", "cohesion", "separation", "nearest", "duplicates", "stability")
# Methods whose head decides, and the names of their stages.
STAGES = {
    "aecl": ("stage_1", "stage_2", "stage_3"),
    "rstc": ("contrast_epochs", "kmeans_epochs", "transport_epochs"),
}


# Networks over fixed vectors, and rounds of a classifier.
SMALL = {"layers": "16-6", "pretrain_steps": 20, "max_steps": 3, "max_rounds": 1, "n_bits": 8, "word_dimension": 8}
# The guard would not let a random encoder be trained.
SMALL |= {"guard": "false"}


def method_options(method: str, encoder: Path) -> list[str]:
    """Options that make a method fast here."""
    options = ["--method", method]
    known = setting_defaults(find_method(method).load())
    if "encoder" in known:
        options += ["--encoder", str(encoder)]
    options += [word for name, value in SMALL.items() if name in known for word in ("--set", f"{name}={value}")]
    if find_method(method).trains_encoder:
        # A head needs some steps before it tells clusters apart.
        settings = {"training.max_steps": 124, "training.max_epochs": 62, "training.head_learning_rate": 5e-3}
        settings |= {"training.batch_size": 16, **dict(zip(STAGES.get(method, ()), (1, 60, 1), strict=False))}
        settings = settings if method in STAGES else {"training.max_steps": 2}
        options += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return options


@pytest.fixture(scope="module", params=[info.name for info in METHODS if info.available])
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def texts_csv(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "texts.csv", {"text": TEXTS})


pytestmark = pytest.mark.usefixtures("quick_lexical_views")


@pytest.fixture(scope="module")
def any_run(
    quick_lexical_views: None, method: str, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a run on TEXTS by every method, beside its ``texts.csv``; tests only read it."""
    folder = tmp_path_factory.mktemp(method)
    path = write_csv(folder / "texts.csv", {"text": TEXTS})
    done("fit", path, "-k", 3, "-o", folder / "run", "--quiet", *method_options(method, tiny_encoder))
    return folder / "run"


def test_the_folder_holds_four_things_and_nothing_lies_beside_it(any_run: Path) -> None:
    assert {path.name for path in any_run.iterdir()} == RUN_FILES
    assert {path.name for path in any_run.parent.iterdir()} == {"run", "texts.csv"}


def test_assignments_follow_the_rows_of_the_input(any_run: Path) -> None:
    assert read_header(any_run / "assignments.csv") == OWN_COLUMNS
    rows = read_rows(any_run / "assignments.csv")
    assert [row["row"] for row in rows] == [str(i) for i in range(1, len(TEXTS) + 1)]
    assert [row["text"] for row in rows] == TEXTS
    for i, row in enumerate(rows):
        if i in EMPTY:
            assert (row["cluster"], row["status"], float(row["confidence"])) == ("-1", "empty", 0.0)
        else:
            assert row["cluster"] in {"0", "1", "2"}
            assert row["status"] == "assigned"
            assert 0 <= float(row["confidence"]) <= 1
    assert rows[-1]["cluster"] == rows[0]["cluster"], "the same text, the same cluster"


def test_the_text_output_is_a_real_clustering(texts_csv: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    texts, topics = topic_texts(60)
    done("fit", write_csv(texts_csv, {"text": texts}), "-k", 3, "-m", "tfidf", "-q", "-o", tmp_path / "run")
    clusters = column(tmp_path / "run" / "assignments.csv", "cluster")
    assert len(set(clusters)) == 3
    assert len(set(zip(topics, clusters, strict=True))) <= 5, "topics that share no words should mostly come apart"


def test_clusters_json_describes_every_cluster(any_run: Path) -> None:
    content = read_json(any_run / "clusters.json")
    assert list(content) == ["clusters"]
    clusters = content["clusters"]
    # A network that decides may leave a cluster empty; centres of these texts do not.
    decides = read_json(any_run / "run.json")["method"] in STAGES
    assert [cluster["id"] for cluster in clusters] == [0, 1, 2][: len(clusters) if decides else 3]
    sizes = [cluster["size"] for cluster in clusters]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == len(TEXTS) - len(EMPTY)
    assigned = [int(c) for c in column(any_run / "assignments.csv", "cluster") if c != "-1"]
    assert sizes == np.bincount(assigned, minlength=len(clusters)).tolist()
    rows = read_rows(any_run / "assignments.csv")
    for cluster in clusters:
        described = {"id", "size", "share", "confidence", "keywords", "representatives", *CARD_FIELDS}
        learns_topics = read_json(any_run / "run.json")["method"] == "deccrl"
        assert set(cluster) == (described | {"topics"} if learns_topics else described)
        for topic in cluster.get("topics", []):
            assert set(topic) == {"words", "probabilities", "share"}
            assert topic["words"] and len(topic["words"]) == len(topic["probabilities"])
        own = [float(row["confidence"]) for row in rows if row["cluster"] == str(cluster["id"])]
        assert cluster["confidence"] == pytest.approx(np.mean(own), abs=1e-4)
        assert cluster["share"] == pytest.approx(cluster["size"] / sum(sizes))
        members = {row["text"] for row in rows if row["cluster"] == str(cluster["id"])}
        assert cluster["representatives"]
        assert set(cluster["representatives"]) <= members
        assert cluster["keywords"]
        assert all(any(word in text.lower() for text in members) for word in cluster["keywords"])


def test_run_json_says_how_it_was_made(any_run: Path, method: str) -> None:
    run = read_json(any_run / "run.json")
    assert run["method"] == method
    assert run["seed"] == 0
    assert run["settings"]["n_clusters"] == 3
    assert run["input"] == {
        "source": str(any_run.with_name("texts.csv")),
        "text_column": "text",
        "id_column": None,
        "kept": [],
    }
    assert (run["rows"], run["distinct_texts"], run["empty_rows"]) == (len(TEXTS), len(TEXTS) - 3, 2)
    assert run["versions"]["coterie"] == __version__
    assert run["versions"].keys() >= {"python", "torch", "transformers", "scikit-learn", "numpy"}
    assert run["seconds"]["total"] > 0
    assert any("2 of 36 rows are empty" in note for note in run["notes"])
    assert any("1 rows repeat an earlier text" in note for note in run["notes"])
    assert run["device"]
    history = run["history"]
    if method == "sccl":
        assert run["settings"]["training"]["max_steps"] == 2
        assert [step["step"] for step in history["steps"]] == [1, 2]
        assert all(np.isfinite(step["loss"]) for step in history["steps"])
        assert history["stop_reasons"] == {"sccl": "cap"}
    if find_method(method).trains_encoder:
        assert run["seconds"].keys() >= {"training", "final_kmeans"}
        assert history["stop_reasons"] and history["encoder_change"] > 0
        assert [step["step"] for step in history["steps"]] == list(range(1, len(history["steps"]) + 1))
    else:
        # The steps of a network over fixed vectors or words are recorded too.
        assert bool(history["steps"]) == ("layers" in run["settings"] or method == "lexical")
    assert run["encoder_from"] == ("folder" if "encoder" in run["settings"] else None)


def test_the_model_loads_and_predicts_the_same(any_run: Path) -> None:
    clusters = np.array([int(cluster) for cluster in column(any_run / "assignments.csv", "cluster")])
    for model in (load(any_run / "model"), SavedRun.open(any_run).model):
        np.testing.assert_array_equal(model.predict(TEXTS), clusters)
        assert model.labels_.tolist() == clusters.tolist()


def test_the_same_seed_gives_the_same_bytes(any_run: Path, method: str, texts_csv: Path, tiny_encoder: Path) -> None:
    again = texts_csv.with_name("again")
    done("fit", texts_csv, "-k", 3, "-o", again, "--seed", 0, "-q", *method_options(method, tiny_encoder))
    for name in ("assignments.csv", "clusters.json"):
        assert (again / name).read_bytes() == (any_run / name).read_bytes()


def test_another_seed_is_used(texts_csv: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    losses = []
    for seed in (0, 1):
        run = tmp_path / f"run-{seed}"
        done("fit", texts_csv, "-k", 3, "-o", run, "--seed", seed, "-q", *method_options("sccl", tiny_encoder))
        content = read_json(run / "run.json")
        assert content["seed"] == seed
        losses.append(content["history"]["steps"][0]["loss"])
    assert losses[0] != losses[1]


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "csv.gz", "tsv.gz", "jsonl", "jsonl.gz", "ndjson", "txt", "txt.gz", "parquet"]
)
def test_every_kind_of_file_gives_the_same_assignments(ending: str, tmp_path: Path) -> None:
    texts = [text for text in TEXTS if "\n" not in text]  # a line of plain text cannot hold a line end
    expected = tmp_path / "expected"
    done("fit", write_csv(tmp_path / "plain.csv", {"text": texts}), "-k", 3, "-m", "tfidf", "-o", expected, "-q")
    plain = tmp_path / f"texts.{ending.removesuffix('.gz')}"
    if "json" in ending:
        write_jsonl(plain, {"text": texts})
    elif ending == "parquet":
        write_parquet(plain, {"text": texts})
    elif ending.startswith("txt"):
        plain.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    else:
        write_csv(plain, {"text": texts})
    path = plain
    if ending.endswith(".gz"):
        path = tmp_path / f"texts.{ending}"
        path.write_bytes(gzip.compress(plain.read_bytes()))
    done("fit", path, "-k", 3, "-m", "tfidf", "-o", tmp_path / "run", "-q")
    assert (tmp_path / "run" / "assignments.csv").read_bytes() == (expected / "assignments.csv").read_bytes()


def test_snapshots_hold_embeddings_and_labels(texts_csv: Path, tiny_encoder: Path) -> None:
    from safetensors import safe_open

    run = texts_csv.with_name("run")
    done("fit", texts_csv, "-k", 3, "-o", run, "-q", "--snapshots", 1, *method_options("sccl", tiny_encoder))
    *files, rows = sorted((run / "snapshots").iterdir())
    assert rows.name == "rows.safetensors"
    assert len(files) >= 2, "one before training and one after"
    assert all(path.suffix == ".safetensors" for path in files)
    distinct = read_json(run / "run.json")["distinct_texts"]
    for path in files:
        with safe_open(path, "numpy") as snapshot:
            assert set(snapshot.keys()) == {"embeddings", "labels"}
            assert snapshot.get_tensor("embeddings").shape == (distinct, 32)
            assert snapshot.get_tensor("labels").shape == (distinct,)
            assert snapshot.metadata().keys() >= {"stage", "epoch", "step"}
    with safe_open(files[0], "numpy") as first, safe_open(files[-1], "numpy") as last:
        assert (first.metadata()["epoch"], first.metadata()["step"]) == ("0", "0")
        assert last.metadata()["step"] == "2"
        assert not np.array_equal(first.get_tensor("embeddings"), last.get_tensor("embeddings"))


def test_what_is_said_and_what_quiet_leaves_unsaid(texts_csv: Path, tiny_encoder: Path) -> None:
    options = method_options("sccl", tiny_encoder)
    loud = done("fit", texts_csv, "-k", 3, "-o", texts_csv.with_name("loud"), *options)
    assert "texts nearest to its centre" in loud.out
    assert "Note: 2 of 36 rows are empty and in no cluster (-1)." in loud.out
    assert f"Wrote {texts_csv.with_name('loud')}/" in loud.out
    assert "36 rows from" in loud.err
    assert "2/2" in loud.err, "the progress bar is on standard error"
    quiet = done("fit", texts_csv, "-k", 3, "-o", texts_csv.with_name("quiet"), "--quiet", *options)
    assert (quiet.out, quiet.err) == ("", "")


def test_the_default_output_is_coterie_run_here(texts_csv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(texts_csv.parent)
    done("fit", texts_csv, "--clusters", 3, "--method", "bow", "-q")
    assert {path.name for path in (texts_csv.parent / "coterie-run").iterdir()} == RUN_FILES


def test_folders_above_the_output_are_made(texts_csv: Path) -> None:
    run = texts_csv.parent / "a" / "b" / "run"
    done("fit", texts_csv, "-k", 3, "-m", "bow", "-q", "-o", run)
    assert {path.name for path in run.iterdir()} == RUN_FILES
    assert {path.name for path in run.parent.iterdir()} == {"run"}


def test_the_input_is_left_as_it_is(any_run: Path, texts_csv: Path) -> None:
    assert any_run.with_name("texts.csv").read_bytes() == texts_csv.read_bytes()


def test_a_terminal_that_cannot_show_a_character_is_no_reason_to_fail(texts_csv: Path) -> None:
    texts = [f"grüße {text} 漢字" for text in topic_texts(20)[0]]
    run = texts_csv.with_name("run")
    outcome = coterie("fit", write_csv(texts_csv, {"text": texts}), "-k", 3, "-m", "bow", "-o", run, encoding="ascii")
    assert "Traceback" not in outcome.err
    assert outcome.code == 0
    assert column(run / "assignments.csv", "text") == texts
