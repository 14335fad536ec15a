"""``coterie augment``: augment texts, show examples, measure the time, write the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.options import Device, Json, TextColumn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from coterie.text.augmentation.preview import AugmentedView


def augment(
    input: Annotated[
        str | None,
        typer.Argument(
            help="CSV, TSV, JSONL or TXT (each also .gz), or Parquet; or the name of a data set, such as support."
        ),
    ] = None,
    with_: Annotated[
        str,
        typer.Option(
            "--with", help="An augmenter, its settings in brackets; 'a+b' applies a, then b; 'a | b' makes two views."
        ),
    ] = "word_deletion",
    list_: Annotated[bool, typer.Option("--list", help="List the augmenters.")] = False,
    show: Annotated[int, typer.Option("--show", min=0, help="How many examples to show.")] = 10,
    ratio: Annotated[
        float | None, typer.Option("--ratio", help="Share of words to change. [default: the augmenter's]")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same texts.")] = 0,
    text_column: TextColumn = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A .csv, .jsonl or .txt file to write.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output file.")] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Do not read or write the cache of texts made by language models.")
    ] = False,
    device: Device = "auto",
    json_: Json = False,
) -> None:
    """Show the augmented texts that training with an augmenter would use.

    **Examples**

    `coterie augment --list`

    `coterie augment tickets.csv --with eda --show 10`

    `coterie augment titles.csv --with "eda(alpha=0.2, operations=[swap, deletion])"`

    `coterie augment titles.csv --with "word_deletion(ratio=0.3)+char_swap | synonyms" -o views.csv`

    The output has one row per row of the input: **original** and **augmented** (**augmented_1** and **augmented_2** for
    two views; TXT holds the augmented texts alone). Equal texts get equal augmented texts; empty rows stay empty.
    """
    if list_:
        _list_augmenters(json_)
        return
    if input is None:
        raise typer.BadParameter("give a file or the name of a data set, or --list", param_hint="INPUT")
    if output is not None:
        _check_output(output, Path(input), overwrite)

    from coterie.datasets.loading import read_file_or_dataset
    from coterie.text.augmentation.preview import augmented_views, views_to_dict, write_views

    corpus = read_file_or_dataset(input, text_column=text_column)
    views = augmented_views(corpus, with_, ratio=ratio, seed=seed, device=device, use_cache=not no_cache)
    if output is not None:
        write_views(output, corpus, views)
    if json_:
        import json

        typer.echo(json.dumps(views_to_dict(corpus, views, show), indent=2, ensure_ascii=False))
        return
    from coterie.cli.tables import wide_console

    _print_examples(wide_console(), corpus.distinct[:show], views)
    for view in views:
        took = "from the cache" if view.from_cache else f"{view.seconds:.2f} s, {view.texts_per_second:,.0f} texts/s"
        typer.echo(
            f"{view.augmenter}: {len(view.texts):,} distinct texts, {view.unchanged_share:.1%} unchanged; {took}."
        )
    if output is not None:
        typer.echo(f"Wrote {len(corpus):,} rows to {output}.")


def _check_output(output: Path, input: Path, overwrite: bool) -> None:
    from coterie.errors import InputError
    from coterie.runs.folder import check_free
    from coterie.text.augmentation.preview import ENDINGS

    if output.is_dir():
        raise InputError(f"{output} is a folder; --output must name a file")
    if output.suffix.lower() not in ENDINGS:
        raise InputError(f"{output}: give --output a name that ends in {', '.join(ENDINGS)}")
    if output.exists() and input.exists() and output.samefile(input):
        raise InputError(f"{output} is the input itself; give --output another name")
    check_free(output, overwrite)


def _print_examples(console: Console, texts: Sequence[str], views: Sequence[AugmentedView]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from coterie.text.augmentation.preview import column_names_of

    if not texts:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True, expand=True)
    for name in column_names_of(views):
        table.add_column(name, ratio=1)
    for i, text in enumerate(texts):
        table.add_row(Text(" ".join(text.split())), *(_mark_changes(text, view.texts[i], console) for view in views))
    console.print(table)


def _mark_changes(original: str, augmented: str, console: Console) -> Text:
    """Mark added words in bold green and removed ones struck through; without colours, {+added+} and [-removed-]."""
    from rich.text import Text

    from coterie.text.augmentation.preview import word_changes

    if original == augmented:
        return Text("(unchanged)", style="dim")
    colours = console.color_system is not None
    marked = Text()
    for kind, words in word_changes(original, augmented):
        if kind == "same":
            marked.append(words)
        else:
            style, frame = ("red strike", "[-{}-]") if kind == "removed" else ("bold green", "{{+{}+}}")
            marked.append(words if colours else frame.format(words), style=style)
    return marked


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
