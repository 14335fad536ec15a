"""How the embeddings of some texts moved while a method was trained: what the papers' curves and maps show.

A fitting process saves the embeddings of a fixed sample of texts at every snapshot, and their maps; it knows no labels.
What labels say about them is computed afterwards, and only that is kept. Of a ranking set all texts are saved, and how
well their embeddings rank is kept.
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

# Texts of a trace, the same for every method and seed.
SAMPLE, SAMPLE_SEED = 1_000, 0
# Maps are drawn of the start, of so many epochs after it, of the end of every stage and of the end.
FIRST_MAPS = 5
# Snapshots of a trace at most, evenly over the training: what is saved on the way grows with them.
MOST_SNAPSHOTS = 40
RANKING_MEASURES = ("map", "mrr")


def save_trace(
    path: Path, places: NDArray[np.int64], snapshots: Sequence[Snapshot], *, whole: bool = False
) -> list[dict[str, Any]]:
    """Save the sample's embeddings and maps, or with ``whole`` the embeddings of all texts; what the snapshots are.

    ``places`` tells for every row which text of the snapshots it is; -1 for those that were not learned on.
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
    told = [snapshots[place] for place in chosen]
    return [
        {"stage": each.stage, "epoch": each.epoch, "step": each.step, "mapped": place in mapped}
        for place, each in enumerate(told)
    ]


def sampled_rows(n_rows: int) -> NDArray[np.int64]:
    """The rows of a trace, in their order."""
    import numpy as np

    return np.sort(np.random.default_rng(SAMPLE_SEED).permutation(n_rows)[:SAMPLE])


def trace_of(path: Path, snapshots: Sequence[dict[str, Any]], data: Loaded) -> dict[str, Any]:
    """What labels say about the sample at every snapshot, and its maps with the class of each text."""
    import numpy as np
    from safetensors.numpy import load_file

    arrays = load_file(path)
    if data.questions:
        told_with = zip(snapshots, arrays["vectors"], strict=True)
        found = [{**told, **ranking_measures(vectors, data.questions)} for told, vectors in told_with]
        return {"texts": len(data.texts), "questions": len(data.questions), "snapshots": found}
    names = sorted(set(data.labels))
    classes = np.array([names.index(data.labels[row]) for row in arrays["rows"]])
    maps = iter(arrays["maps"])
    found = []
    for told, vectors, labels in zip(snapshots, arrays["vectors"], arrays["labels"], strict=True):
        each = {**told, **measures(vectors.astype(np.float64), labels, classes)}
        if told["mapped"]:
            each["map"] = np.round(next(maps), 2).tolist()
        found.append(each)
    return {"texts": len(classes), "classes": classes.tolist(), "class_names": names, "snapshots": found}


def ranking_measures(vectors: NDArray[np.floating[Any]], questions: Sequence[Question]) -> dict[str, float]:
    """``map`` and ``mrr`` in percent of candidates ranked by their cosine with the question; one vector a text."""
    import numpy as np

    from coterie.clustering.kmeans import unit_rows
    from coterie.metrics.external.ranking import evaluate_ranking

    units = unit_rows(vectors.astype(np.float64))
    near = [(units[list(each.candidates)] @ units[each.text], each.relevant) for each in questions]
    scores = evaluate_ranking(near)
    return {"map": round(100 * scores.map, 3), "mrr": round(100 * scores.mrr, 3)}


def ranking_scores(trace: dict[str, Any]) -> dict[str, dict[str, float] | None]:
    """Of a run on a ranking set: where it started and where it ended, in the place of scores of partitions."""
    first, last = ({name: trace["snapshots"][at][name] for name in RANKING_MEASURES} for at in (0, -1))
    return {"frozen": first, "head": None, "kmeans": None, "final": last, "oracle": None}


def measures(
    vectors: NDArray[np.float64], labels: NDArray[np.int64], classes: NDArray[np.int64]
) -> dict[str, float | None]:
    """Of one snapshot of the sample; ``None`` where there is nothing to compare, as in a single cluster.

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
    """The snapshot at the end of a stage; ``start`` is before the first."""
    of_stage = [each for each in trace["snapshots"] if each["stage"] == stage]
    return of_stage[-1] if of_stage else None


def _chosen(snapshots: Sequence[Snapshot]) -> list[int]:
    """All of them, or as many as are kept, those that are mapped always."""
    import numpy as np

    evenly = np.linspace(0, len(snapshots) - 1, min(MOST_SNAPSHOTS, len(snapshots))).round().astype(int)
    return sorted({*evenly.tolist(), *_mapped(snapshots)})


def _mapped(snapshots: Sequence[Snapshot]) -> list[int]:
    last = len(snapshots) - 1
    ends = [place for place in range(last) if snapshots[place].stage != snapshots[place + 1].stage]
    first = [place for place, each in enumerate(snapshots) if each.epoch <= FIRST_MAPS]
    return sorted({0, *first, *ends, last})


def _map(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """t-SNE in two dimensions."""
    import numpy as np
    from sklearn.manifold import TSNE

    if len(vectors) < 3:
        return np.zeros((len(vectors), 2), dtype=np.float32)
    model = TSNE(perplexity=min(30.0, (len(vectors) - 1) / 3), init="pca", random_state=SAMPLE_SEED)
    return np.asarray(model.fit_transform(vectors.astype(np.float32)), dtype=np.float32)
