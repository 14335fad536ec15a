"""A small run folder with odd texts, for whoever shows one."""

from __future__ import annotations

import csv
from pathlib import Path

from conftest import topic_texts

from coterie.cli.fit import fit

# What a page must show as it is.
NASTY = "<script>document.body.remove()</script> </script> {{data}} & <b>late parcel</b>"
RIGHT_TO_LEFT = "الطرد متأخر refund money \u202eabc"
EMOJI = "parcel late 😡👨‍👩‍👧"


def make_run(folder: Path, encoder: Path) -> Path:
    """Of a method that trains, with snapshots, a repeated and an empty text; its labels are in ``texts.csv``."""
    texts, names = topic_texts(60)
    odd = [(NASTY, "odd"), (RIGHT_TO_LEFT, "odd"), (EMOJI, "odd"), (texts[0], names[0]), ("", "odd")]
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *zip(texts, names, strict=True), *odd])
    settings = ["training.max_steps=6", "training.batch_size=20"]
    fit(
        folder / "texts.csv",
        clusters=4,
        method="sccl",
        text_column="text",
        encoder=str(encoder),
        set_=settings,
        snapshots=1,
        output=folder / "run",
        device="cpu",
        quiet=True,
    )
    return folder / "run"
