"""The page of the documentation about the command line, from the app itself."""

from __future__ import annotations

import enum
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from coterie.cli.main import app


def command_line_page(note: str) -> str:
    parts = [
        "# Command line",
        note,
        "`coterie COMMAND --help` prints the same. A mistake in the input is one line on standard error and exit "
        "code 1. The most common commands: [the commands on one page](../commands.md).",
    ]
    for name, command in commands(typer.main.get_command(app), "coterie"):
        parts += command_part(name, command)
    return "\n\n".join(parts) + "\n"


def commands(parent: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, parent
    for child, command in getattr(parent, "commands", {}).items():
        if not command.hidden:
            yield from commands(command, f"{name} {child}")


def command_part(name: str, command: Any) -> list[str]:
    options = [each for each in command.params if each.opts[0].startswith("-") and not each.hidden]
    arguments = [each for each in command.params if not each.opts[0].startswith("-")]
    children = getattr(command, "commands", {})
    usage = [name, "[OPTIONS]" if options else "", *map(argument_name, arguments), "COMMAND" if children else ""]
    parts = [f"## {name}", help_text(command.help or ""), f"```text\n{' '.join(filter(None, usage))}\n```"]
    if children:
        rows = [
            f"| [`{name} {child}`](#{f'{name} {child}'.replace(' ', '-')}) | {summary_line(each.help)} |"
            for child, each in children.items()
            if not each.hidden
        ]
        parts.append("\n".join(["| command | what it does |", "|---|---|", *rows]))
    if arguments:
        rows = [f"| `{argument_name(each)}` | {cell(each.help)} |" for each in arguments]
        parts.append("\n".join(["| argument | what it is |", "|---|---|", *rows]))
    if options:
        rows = ["| {} | {} | {} |".format(*option_cells(each)) for each in options]
        parts.append("\n".join(["| option | what it does | default |", "|---|---|---|", *rows]))
    return parts


def help_text(text: str) -> str:
    """Return the help of a command; its examples, one per paragraph, become one block."""
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]
    made: list[str] = []
    block: list[str] | None = None
    for part in parts:
        example = re.fullmatch(r"`([^`]+)`\s*(\(.*\))?", part)
        if example and block is not None:
            block.append(example[1] + (f"  # {example[2][1:-1]}" if example[2] else ""))
            continue
        if block:
            made.append("```bash\n" + "\n".join(block) + "\n```")
        block = [] if re.fullmatch(r"\*\*Examples?\*\*", part) else None
        made.append(part)
    if block:
        made.append("```bash\n" + "\n".join(block) + "\n```")
    return "\n\n".join(made)


def summary_line(text: str | None) -> str:
    return cell(re.split(r"\n\s*\n", (text or "").strip())[0])


def argument_name(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def option_cells(option: Any) -> tuple[str, str, str]:
    value = "" if option.is_flag else f" {value_name(option)}"
    names = ", ".join(
        f"`{name}{value}`" for name in sorted([*option.opts, *option.secondary_opts], key=len, reverse=True)
    )
    text = option.help or ""
    # A default that is not a single value is written in the help text.
    stated = re.search(r"\s*\[default: ([^\]]+)\]", text)
    if stated:
        text, default = text.replace(stated[0], ""), stated[1]
    elif option.required:
        default = "required"
    elif option.is_flag:
        default = f"`{option.opts[0]}`" if option.default else ""
    else:
        default = "" if option.default is None else f"`{getattr(option.default, 'value', option.default)}`"
        if isinstance(option.show_default, str):
            default = option.show_default
    choices = choices_of(option)
    if choices:
        text = f"{text} One of {', '.join(f'`{choice}`' for choice in choices)}."
    return names, cell(text), cell(default)


def value_name(option: Any) -> str:
    kind = option.type_descriptor.annotation
    usual = "NAME" if choices_of(option) else {int: "N", float: "NUMBER", Path: "PATH"}.get(kind, "TEXT")
    return option.metavar or usual


def choices_of(option: Any) -> list[str]:
    kind = option.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return [str(each.value) for each in kind]
    return [str(each) for each in typing.get_args(kind)] if typing.get_origin(kind) is typing.Literal else []


def cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", r"\|")
