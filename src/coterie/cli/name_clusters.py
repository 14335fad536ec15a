"""``coterie report --name-with``: names from a language model, after an estimate of what that sends and costs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from coterie.errors import SettingError

if TYPE_CHECKING:
    from coterie.describe.chat_endpoint import Endpoint
    from coterie.describe.language_model_names import Answer, Question
    from coterie.runs.names_file import KnownNames
    from coterie.runs.saved_run import SavedRun


def check_options(name_with: str | None, model: str | None, name_clusters: str | None, yes: bool) -> None:
    """Refuse options that need another one."""
    if name_with is not None and not model:
        raise SettingError("--name-with needs --model NAME, the name of the model on that server")
    given = {"--model": model is not None, "--name-clusters": name_clusters is not None, "--yes": yes}
    for option, is_given in given.items():
        if name_with is None and is_given:
            raise SettingError(f"{option} needs --name-with URL: where to ask")


def name_clusters(
    run: SavedRun, url: str, model: str, given: str | None = None, *, yes: bool = False, with_texts: bool = True
) -> None:
    """Ask for the names of a run's clusters and keep them in its ``names.json``; what fails keeps its keywords."""
    from coterie.describe.chat_endpoint import Endpoint, key_from_environment
    from coterie.describe.language_model_names import ask_all, build_questions, drop_duplicate_names, parse_clusters
    from coterie.runs.edited_clusters import named_by_hand

    key, variable = key_from_environment()
    endpoint = Endpoint(url, model, key)
    # Questions are made of keyword names, so that they stay the same whatever was answered before.
    cards = run.keyword_cards
    by_hand = set() if run.edited is None else named_by_hand(run.edited)
    wanted = parse_clusters(given, cards)
    if wanted & by_hand:
        typer.echo(f"{len(wanted & by_hand):,} clusters keep the names that people gave them.", err=True)
    asked = build_questions(cards, wanted - by_hand, with_texts=with_texts)
    known = run.known_names
    if known.unreadable:
        typer.echo("Note: names.json cannot be read; it is replaced.", err=True)
    if any(question.digest(model) not in known.answers for question in asked):
        _confirm(_cost_sentence(asked, endpoint, known, variable), yes)
    answers = _with_progress(ask_all(asked, endpoint, known.answers, lambda: known.write(run.folder)), len(asked))
    own = {card.summary.id: card.name for card in cards}
    named = {each.cluster: each.name for each in answers if each.name is not None}
    earlier = dict(known.clusters)
    # Names of clusters that were merged away wait: a merge can be undone.
    waiting = {k: name for k, name in earlier.items() if k not in own}
    known.clusters = drop_duplicate_names(own, earlier | named) | waiting
    known.write(run.folder)
    run.refresh()
    _print_outcome(answers, known.clusters, own)


def _cost_sentence(asked: Sequence[Question], endpoint: Endpoint, known: KnownNames, variable: str | None) -> str:
    """Return what will be sent, to whom, and about what it costs."""
    from coterie.describe.language_model_names import estimate_cost

    new = [question for question in asked if question.digest(endpoint.model) not in known.answers]
    expected, at = estimate_cost(new), endpoint.host
    texts = f"{expected.texts:,} texts of the run" if expected.texts else "keywords and no text of the run"
    sentences = [
        f"{expected.requests:,} requests to {endpoint.model}, about {expected.tokens_in:,} tokens in and "
        f"{expected.tokens_out:,} out (a model that reasons first takes more)",
        f"{texts} will be sent to {at}" + (f", with the key in {variable}" if variable else ", without a key"),
    ]
    if endpoint.is_unencrypted:
        sentences.append(f"{at} is asked over http: others on the way can read it")
    if len(new) < len(asked):
        sentences.append(f"{len(asked) - len(new):,} names are known already")
    return "; ".join(sentences)


def _confirm(sentence: str, yes: bool) -> None:
    if yes:
        typer.echo(f"{sentence}.", err=True)
    elif sys.stdin is not None and sys.stdin.isatty():
        typer.echo(f"{sentence}.", err=True)
        typer.confirm("Send it?", abort=True, err=True)
    else:
        raise SettingError(f"{sentence}. Nothing was sent: add --yes to send it")


def _with_progress(answers: Iterator[Answer], n_asked: int) -> list[Answer]:
    if not sys.stderr.isatty():
        return list(answers)
    with typer.progressbar(answers, length=n_asked, label="Asking for names", file=sys.stderr) as shown:
        return list(shown)


def _print_outcome(answers: Sequence[Answer], names: Mapping[int, str], own: Mapping[int, str]) -> None:
    """Print how many were named, and one line for each reason why others were not."""
    reasons: defaultdict[str, list[int]] = defaultdict(list)
    for each in answers:
        if each.name is None:
            reasons[each.problem or "no answer"].append(each.cluster)
        elif names.get(each.cluster) != each.name:
            reasons[f"“{each.name}” is the name of another cluster"].append(each.cluster)
    n_named = len(answers) - sum(map(len, reasons.values()))
    n_known = sum(each.was_known for each in answers)
    typer.echo(
        f"Named {n_named:,} of {len(answers):,} clusters" + (f" ({n_known:,} from names.json)." if n_known else ".")
    )
    for reason, clusters in reasons.items():
        if len(clusters) == 1:
            k = clusters[0]
            typer.echo(f"Cluster {k} keeps “{names.get(k, own[k])}”: {reason}.")
        else:
            typer.echo(f"Clusters {', '.join(map(str, clusters))} keep their names: {reason}.")
