"""A process that fits without labels: one run per line of standard input, one answer per line of standard output.

    python -m coterie.benchmark.worker

Of a data set it gets a file of texts and the number of clusters, nothing else.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import sys
import time
import traceback
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from coterie.benchmark.reclustering import Reclustered
    from coterie.methods.base import ClusteringMethod
    from coterie.text.corpus import Corpus
    from coterie.training.history import Snapshot

# Topics in the record are a few of the largest clusters: a record is read by people, too.
MOST_CLUSTERS = 20
# Topics per cluster that a run records: the default number of topics of DECCRL.
MOST_TOPICS = 5
# Words per topic: as many as Table 4 of the DECCRL paper prints.
MOST_WORDS = 4


def main() -> None:
    """Answer the requests of standard input until it ends."""
    # Output of libraries goes to standard error, so that it does not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    answer_requests(sys.stdin, answers)


def answer_requests(requests: Iterable[str], answers: IO[str]) -> None:
    """Write an answer for every line of ``requests``: what is known of the run, or its error."""
    for line in requests:
        try:
            answer = fitted(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()[-2000:]}
        _give_memory_back()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _give_memory_back() -> None:
    """Free the GPU memory of the last run, for other processes on the same GPU."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def fitted(job: dict[str, Any]) -> dict[str, Any]:
    """Fit, save the assignments, and return what belongs in the record of the run."""
    from coterie.benchmark.augmentation_cosines import augmented_cosines
    from coterie.methods.build_method import build_method
    from coterie.methods.results import plain
    from coterie.text.sampling import labels_by_row, sample_places
    from coterie.version import __version__

    corpus, held_out = _texts(job["texts"])
    model = build_method(job["method"], job["n_clusters"], job["seed"], job["settings"], {"device": job["device"]})
    _check_ranks(model, job)
    # Of one seed: it describes the texts and their augmented views, not the run.
    cosines = augmented_cosines(model, corpus) if job["seed"] == 0 else []
    began = time.perf_counter()
    model.fit(corpus, sample=_most(model, corpus))
    seconds = time.perf_counter() - began
    snapshots = vars(model).get("snapshots_", [])
    places = sample_places(corpus, model.initial_labels_) if snapshots else corpus.distinct_index
    others = _save(model, corpus, held_out, [labels_by_row(each.labels, places) for each in snapshots], job)
    return {
        "snapshots": [{"stage": each.stage, "epoch": each.epoch, "step": each.step} for each in snapshots],
        "traced": _traced(places, snapshots, job),
        "augmented_cosines": cosines,
        "code_version": __version__,
        "parameters": {name: plain(value) for name, value in model.get_params(deep=False).items()},
        "seconds": {"fit": seconds, **model.timings_, **others.seconds},
        "steps": len(model.history_.steps),
        "stop_reasons": model.history_.stop_reasons,
        "encoder_change": model.history_.encoder_change,
        "notes": [*model.notes_, *others.notes],
        "topics": _topics(model),
        "machine": _machine(model),
    }


def _most(model: ClusteringMethod, corpus: Corpus) -> int | None:
    """Return the number of texts to learn on, where memory limits a linkage; the run's notes mention it."""
    most = model.max_rows()
    return most if most is not None and len(corpus) > most else None


@lru_cache(maxsize=4)
def _texts(path: str) -> tuple[Corpus, list[str]]:
    from coterie.text.corpus import as_corpus

    content = json.loads(Path(path).read_text(encoding="utf-8"))
    return as_corpus(content["texts"]), content["held_out"]


def _save(
    model: ClusteringMethod,
    corpus: Corpus,
    held_out: list[str],
    epochs: Sequence[NDArray[np.int64]],
    job: dict[str, Any],
) -> Reclustered:
    """Save the partition that the method returns, for trained methods also the start, the head and k-means.

    The partitions of epochs go to a file of their own. Return the other clusterings of the same embeddings.
    """
    import numpy as np

    from coterie.benchmark.partitions import write_partitions
    from coterie.benchmark.reclustering import Reclustered, recluster

    learned = vars(model)
    names = {"final": "labels_", "frozen": "initial_labels_", "head": "head_labels_", "kmeans": "kmeans_labels_"}
    found = {name: learned[attribute] for name, attribute in names.items() if attribute in learned}
    if held_out:
        found["held_out"] = model.predict(held_out)
    others = Reclustered()
    if job["reclustered"]:
        known = (job["n_clusters"], job["seed"], job["device"])
        others = recluster(job["reclustered"], corpus, model.transform(corpus), *known)
    write_partitions(Path(job["assignments"]), {**found, **others.partitions})
    if epochs:
        write_partitions(Path(job["epochs"]), {"epochs": np.stack(epochs)})
    return others


def _check_ranks(model: ClusteringMethod, job: dict[str, Any]) -> None:
    from coterie.errors import SettingError
    from coterie.methods.trained import TrainedMethod

    if job["ranks"] and not isinstance(model, TrainedMethod):
        raise SettingError("a ranking set is scored at the snapshots of a training, and this method keeps none")


def _traced(places: NDArray[np.int64], snapshots: Sequence[Snapshot], job: dict[str, Any]) -> list[dict[str, Any]]:
    """Save a trace, if one is wanted, and return what is known about its snapshots."""
    from coterie.benchmark.traces import save_trace

    return save_trace(Path(job["trace"]), places, snapshots, whole=job["ranks"]) if job["trace"] and snapshots else []


def _topics(model: ClusteringMethod) -> list[dict[str, Any]]:
    """Return topics of the largest clusters, which have the lowest numbers; none where the method learns no topics."""
    labels = model.labels_.tolist()
    return [
        {
            "cluster": cluster,
            "texts": labels.count(cluster),
            "topics": [", ".join(topic.words[:MOST_WORDS]) for topic in topics[:MOST_TOPICS]],
        }
        for cluster, topics in enumerate((model.cluster_topics() or [])[:MOST_CLUSTERS])
    ]


def _machine(model: ClusteringMethod) -> dict[str, Any]:
    from coterie.encoders.device import usable_cores

    device = model.provenance()["device"] or "cpu"
    if device.startswith("cuda"):
        import torch

        device = torch.cuda.get_device_name(device)
    return {
        "device": device,
        "cores": usable_cores(),
        "python": platform.python_version(),
        "torch": version("torch"),
    }


if __name__ == "__main__":
    main()
