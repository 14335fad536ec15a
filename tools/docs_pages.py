"""Write the generated pages of the documentation, docs/methods/ and docs/reference/, and the methods in mkdocs.yml.

    python tools/docs_pages.py            write them
    python tools/docs_pages.py --check    fail if they are not up to date

Methods come from the registry and their docstrings, commands from the command line itself, Python names from the
package, so none of them can drift.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from docs_command_line import command_line_page
from docstring_markdown import Docstring, examples, inline, prose, table

import coterie
from coterie.methods.base import ClusteringMethod
from coterie.methods.contrastive import ContrastiveMethod
from coterie.methods.encoder_method import EncoderMethod
from coterie.methods.registry import METHODS, MethodInfo

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GENERATED = ("methods", "reference")
# The site's settings, and in them the entries of its navigation that follow the page of all methods.
SITE = ROOT / "mkdocs.yml"
METHOD_ENTRIES = re.compile(r"(?<=      - methods/index\.md\n)(      - .*\n)*")
NOTE = "<!-- written by tools/docs_pages.py; do not edit -->"
PAGES_OF_METHODS = {info.class_name: f"methods/{info.name}.md" for info in METHODS}
# Link texts for classes that are not public.
WORDS = {"EncoderMethod": "the encoder", "ContrastiveMethod": "views", "ClusteringMethod": "what every method has"}
# Where the names that docstrings refer to are explained.
PLACES = {
    **PAGES_OF_METHODS,
    "EncoderMethod": "methods/index.md#the-encoder",
    "ContrastiveMethod": "methods/index.md#views",
    "ClusteringMethod": "methods/index.md#what-a-fitted-method-has",
    "TrainingConfig": "reference/python.md#trainingconfig",
    "Corpus": "reference/python.md#corpus",
    "load": "reference/python.md#load",
    "Run": "reference/python.md#coterierun",
    "coterie.fit": "reference/python.md#coteriefit",
    "coterie.plot": "reference/python.md#plot",
}
# Methods of coterie.Run on the page about Python, after `open`.
RUN_CALLS = ("predict", "report", "plot", "explore")
# The last section of docs/reference/python.md; the tests run its examples.
PICTURES = (
    "## Pictures of a run",
    "[`plot`](#plot) makes the plots of `coterie plot`. Make a run first:",
    "```bash\n"
    'cp "$(coterie datasets path support)" tickets.csv\n'
    "coterie fit tickets.csv -k 8 --text-column text --method tfidf --no-report -o run\n"
    "```",
    "Plot the sizes of its clusters, the similarity between them, and a map of 300 of its texts. The ending of the "
    "file name decides the format:",
    "```python\n"
    "import coterie\n\n"
    'coterie.plot("run", "sizes", "sizes.svg")\n'
    'coterie.plot("run", "similarity", "similarity.html")\n'
    'print(coterie.plot("run", "map", "map.png", sample=300))\n'
    "```",
    "```text\nmap.png\n```",
    "With true labels, plot how many texts of each label are in which cluster. `labels` has one label per row of the "
    "run:",
    "```python\n"
    'labels = coterie.load_dataset("support").labels\n'
    'coterie.plot("run", "confusion", "confusion.png", labels=labels)\n'
    "```",
    "To put a plot into your own figure, take its data: `coterie.report.plots.plot_data.build_plot` makes it, "
    "and `coterie.report.plots.matplotlib_plots.fill_figure` adds it to any empty matplotlib figure.",
    "```python\n"
    "from matplotlib.figure import Figure\n\n"
    "from coterie.report.plots.matplotlib_plots import fill_figure\n"
    "from coterie.report.plots.plot_data import build_plot\n"
    "from coterie.runs.saved_run import SavedRun\n"
    "from coterie.report.report_model import ReportModel\n\n"
    'plot = build_plot([ReportModel(SavedRun.open("run"))], "sizes")\n'
    'figure = Figure(layout="constrained")\n'
    "fill_figure(plot, figure)\n"
    'figure.savefig("mine.pdf")\n'
    "```",
)
CALLS = (
    "fit",
    "fit_predict",
    "predict",
    "assign",
    "predict_proba",
    "transform",
    "cluster_topics",
    "set_params",
    "save_pretrained",
)


def pages() -> dict[str, str]:
    """Return every generated page by its path under docs/."""
    made = {"methods/index.md": methods_page()}
    made |= {f"methods/{info.name}.md": method_page(info) for info in METHODS}
    return made | {"reference/cli.md": command_line_page(NOTE), "reference/python.md": python_page()}


def site_settings() -> str:
    """mkdocs.yml with one entry per method in its navigation."""
    entries = "".join(f"      - {info.title}: methods/{info.name}.md\n" for info in METHODS)
    return METHOD_ENTRIES.sub(lambda _: entries, SITE.read_text("utf-8"), count=1)


def joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


class Linker:
    """Turn the dotted name of a role into a link from one page, or into code if it has no page."""

    def __init__(self, page: str) -> None:
        self.page = page

    def __call__(self, target: str) -> str:
        name = target if target in PLACES else target.split(".")[-1]
        if name not in PLACES:
            return f"`{name}`"
        return f"[{WORDS.get(name, f'`{name}`')}]({self.to(PLACES[name])})"

    def to(self, place: str) -> str:
        page, _, anchor = place.partition("#")
        folder, _, file = page.rpartition("/")
        way = file if self.page.startswith(f"{folder}/") else f"../{page}"
        return ("" if page == self.page else way) + (f"#{anchor}" if anchor else "")


# --- methods ---


def methods_page() -> str:
    link = Linker("methods/index.md")
    rows = ["| `--method` | in Python | what it does | trains the encoder | from |", "|---|---|---|---|---|"]
    for info in METHODS:
        trains = "yes" if info.trains_encoder else "no"
        source = info.citation or "our own"
        rows.append(f"| [`{info.name}`]({info.name}.md) | `{info.class_name}` | {info.summary} | {trains} | {source} |")
    return joined(
        "# Methods",
        NOTE,
        "A method turns texts into clusters. `--method NAME` selects one; without it you get [`auto`](auto.md), "
        "Coterie's own. [`frozen`](frozen.md) does not train: it is quick, and it is the baseline that the others "
        "must beat. [Which method should I use?](../choose-a-method.md) helps to choose.",
        "\n".join(rows),
        "Every variant and ablation of the five papers (`sccl`, `aecl`, `deccrl`, `clusterbert`, `uftc`) is a setting. "
        'Where a paper is misprinted or silent, its page says under "Differs from the paper" what was done instead. '
        "Some baselines need a package more; their pages name it.",
        "Any setting in the tables of these pages goes on the command line as `--set name=value`, and those of "
        "training as `--set training.name=value`.",
        "## Settings that many methods share",
        "### The encoder",
        table(documented(EncoderMethod).sections["Parameters"], link, "setting"),
        "### Views",
        "Contrastive methods learn from two augmented versions of each text, its views.",
        table(documented(ContrastiveMethod).sections["Parameters"], link, "setting"),
        "## What a fitted method has",
        table(documented(ClusteringMethod).sections["Attributes"], link, "attribute"),
    )


def method_page(info: MethodInfo) -> str:
    target, link = info.load(), Linker(f"methods/{info.name}.md")
    doc = documented(target)
    needs = f"It needs another package: `pip install 'coterie[{info.requires}]'`." if info.requires else ""
    trains = "It trains the encoder on your texts." if info.trains_encoder else "It does not train the encoder."
    experiments = sorted(path.name for path in (ROOT / "experiments" / info.name).glob("*.yaml"))
    picture = ROOT / "docs" / "figures" / f"{info.name}.svg"
    parts = [
        f"# {info.title}",
        NOTE,
        f"**{info.summary[0].upper()}{info.summary[1:]}.** {trains} {needs}".rstrip(),
        f"```bash\ncoterie fit tickets.csv -k 20 --method {info.name} -o run\n```",
        f"In Python it is `coterie.{info.class_name}`.{f' The paper: {info.citation}.' if info.citation else ''}",
        "## The idea",
        *([f"![{info.title} in one picture](../figures/{info.name}.svg)"] if picture.is_file() else []),
        inline(doc.summary, link),
        *(inline(paragraph, link) for paragraph in doc.paragraphs),
    ]
    for name, lines in doc.sections.items():
        if name == "Parameters":
            parts += ["## Settings", table(lines, link, "setting", defaults(target)), training_part(target, link)]
        elif name == "Attributes":
            parts += ["## What it leaves behind", table(lines, link, "attribute")]
        elif name == "Examples":
            parts += ["## In Python", examples(lines)]
        else:
            parts += [f"## {name}", prose(lines, link)]
    if experiments:
        listed = ", ".join(f"`{name}`" for name in experiments)
        parts += [
            "## The paper's own settings",
            f"In the repository, under `experiments/{info.name}/`, for `--config`: {listed}.",
        ]
    return joined(*parts)


def training_part(target: type, link: Linker) -> str:
    """Return how the training defaults of a method differ from the general ones."""
    parameter = inspect.signature(target).parameters.get("training")
    if parameter is None:
        return ""
    general = coterie.TrainingConfig().get_params()
    own = {name: value for name, value in parameter.default.get_params().items() if value != general[name]}
    place = link.to(PLACES["TrainingConfig"])
    if not own:
        return f"Training has the [general defaults]({place})."
    rows = "\n".join(
        f"| `training.{name}` | `{shown(value)}` | `{shown(general[name])}` |" for name, value in own.items()
    )
    head = "| setting | here | in general |\n|---|---|---|"
    return f"Its training differs from the [general defaults]({place}) in:\n\n{head}\n{rows}"


def documented(thing: Any) -> Docstring:
    return Docstring.parse(inspect.getdoc(thing) or "")


def defaults(target: Any) -> dict[str, str]:
    """Return defaults as they are written on the command line."""
    found = {
        name: f"`{shown(parameter.default)}`"
        for name, parameter in inspect.signature(target).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    # Settings with an option of their own, or with a default that does not fit in a cell.
    special = {"n_clusters": "`-k`", "random_state": f"{found['random_state']} (`--seed`)", "training": "see below"}
    return found | special


def shown(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- Python ---


def python_page() -> str:
    link = Linker("reference/python.md")
    apart = {"__version__", "fit", "Run", *PAGES_OF_METHODS}
    others = [name for name in coterie.__all__ if name not in apart]
    rows = ["| class | what it does |", "|---|---|"]
    rows += [f"| {link(info.class_name)} | {info.summary} |" for info in METHODS]
    parts = [
        "# Python",
        NOTE,
        "`import coterie` loads nothing heavy: names are loaded when first used. [Use it from "
        "Python](../how-to/python.md) has examples.",
        "## Runs",
        *named_part("coterie.fit", coterie.fit, link),
        *named_part("coterie.Run", coterie.Run, link, called=False),
        *named_part("Run.open", coterie.Run.open, link),
    ]
    for name in RUN_CALLS:
        parts += named_part(f"run.{name}", getattr(coterie.Run, name), link)
    parts += [
        "## Methods",
        "Methods keep scikit-learn's conventions.",
        "\n".join(rows),
        "Every method has:",
    ]
    for name in CALLS:
        call = getattr(ClusteringMethod, name)
        parts += [f"### {name}", signature(f"model.{name}", call), inline(documented(call).summary, link)]
    parts += ["## Everything else"]
    for name in others:
        parts += named_part(f"coterie.{name}", getattr(coterie, name), link, heading=name)
    # Last: the tests take the next text block of the page as the output of an example.
    return joined(*parts, *PICTURES)


def named_part(name: str, thing: Any, link: Linker, *, heading: str = "", called: bool = True) -> list[str]:
    """Return what stands about one name; ``called`` says whether users call it themselves."""
    doc = documented(thing)
    parts = [f"### {heading or name}"]
    if called and not (isinstance(thing, type) and issubclass(thing, Exception)):
        parts.append(signature(name, thing))
    parts += [inline(doc.summary, link), *(inline(paragraph, link) for paragraph in doc.paragraphs)]
    for section, column in (("Parameters", "parameter"), ("Attributes", "attribute")):
        if section in doc.sections:
            parts.append(table(doc.sections[section], link, column))
    if "Returns" in doc.sections:
        parts.append(f"Returns: {prose(doc.sections['Returns'], link)}")
    return parts


def signature(name: str, thing: Any) -> str:
    """Return a signature, with one parameter per line if it does not fit on one line."""
    called = inspect.signature(thing)
    # The repr of a dataclass's default factory is its address in memory.
    empty = inspect.Parameter.empty
    parameters = [
        each.replace(default=empty) if "factory" in repr(each.default) else each
        for each in called.parameters.values()
        if each.name not in {"self", "y"}
    ]
    listed: list[str] = []
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and "*" not in listed:
            listed.append("*")
        annotation = "" if each.annotation is empty else f": {each.annotation!s}"
        default = "" if each.default is empty else f" = {each.default!r}"
        stars = {each.VAR_KEYWORD: "**", each.VAR_POSITIONAL: "*"}.get(each.kind, "")
        listed.append(f"{stars}{each.name}{annotation}{default}")
    returned = called.return_annotation
    back = "" if returned in {empty, "None", None} else f" -> {returned}"
    line = f"{name}({', '.join(listed)}){back}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {each},\n" for each in listed) + f"){back}"
    return f"```text\n{line}\n```"


def main() -> None:
    made = pages()
    there = {str(path.relative_to(DOCS)) for folder in GENERATED for path in (DOCS / folder).glob("*.md")}
    if "--check" in sys.argv[1:]:
        stale = [page for page, text in made.items() if page not in there or (DOCS / page).read_text("utf-8") != text]
        stale += sorted(there - made.keys())
        stale += [SITE.name] if SITE.read_text("utf-8") != site_settings() else []
        if stale:
            sys.exit(f"the documentation is not up to date ({', '.join(stale)}): run `make readme`")
        return
    for page in sorted(there - made.keys()):
        (DOCS / page).unlink()
    for page, text in made.items():
        (DOCS / page).parent.mkdir(exist_ok=True)
        (DOCS / page).write_text(text, encoding="utf-8")
    SITE.write_text(site_settings(), encoding="utf-8")


if __name__ == "__main__":
    main()
