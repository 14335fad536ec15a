"""The sentences at the top of a report: what a reader should know first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.formatting import counted, percent
from coterie.selection.training_verdict import TrainingVerdict

# Stability from which a cluster counts as reproducible, and below which it counts as unreliable; shares from 0 to 1.
STABLE = 0.75
UNSTABLE = 0.5


def build_headline(content: Mapping[str, Any]) -> list[str]:
    """Return the sentences for a report's content."""
    about, cards = content["about"], content["clusters"]
    largest = max(cards, key=lambda card: card["size"])
    smallest = min(card["size"] for card in cards)
    sentences = [
        f"{about['rows']:,} texts in {about['clusters']:,} clusters. The largest is “{largest['name']}” "
        f"({largest['size']:,} texts, {percent(largest['share'])}), the smallest has {smallest:,}."
    ]
    if about["edits"]:
        sentences.append(
            f"{counted(about['edits'], 'edit')} made in the explorer (edits.jsonl) {_are(about['edits'])} applied to "
            "names and clusters."
        )
    if about["unassigned"]:
        sentences.append(f"{counted(about['unassigned'], 'row')} {_are(about['unassigned'])} in no cluster.")
    if about["abstained"]:
        sentences.append(
            f"{counted(about['abstained'], 'text')} {_are(about['abstained'])} below the requested confidence of "
            f"{about['min_confidence']:g}: unassigned in assignments.csv, and shown here in the best cluster."
        )
    known = [card["stability"] for card in cards if card["stability"] is not None]
    if known:
        sentences.append(_stability_sentence(known))
    estimate = content["coverage"][0].get("expected")
    if content["calibrated"] and estimate is not None:
        sentences.append(
            f"An estimated {percent(estimate)} of the texts are in the right cluster. The estimate uses no labels and "
            "is accurate to about 10 percentage points."
        )
    if content["trained"] is not None:
        # The criteria behind it are in the section on the training.
        sentences.append(content["trained"]["verdict"])
    if content["labels_table"] is not None:
        scores = content["labels_table"]["scores"]
        sentences.append(
            f"Compared with the given labels, which were not used for clustering: accuracy "
            f"{percent(scores['accuracy'])}, NMI {percent(scores['nmi'])}, ARI {percent(scores['ari'])}."
        )
    return sentences


def sentence_without_criteria(verdict: TrainingVerdict) -> str:
    """Return the sentence of the verdict without the criteria in brackets."""
    return f"{verdict.sentence.partition(' (')[0].rstrip('.')}." if verdict.criteria else verdict.sentence


def _stability_sentence(values: list[float]) -> str:
    stable, unstable = sum(value >= STABLE for value in values), sum(value < UNSTABLE for value in values)
    sentence = (
        f"{stable} of {len(values)} clusters {'reappears' if stable == 1 else 'reappear'} when the clustering is "
        f"repeated on samples of the texts (stability of {percent(STABLE)} or more)."
    )
    if not unstable:
        return sentence
    return f"{sentence} {unstable} {_are(unstable)} unstable (below {percent(UNSTABLE)}): check their texts first."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
