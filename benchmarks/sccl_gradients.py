"""How much each term of SCCL's objective weighs at the start, on StackOverflow titles with the default encoder.

    PYTHONPATH=src python benchmarks/sccl_gradients.py --out benchmarks/results/sccl_gradients.json

For one batch of frozen embeddings: the largest assignment probability of Eq. 3, and the gradient that eta times the
contrastive term and the clustering term put on an embedding. No label is used.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from coterie import SCCL, load_dataset
from coterie.clustering.kmeans import kmeans
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.weights import DEFAULT_MODEL
from coterie.methods.sccl import Clustering, InstanceCL, Projector
from coterie.text.augmentation.word_deletion import WordDeletion

TEXTS, BATCH, CLUSTERS = 2_000, 400, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    data = load_dataset("stackoverflow")
    rows = np.random.default_rng(0).permutation(len(data.texts))[:TEXTS]
    texts = [data.texts[i] for i in rows]
    default = SCCL(n_clusters=CLUSTERS)
    found = []
    for normalize, radius, alpha in (
        (True, 1.0, 1.0),
        (True, default.radius, 1.0),
        (True, default.radius, default.alpha),
        (False, 1.0, 1.0),
    ):
        encoder = TransformerEncoder.load(DEFAULT_MODEL, normalize=normalize, max_length=default.max_length)
        found.append(
            {"normalize": normalize, "radius": radius, "alpha": alpha, **measure(encoder, texts, radius, alpha)}
        )
        print(json.dumps(found[-1]), flush=True)
    content = {"date": datetime.now(UTC).date().isoformat(), "texts": TEXTS, "batch": BATCH, "measured": found}
    options.out.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def measure(encoder: TransformerEncoder, texts: list[str], radius: float, alpha: float) -> dict[str, float]:
    default = SCCL(n_clusters=CLUSTERS)
    embeddings = encoder.encode(texts)
    weights = torch.ones(BATCH)
    generator = np.random.default_rng(0)
    augmenter = WordDeletion(default.augmentation_ratio)
    first, second = (
        torch.from_numpy(encoder.encode(augmenter.augment(texts[:BATCH], generator))).requires_grad_() for _ in range(2)
    )
    projector = Projector(encoder.dimension, torch.Generator().manual_seed(0))
    contrast = InstanceCL(projector, default.temperature, default.eta).contrast(first, second, weights)
    (instance_gradient,) = torch.autograd.grad(default.eta * contrast, first)

    centers = torch.from_numpy(kmeans(embeddings, CLUSTERS).centers)
    clustering = Clustering(centers, alpha, radius)
    anchor = torch.from_numpy(embeddings[:BATCH]).requires_grad_()
    (cluster_gradient,) = torch.autograd.grad(clustering.cluster_loss(anchor, weights), anchor)
    by_instance, by_cluster = (float(g.norm(dim=1).mean()) for g in (instance_gradient, cluster_gradient))
    return {
        "mean_length": round(float(np.linalg.norm(embeddings, axis=1).mean()), 3),
        "largest_probability": round(float(clustering.assign(anchor.detach()).max(dim=1).values.mean()), 4),
        "contrastive_over_clustering_gradient": round(by_instance / by_cluster, 1),
    }


if __name__ == "__main__":
    main()
