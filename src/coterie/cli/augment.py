"""``coterie augment``: see, time and write what an augmenter makes of texts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Device, Json, TextColumn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from coterie.text.augmentation.base import Augmenter
    from coterie.text.corpus import Corpus

ENDINGS = (".csv", ".jsonl", ".txt")


def augment(
    input: Annotated[
        str | None,
        typer.Argument(
            help="CSV, TSV, JSONL or TXT (each also .gz), or Parquet; or a data set's name, such as support."
        ),
    ] = None,
    with_: Annotated[
        str,
        typer.Option("--with", help="An augmenter; settings in brackets; a+b for one after another; 'a | b' for two."),
    ] = "word_deletion",
    list_: Annotated[bool, typer.Option("--list", help="List the augmenters.")] = False,
    show: Annotated[int, typer.Option("--show", min=0, help="How many examples to show.")] = 10,
    ratio: Annotated[float | None, typer.Option("--ratio", help="Share of words. [default: the augmenter's]")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same texts.")] = 0,
    text_column: TextColumn = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A .csv, .jsonl or .txt to write.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output file.")] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Make anew what a language model made before, and do not keep it.")
    ] = False,
    device: Device = "auto",
    json_: Json = False,
) -> None:
    """Show what an augmenter makes of texts, as training with it would see them.

    **Examples**

    `coterie augment --list`

    `coterie augment tickets.csv --with eda --show 10`

    `coterie augment titles.csv --with "eda(alpha=0.2, operations=[swap, deletion])"`

    `coterie augment titles.csv --with "word_deletion(ratio=0.3)+char_swap | synonyms" -o views.csv`

    The output has one row a row of the input: **original** and **augmented** (**augmented_1** and **augmented_2** for
    two views; TXT holds the augmented texts alone). Equal texts get equal ones; empty rows stay empty.
    """
    if list_:
        _list_augmenters(json_)
        return
    if input is None:
        raise typer.BadParameter("give a file or a data set's name, or --list", param_hint="INPUT")
    if output is not None:
        _check_output(output, Path(input), overwrite)

    from coterie.text.augmentation.base import check_changes, unchanged_share
    from coterie.text.augmentation.registry import count_views, parse_views

    corpus = _read(input, text_column)
    augmenters = parse_views(with_, ratio, device=device)[: min(2, count_views(with_))]
    views = []
    for place, augmenter in enumerate(augmenters):
        view = _made(augmenter, corpus.distinct, [seed, place], use_cache=not no_cache)
        check_changes(augmenter.describe(), corpus.distinct, view.texts)
        views.append(view)
    if output is not None:
        _write(output, corpus, views)

    unchanged = [unchanged_share(corpus.distinct, view.texts) for view in views]
    if json_:
        _print_json(corpus, augmenters, views, unchanged, show)
        return
    from coterie.cli.tables import wide_console

    _print_examples(wide_console(), corpus.distinct[:show], views)
    for augmenter, view, share in zip(augmenters, views, unchanged, strict=True):
        took = "from the cache" if view.cached else f"{view.seconds:.2f} s, {_rate(corpus, view):,.0f} texts/s"
        typer.echo(f"{augmenter.describe()}: {len(corpus.distinct):,} distinct texts, {share:.1%} unchanged; {took}.")
    if output is not None:
        typer.echo(f"Wrote {len(corpus):,} rows to {output}.")


@dataclass(frozen=True)
class _View:
    """What an augmenter made of the distinct texts."""

    texts: list[str]
    seconds: float
    cached: bool


def _made(augmenter: Augmenter, texts: Sequence[str], seed: Sequence[int], *, use_cache: bool) -> _View:
    import numpy as np

    from coterie.text.augmentation.cache import augment_cached, is_cached

    # Texts made by rule are made sooner than they are read.
    use_cache = use_cache and augmenter.slow
    cached = use_cache and is_cached(augmenter, texts, seed)
    began = time.perf_counter()
    if use_cache:
        made = augment_cached(augmenter, texts, seed)
    else:
        made = augmenter.augment(texts, np.random.default_rng(seed))
    return _View(made, time.perf_counter() - began, cached)


def _read(given: str, text_column: str | None) -> Corpus:
    """The texts of a file, or of a data set by its name."""
    from coterie.text.reading import read_corpus

    if not Path(given).exists():
        from coterie.datasets.cards import list_datasets

        if given in {card.name for card in list_datasets()}:
            from coterie.datasets.loading import load_table
            from coterie.errors import InputError
            from coterie.text.corpus import as_corpus

            table, column = load_table(given), text_column or "text"
            if column not in table:
                raise InputError(f"data set {given!r} has no column {column!r}; it has: {', '.join(table)}")
            return as_corpus(table[column])
    return read_corpus(given, text_column=text_column)


def _check_output(output: Path, input: Path, overwrite: bool) -> None:
    from coterie.errors import InputError
    from coterie.runs.folder import check_free

    if output.is_dir():
        raise InputError(f"{output} is a folder; --output must name a file")
    if output.suffix.lower() not in ENDINGS:
        raise InputError(f"{output}: give --output a name that ends in {', '.join(ENDINGS)}")
    if output.exists() and input.exists() and output.samefile(input):
        raise InputError(f"{output} is the input itself; give --output another name")
    check_free(output, overwrite)


def _write(output: Path, corpus: Corpus, views: Sequence[_View]) -> None:
    import csv
    import json

    from coterie.files import whole_file

    names = ["original", *_view_names(views)]
    rows = (
        [text, *(text if place < 0 else view.texts[place] for view in views)]
        for text, place in zip(corpus.texts, corpus.distinct_index.tolist(), strict=True)
    )
    with whole_file(output) as stream:
        if output.suffix.lower() == ".jsonl":
            for row in rows:
                stream.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n")
        elif output.suffix.lower() == ".txt":
            for row in rows:
                # One line a text, whatever line ends the text itself holds; two views by a tab.
                stream.write("\t".join(" ".join(text.split()) for text in row[1:]) + "\n")
        else:
            # Everything in quotes: a lone carriage return in a text would end the row otherwise.
            writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows)


def _print_json(
    corpus: Corpus, augmenters: Sequence[Augmenter], views: Sequence[_View], unchanged: Sequence[float], show: int
) -> None:
    import json

    content = {
        "rows": len(corpus),
        "empty_rows": int(corpus.empty.sum()),
        "distinct_texts": len(corpus.distinct),
        "views": [
            {
                "augmenter": augmenter.describe(),
                "unchanged_share": share,
                "seconds": view.seconds,
                "texts_per_second": _rate(corpus, view),
                "from_cache": view.cached,
            }
            for augmenter, view, share in zip(augmenters, views, unchanged, strict=True)
        ],
        "examples": [
            dict(zip(["original", *_view_names(views)], texts, strict=True))
            for texts in zip(corpus.distinct[:show], *(view.texts[:show] for view in views), strict=True)
        ],
    }
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def _print_examples(console: Console, texts: Sequence[str], views: Sequence[_View]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not texts:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True, expand=True)
    for name in ["original", *_view_names(views)]:
        table.add_column(name, ratio=1)
    for i, text in enumerate(texts):
        table.add_row(Text(_one_line(text)), *(_marked(text, view.texts[i], console) for view in views))
    console.print(table)


def _marked(original: str, augmented: str, console: Console) -> Text:
    """The augmented text with what is new in it in bold green, or in {+braces+} where there are no colours.

    Words that are gone stand struck through, or as [-word-].
    """
    from difflib import SequenceMatcher
    from itertools import pairwise

    from rich.text import Text

    from coterie.text.word_segmentation import split_words

    if original == augmented:
        return Text("(unchanged)", style="dim")
    colours = console.color_system is not None
    before, after = split_words(original), split_words(augmented)
    marked = Text()
    last = ""  # the word before
    for operation, a, a_end, b, b_end in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        gone = before[a:a_end] if operation != "equal" else []
        for words, style, frame in ((gone, "red strike", "[-{}-]"), (after[b:b_end], "bold green", "{{+{}+}}")):
            if words:
                marked.append(_space(last, words[0]))
                joined = "".join(_space(left, word) + word for left, word in pairwise(["", *words]))
                if operation == "equal":
                    marked.append(joined)
                else:
                    marked.append(joined if colours else frame.format(joined), style=style)
                last = words[-1]
    return marked


def _space(left: str, right: str) -> str:
    """What stands between two words, each as its script is written."""
    from coterie.text.word_segmentation import has_no_spaces

    return "" if left == "" or has_no_spaces(left) or has_no_spaces(right) else " "


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _view_names(views: Sequence[_View]) -> list[str]:
    return ["augmented"] if len(views) == 1 else [f"augmented_{i + 1}" for i in range(len(views))]


def _rate(corpus: Corpus, view: _View) -> float:
    return len(corpus.distinct) / max(view.seconds, 1e-9)


def _list_augmenters(json_: bool) -> None:
    from coterie.text.augmentation.registry import AUGMENTERS

    if json_:
        import json

        typer.echo(json.dumps([info.to_dict() for info in AUGMENTERS], indent=2, ensure_ascii=False))
        return
    from rich import box
    from rich.table import Table

    from coterie.cli.tables import wide_console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("--with", "by", "what it does"):
        table.add_column(column, no_wrap=column != "what it does")
    for info in AUGMENTERS:
        table.add_row(info.name, info.kind, info.summary)
    wide_console().print(table)
