"""``coterie plot`` and ``coterie report`` as commands."""

from __future__ import annotations

from pathlib import Path

from command_line import column, coterie, done, read_header, refusal, tree


def test_a_picture_of_a_run(run_folder: Path, tmp_path: Path) -> None:
    before = tree(run_folder)
    outcome = done("plot", run_folder, "sizes", "-o", tmp_path / "new" / "sizes.svg", "--device", "cpu")
    assert outcome.out == f"Wrote {tmp_path / 'new' / 'sizes.svg'}.\n"
    labels = ("--labels", run_folder.parent / "texts.csv")
    done("plot", run_folder, "confusion", *labels, "-o", tmp_path / "confusion.png", "--device", "cpu")
    done("plot", run_folder, run_folder, "map", *labels, "--color", "label", "--sample", 9, "-o", tmp_path / "map.svg")
    assert (tmp_path / "map.svg").read_text(encoding="utf-8").count("sccl, 4 clusters") == 2
    assert tree(run_folder) == before


def test_what_is_wrong_is_told_before_anything_is_loaded(run_folder: Path, tmp_path: Path) -> None:
    assert "map|curves|sizes" in refusal("plot", run_folder, "-o", tmp_path / "x.png")
    assert "map|curves|sizes" in refusal("plot", "map", "-o", tmp_path / "x.png")
    assert ".png, .svg, .html" in refusal("plot", run_folder, "map", "-o", tmp_path / "x.jpg")
    assert "not a run" in refusal("plot", tmp_path, "map", "-o", tmp_path / "x.png")
    assert "--labels" in refusal("plot", run_folder, "confusion", "-o", tmp_path / "x.png")
    assert coterie("report", run_folder, "--map", "globe").code == 2
    assert "not a run" in refusal("report", tmp_path)
    assert not (tmp_path / "x.png").exists()


def test_without_texts_nothing_that_is_written_holds_one(tmp_path: Path) -> None:
    words = ("parcel", "login")
    texts = [f"secret{i} {word} number" for i in range(12) for word in words]
    (tmp_path / "texts.csv").write_text("ref,text\n" + "".join(f"r{i},{text}\n" for i, text in enumerate(texts)))
    given = ("fit", tmp_path / "texts.csv", "-k", 2, "-m", "tfidf", "--text-column", "text", "--id-column", "ref", "-q")
    done(*given, "--no-text", "--report", "-o", tmp_path / "run")
    done("predict", tmp_path / "run", tmp_path / "texts.csv", "--no-text", "-o", tmp_path / "new.csv", "-q")
    written = [path for path in (tmp_path / "run").rglob("*") if path.is_file()] + [tmp_path / "new.csv"]
    assert {"report.html", "assignments.csv", "clusters.json"} < {path.name for path in written}
    for text in texts:
        assert not [path for path in written if text.encode() in path.read_bytes()]
    assert read_header(tmp_path / "run" / "assignments.csv") == ["row", "id", "cluster", "confidence", "status"]
    assert read_header(tmp_path / "new.csv") == ["row", "cluster", "cluster_name", "confidence", "status"]
    assert "--no-text" in refusal("report", tmp_path / "run")
    done(*given, "-o", tmp_path / "other")
    assert column(tmp_path / "other" / "assignments.csv", "cluster") == column(
        tmp_path / "run" / "assignments.csv", "cluster"
    )


def test_a_report_elsewhere(run_folder: Path, tmp_path: Path) -> None:
    options = ("--labels", run_folder.parent / "texts.csv", "--map", "pca", "--points", 100)
    outcome = done("report", run_folder, *options, "-o", tmp_path / "page.html", "--device", "cpu")
    assert outcome.out.startswith(f"Wrote {tmp_path / 'page.html'} (0.")
    assert "Comparison with the given labels" in (tmp_path / "page.html").read_text(encoding="utf-8")
