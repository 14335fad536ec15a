"""The embedded topic model of DECCRL: topics computed from cluster centres explain the words of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from coterie.errors import InputError
from coterie.losses.nt_xent import weighted_mean
from coterie.methods.networks import linear
from coterie.training.objective import Batch, EmbedCorpus, LossTerms, Objective
from coterie.types import Topic

# Width of the hidden layer, which the paper does not give.
HIDDEN = 800
# Words listed per topic.
TOP_WORDS = 4
# Length of the topic vectors relative to that of the cluster centres, when topics are trained alone.
TOPIC_SPREAD = 2.0


@dataclass(frozen=True)
class WordCounts:
    """The words of a vocabulary that each text holds, and how often: ``N x W``, padded with count 0."""

    vocabulary: tuple[str, ...]
    words: NDArray[np.int64]
    counts: NDArray[np.float32]
    sentences: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls, texts: Sequence[str], weights: NDArray[np.int64], *, min_df: int, max_df: float, stop_words: str | None
    ) -> WordCounts:
        """Count the words that at least ``min_df`` texts and at most a share ``max_df`` of them hold."""
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(stop_words=stop_words)
        analyse = counter.build_analyzer()
        sentences = tuple(tuple(analyse(text)) for text in texts)
        frequency: dict[str, int] = {}
        for sentence, weight in zip(sentences, weights, strict=True):
            for word in set(sentence):
                frequency[word] = frequency.get(word, 0) + int(weight)
        most = max_df * int(weights.sum())
        vocabulary = tuple(sorted(word for word, count in frequency.items() if min_df <= count <= most))
        if not vocabulary:
            raise InputError(
                f"no word occurs in at least min_df={min_df} and at most max_df={max_df:g} of the texts"
                f"{' (stop words excluded)' if stop_words else ''}, so there is nothing to learn topics from; "
                "lower min_df, or use variant='none'"
            )
        place = {word: i for i, word in enumerate(vocabulary)}
        rows = []
        for sentence in sentences:
            found: dict[int, int] = {}
            for word in sentence:
                if word in place:
                    found[place[word]] = found.get(place[word], 0) + 1
            rows.append(found)
        width = max(1, max(map(len, rows)))
        words = np.zeros((len(texts), width), dtype=np.int64)
        counts = np.zeros((len(texts), width), dtype=np.float32)
        for i, found in enumerate(rows):
            words[i, : len(found)] = list(found.keys())
            counts[i, : len(found)] = list(found.values())
        return cls(vocabulary, words, counts, sentences)


class EmbeddedTopics(nn.Module):
    """Generative and inference part (Eq. 10-15).

    Parameters
    ----------
    counts:
        The words of all texts.
    vectors:
        rho, one row per word of the vocabulary; trained too where ``learned``.
    latent:
        L, the size of a cluster centre.
    n_topics:
        T.
    """

    def __init__(
        self, counts: WordCounts, vectors: Tensor, learned: bool, latent: int, n_topics: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        size, width = vectors.shape
        self._vocabulary = counts.vocabulary
        self.register_buffer("words", torch.from_numpy(counts.words), persistent=False)
        self.register_buffer("counts", torch.from_numpy(counts.counts), persistent=False)
        self.words: Tensor
        self.counts: Tensor
        self.vectors = nn.Parameter(vectors.clone(), requires_grad=learned)
        self.topic_vectors = nn.Parameter(torch.randn(n_topics, latent, generator=generator) * latent**-0.5)
        self.generate = linear(2 * latent, width, generator)
        self.infer = linear(size, HIDDEN, generator)
        self.mean, self.log_variance = (linear(HIDDEN, n_topics, generator) for _ in range(2))

    def topic_words(self, centers: Tensor) -> Tensor:
        """Return beta, ``K x T x V``: the word probabilities of each topic of each cluster."""
        k, t = len(centers), len(self.topic_vectors)
        pairs = torch.cat([centers[:, None].expand(-1, t, -1), self.topic_vectors[None].expand(k, -1, -1)], dim=-1)
        topics = self.generate(pairs)  # Eq. 10
        return (topics @ self.vectors.T).softmax(dim=-1)  # Eq. 11

    def proportions(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of the unnormalised topic proportions of texts, from their words."""
        bag = torch.zeros(len(rows), len(self.vectors), dtype=self.counts.dtype, device=rows.device)
        bag.scatter_add_(1, self.words[rows], self.counts[rows])
        hidden = torch.relu(self.infer(bag / bag.sum(dim=1, keepdim=True).clamp_min(1)))
        return self.mean(hidden), self.log_variance(hidden)

    def loss(self, assignments: Tensor, centers: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
        """Return the negative ELBO per word (Eq. 15), a mean over the texts with a word of the vocabulary."""
        mean, log_variance = self.proportions(rows)
        noise = torch.randn_like(mean) if self.training else torch.zeros_like(mean)
        return negative_elbo(
            assignments,
            self.topic_words(centers),
            mean,
            log_variance,
            noise,
            self.words[rows],
            self.counts[rows],
            weights,
        )

    @torch.no_grad()
    def topics(self, centers: Tensor, labels: Tensor, weights: Tensor, n_words: int = TOP_WORDS) -> list[list[Topic]]:
        """Return the topics of each cluster, the most common first."""
        beta = self.topic_words(centers)
        proportions = torch.cat([self.proportions(rows)[0].softmax(dim=-1) for rows in _blocks(labels)])
        listed = []
        # A text without any word of the vocabulary has no topics.
        has_words = self.counts.sum(dim=1) > 0
        for k in range(len(centers)):
            mine = (labels == k) & has_words
            share = (
                (proportions[mine] * weights[mine, None]).sum(dim=0) / weights[mine].sum()
                if bool(mine.any())
                else torch.full((beta.shape[1],), 1 / beta.shape[1], device=beta.device)
            )
            topics = []
            for t in share.argsort(descending=True).tolist():
                best = beta[k, t].topk(min(n_words, len(self._vocabulary)))
                names = tuple(self._vocabulary[i] for i in best.indices.tolist())
                topics.append(Topic(names, tuple(best.values.tolist()), float(share[t])))
            listed.append(topics)
        return listed


def _blocks(labels: Tensor, size: int = 4_096) -> tuple[Tensor, ...]:
    return torch.arange(len(labels), device=labels.device).split(size)


def negative_elbo(
    assignments: Tensor,
    beta: Tensor,
    mean: Tensor,
    log_variance: Tensor,
    noise: Tensor,
    words: Tensor,
    counts: Tensor,
    weights: Tensor,
) -> Tensor:
    """Return Eq. 15 per word, each text decoded by the mixture of its clusters' topics; mean over texts with words."""
    theta = (mean + noise * (log_variance / 2).exp()).softmax(dim=-1)  # Eq. 14
    mixture = (assignments[:, :, None] * theta[:, None, :]).flatten(1) @ beta.flatten(
        0, 1
    )  # Eq. 12-13, sum over k of o_ik
    tiny = torch.finfo(mixture.dtype).tiny
    likelihood = (counts * mixture.gather(1, words).clamp_min(tiny).log()).sum(dim=1)  # Eq. 13
    divergence = (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=1) / 2
    lengths = counts.sum(dim=1)
    texts = (divergence - likelihood) / lengths.clamp_min(1)  # Eq. 15
    known = weights * (lengths > 0)
    return (texts * known).sum() / known.sum().clamp_min(tiny)  # Eq. 15, mean over texts


class TopicsAlone(Objective):
    """Eq. 15 with encoder, centres and assignments fixed: topics of the final clusters."""

    views = ()
    trains_encoder = False

    def __init__(self, guide: EmbeddedTopics, centers: Tensor, assignments: Tensor, learning_rate: float) -> None:
        super().__init__()
        self.guide = guide
        self._learning_rate = learning_rate
        self.register_buffer("centers", centers.detach().clone(), persistent=False)
        self.register_buffer("assignments", assignments.detach(), persistent=False)
        self.centers: Tensor
        self.assignments: Tensor

    def own_rates(self) -> dict[str, float]:
        return {"guide": self._learning_rate}

    @torch.no_grad()
    def start(self, embed_corpus: EmbedCorpus) -> None:
        """Scale the topic vectors to the length of the centres, so that the topics of a cluster differ clearly."""
        topics = self.guide.topic_vectors
        length = TOPIC_SPREAD * self.centers.norm(dim=1).mean()
        topics.mul_(length / topics.norm(dim=1, keepdim=True).clamp_min(1e-12))

    def loss(self, batch: Batch) -> LossTerms:
        topics = self.guide.loss(self.assignments[batch.rows], self.centers, batch.rows, batch.weights)
        return LossTerms(topics, topics=topics)


class LatentReconstruction(nn.Module):
    """The alternative of Table 3 (LSR): h is reconstructed from half of its width."""

    def __init__(self, latent: int, generator: torch.Generator) -> None:
        super().__init__()
        self.squeeze = linear(latent, max(1, latent // 2), generator)
        self.rebuild = linear(max(1, latent // 2), latent, generator)

    def loss(self, latent: Tensor, weights: Tensor) -> Tensor:
        rebuilt = self.rebuild(torch.relu(self.squeeze(latent)))
        return weighted_mean((rebuilt - latent).square().mean(dim=1), weights)
