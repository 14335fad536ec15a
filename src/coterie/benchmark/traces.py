"""Traces: how the embeddings of some texts moved during training, for the papers' curves and maps.

A fitting process, which has no labels, saves the embeddings of a fixed sample of texts at every snapshot, and their
maps. Measures that need labels are computed afterwards, and only those are stored. Of a ranking set, the embeddings of
all texts are saved, and the measures of their ranking are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.benchmark.sets import Loaded, Question
from coterie.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from coterie.training.history import Snapshot

# Texts in the sample of a trace: enough for a map, and few enough for all pairwise cosines.
SAMPLE = 1_000
# Seed of the sample: the same texts for every method and seed.
SAMPLE_SEED = 0
# Epochs with a map, after that of the start; the ends of stages have one, too.
FIRST_MAPS = 5
# Most snapshots of a trace, evenly over the training: the space on disk grows with them.
MOST_SNAPSHOTS = 40
RANKING_MEASURES = ("map", "mrr")


def save_trace(
    path: Path, places: NDArray[np.int64], snapshots: Sequence[Snapshot], *, whole: bool = False
) -> list[dict[str, Any]]:
    """Save the sample's embeddings and maps, or with ``whole`` the embeddings of all texts.

    Return stage, epoch and step of each saved snapshot, and whether it has a map. ``places`` are the positions of the
    rows among the texts of the snapshots; -1 for rows that were not learned on.
    """
    import numpy as np
    from safetensors.numpy import save_file

    rows = np.arange(len(places)) if whole else sampled_rows(len(places))
    places = places[rows]
    if whole and (places < 0).any():
        raise InputError("a text that is empty, or was not learned on, cannot be ranked")
    rows, places = rows[places >= 0], places[places >= 0]
    chosen = _chosen(snapshots)
    vectors = np.stack([snapshots[place].embeddings[places] for place in chosen])
    mapped = [] if whole else _mapped([snapshots[place] for place in chosen])
    maps = np.stack([_map(vectors[place]) for place in mapped]) if mapped else np.zeros((0, 2), np.float32)
    labels = np.stack([snapshots[place].labels[places] for place in chosen])
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"vectors": vectors.astype(np.float16), "maps": maps, "labels": labels, "rows": rows}
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    saved = [snapshots[place] for place in chosen]
    return [
        {"stage": each.stage, "epoch": each.epoch, "step": each.step, "mapped": place in mapped}
        for place, each in enumerate(saved)
    ]


def sampled_rows(n_rows: int) -> NDArray[np.int64]:
    """Return the rows of the sample, sorted."""
    import numpy as np

    return np.sort(np.random.default_rng(SAMPLE_SEED).permutation(n_rows)[:SAMPLE])


def trace_of(path: Path, snapshots: Sequence[dict[str, Any]], data: Loaded) -> dict[str, Any]:
    """Return the measures of every snapshot, those with labels included, and the maps with the class of each text."""
    import numpy as np
    from safetensors.numpy import load_file

    arrays = load_file(path)
    if data.questions:
        pairs = zip(snapshots, arrays["vectors"], strict=True)
        found = [{**snapshot, **ranking_measures(vectors, data.questions)} for snapshot, vectors in pairs]
        return {"texts": len(data.texts), "questions": len(data.questions), "snapshots": found}
    names = sorted(set(data.labels))
    classes = np.array([names.index(data.labels[row]) for row in arrays["rows"]])
    maps = iter(arrays["maps"])
    found = []
    for snapshot, vectors, labels in zip(snapshots, arrays["vectors"], arrays["labels"], strict=True):
        each = {**snapshot, **measures(vectors.astype(np.float64), labels, classes)}
        if snapshot["mapped"]:
            each["map"] = np.round(next(maps), 2).tolist()
        found.append(each)
    return {"texts": len(classes), "classes": classes.tolist(), "class_names": names, "snapshots": found}


def ranking_measures(vectors: NDArray[np.floating[Any]], questions: Sequence[Question]) -> dict[str, float]:
    """Return ``map`` and ``mrr``, in percent, of candidates ranked by their cosine with the question."""
    import numpy as np

    from coterie.clustering.kmeans import unit_rows
    from coterie.metrics.external.ranking import evaluate_ranking

    units = unit_rows(vectors.astype(np.float64))
    near = [(units[list(each.candidates)] @ units[each.text], each.relevant) for each in questions]
    scores = evaluate_ranking(near)
    return {"map": round(100 * scores.map, 3), "mrr": round(100 * scores.mrr, 3)}


def ranking_scores(trace: dict[str, Any]) -> dict[str, dict[str, float] | None]:
    """Return the scores of a run on a ranking set: its first and last snapshot, in place of partitions."""
    first, last = ({name: trace["snapshots"][at][name] for name in RANKING_MEASURES} for at in (0, -1))
    return {"frozen": first, "head": None, "kmeans": None, "final": last, "oracle": None}


def measures(
    vectors: NDArray[np.float64], labels: NDArray[np.int64], classes: NDArray[np.int64]
) -> dict[str, float | None]:
    """Return the measures of a snapshot of the sample; ``None`` where one is undefined, as with a single cluster.

    ``accuracy`` and ``nmi`` of the clusters, and their ``silhouette`` and ``dunn``; ``silhouette_classes`` of the true
    classes. ``within`` and ``between`` are of the true classes: the mean distance to the own centre, and that of a
    centre to the closest other one; ``within_clusters`` and ``between_clusters`` are the same of the clusters.
    ``cosine_same`` and ``cosine_other`` are the mean cosine of two texts of one class, and of two.
    """
    import numpy as np

    from coterie.clustering.kmeans import unit_rows
    from coterie.metrics.external.scores import evaluate
    from coterie.metrics.internal.distances import cluster_distances
    from coterie.metrics.internal.dunn import dunn
    from coterie.metrics.internal.silhouette import silhouette

    scores, distances = evaluate(classes.tolist(), labels), cluster_distances(vectors, classes)
    units = unit_rows(vectors)
    cosines, same = units @ units.T, classes[:, None] == classes[None, :]
    apart = len(np.unique(labels[labels >= 0])) > 1
    of_clusters = cluster_distances(vectors, labels) if apart else None
    found = {
        "accuracy": 100 * scores.accuracy,
        "nmi": 100 * scores.nmi,
        "silhouette": silhouette(vectors, labels) if apart else None,
        "silhouette_classes": silhouette(vectors, classes),
        "dunn": dunn(vectors, labels) if apart else None,
        "within": distances.mean_intra,
        "between": distances.mean_inter,
        "within_clusters": of_clusters.mean_intra if of_clusters else None,
        "between_clusters": of_clusters.mean_inter if of_clusters else None,
        "cosine_same": float(cosines[same & ~np.eye(len(classes), dtype=bool)].mean()),
        "cosine_other": float(cosines[~same].mean()),
    }
    return {name: None if value is None else round(value, 5) for name, value in found.items()}


def at_stage(trace: dict[str, Any], stage: str) -> dict[str, Any] | None:
    """Return the snapshot at the end of a stage, or ``None``; the stage ``start`` is before training."""
    of_stage = [each for each in trace["snapshots"] if each["stage"] == stage]
    return of_stage[-1] if of_stage else None


def _chosen(snapshots: Sequence[Snapshot]) -> list[int]:
    """Return the positions of the snapshots to save: all or evenly chosen ones, and those with a map."""
    import numpy as np

    evenly = np.linspace(0, len(snapshots) - 1, min(MOST_SNAPSHOTS, len(snapshots))).round().astype(int)
    return sorted({*evenly.tolist(), *_mapped(snapshots)})


def _mapped(snapshots: Sequence[Snapshot]) -> list[int]:
    """Return the positions of the snapshots that get a map."""
    last = len(snapshots) - 1
    ends = [place for place in range(last) if snapshots[place].stage != snapshots[place + 1].stage]
    first = [place for place, each in enumerate(snapshots) if each.epoch <= FIRST_MAPS]
    return sorted({0, *first, *ends, last})


def _map(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a map of the vectors: t-SNE in two dimensions."""
    import numpy as np
    from sklearn.manifold import TSNE

    if len(vectors) < 3:
        return np.zeros((len(vectors), 2), dtype=np.float32)
    model = TSNE(perplexity=min(30.0, (len(vectors) - 1) / 3), init="pca", random_state=SAMPLE_SEED)
    return np.asarray(model.fit_transform(vectors.astype(np.float32)), dtype=np.float32)
