"""A trained lexical view: vectors of texts by their words, learned without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coterie.clustering.kmeans import unit_rows
from coterie.clustering.nearest import nearest
from coterie.encoders.bag_of_words import BagOfWordsEncoder
from coterie.errors import InputError
from coterie.methods.baselines.stacked import adam
from coterie.methods.lexical.network import (
    DenseRows,
    LexicalConfig,
    LexicalNetwork,
    PseudoLabelBatch,
    SparseRows,
    rows_on_device,
)
from coterie.training.history import History
from coterie.training.objective import LossTerms
from coterie.training.vectors import VectorTrainer

# Most words of the vocabulary, the most frequent ones: COTC's number (Li et al., EMNLP 2024).
MAX_WORDS = 2_048
# Texts per forward pass, which bounds the memory of the hidden layer.
TEXTS_AT_A_TIME = 4_096


class LexicalView:
    """TF-IDF words and a trained network over them.

    Parameters
    ----------
    words:
        The vocabulary and its weights.
    network:
        Turns TF-IDF rows into latent vectors.

    Examples
    --------
    >>> import numpy as np
    >>> texts = ["late parcel", "parcel is late", "forgot my password", "password reset"]
    >>> view = LexicalView.fit(texts, np.ones(4, dtype=np.int64), seed=0)
    >>> view.encode(["my parcel", "hello"]).shape
    (2, 128)
    """

    def __init__(self, words: BagOfWordsEncoder, network: LexicalNetwork) -> None:
        self.words = words
        self.network = network

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        counts: NDArray[np.int64],
        *,
        semantic_neighbours: NDArray[np.int64] | None = None,
        pseudo_labels: PseudoLabels | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        max_words: int = MAX_WORDS,
        config: LexicalConfig | None = None,
        history: History | None = None,
        begin_with: LexicalView | None = None,
    ) -> LexicalView:
        """Train the view on distinct texts, without labels.

        The positive of a text is one of its nearest texts by TF-IDF or, with ``semantic_neighbours``, one of either
        kind at random. Texts without a known word are not trained on.

        Parameters
        ----------
        counts:
            How often each text occurs.
        semantic_neighbours:
            ``texts x K``: for each text the rows of its nearest texts in another view.
        pseudo_labels:
            Clusters by another view, which the latent vectors learn to predict.
        seed:
            The same seed gives the same view on the same device.
        max_words:
            Most words of the vocabulary.
        config:
            How the network is built and trained; ``None`` for the defaults.
        history:
            Receives the loss terms of every step.
        begin_with:
            A view of the same texts, whose words and weights training begins with.

        Raises
        ------
        InputError
            If no text has a word of at least two letters.
        """
        config = LexicalConfig() if config is None else config
        history = History() if history is None else history
        device = torch.device(device)
        words = fit_words(texts, counts, max_words) if begin_with is None else begin_with.words
        tfidf = words.encode(texts).tocsr()
        known = np.flatnonzero(tfidf.getnnz(axis=1))
        rows = tfidf[known]
        generator = torch.Generator().manual_seed(seed)
        network = LexicalNetwork(words.dimension, config.hidden, config.dimension, generator).to(device)
        if begin_with is not None:
            network.load_state_dict(begin_with.network.state_dict())
        positives = Positives.build(rows, known, semantic_neighbours, config.neighbours, device)
        weights = torch.from_numpy(counts[known].astype(np.float32)).to(device)
        labels = None if pseudo_labels is None else pseudo_labels.of_rows(known, device)
        _train(network, rows_on_device(rows, device), positives, weights, config, seed, history, labels)
        return cls(words, network)

    @torch.no_grad()
    def encode(self, texts: Sequence[str], at_a_time: int = TEXTS_AT_A_TIME) -> NDArray[np.float32]:
        """Return the latent means of texts, scaled to unit length; zeros for a text without a known word.

        The last digits of a vector can depend on the batch, unless ``at_a_time`` is 1.
        """
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not len(texts):
            return vectors
        tfidf = self.words.encode(texts).tocsr()
        known = np.flatnonzero(tfidf.getnnz(axis=1))
        if len(known):
            vectors[known] = _latent_means(self.network, SparseRows(tfidf[known], self.device), at_a_time).cpu().numpy()
        units: NDArray[np.float32] = unit_rows(vectors)
        return units

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return len(self.network.mean.bias)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return self.network.first_weight.device

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything as plain arrays; the words are the bytes of one UTF-8 text with a word per line."""
        assert self.words.idf is not None
        in_order = sorted(self.words.vocabulary, key=self.words.vocabulary.__getitem__)
        letters = np.frombuffer("\n".join(in_order).encode(), dtype=np.uint8)
        return {"words": letters, "idf": self.words.idf, **self.network.arrays()}

    @classmethod
    def restore(cls, state: Mapping[str, NDArray[Any]], device: torch.device | str = "cpu") -> LexicalView:
        """Return the view that has this :meth:`state`."""
        in_order = state["words"].tobytes().decode().split("\n")
        words = BagOfWordsEncoder({word: i for i, word in enumerate(in_order)}, state["idf"])
        weights = {name: array for name, array in state.items() if name not in {"words", "idf"}}
        return cls(words, LexicalNetwork.from_arrays(weights).to(device))


@dataclass(frozen=True)
class PseudoLabels:
    """Clusters of texts by another view.

    Attributes
    ----------
    targets:
        ``texts x K``, probability of each cluster.
    trust:
        How much the clusters of each text are trusted, from 0 to 1.
    """

    targets: NDArray[np.float32]
    trust: NDArray[np.float32]

    def of_rows(self, rows: NDArray[np.int64], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return targets and trust of some texts as tensors."""
        return torch.from_numpy(self.targets[rows]).to(device), torch.from_numpy(self.trust[rows]).to(device)


class Positives:
    """The texts that may be a text's positive, and a random choice among them.

    Parameters
    ----------
    candidates:
        ``texts x most``: the candidates of each text come first.
    numbers:
        How many candidates each text has, at least 1.
    """

    def __init__(self, candidates: Tensor, numbers: Tensor) -> None:
        self.candidates = candidates
        self.numbers = numbers

    @classmethod
    def build(
        cls,
        rows: Any,
        known: NDArray[np.int64],
        semantic_neighbours: NDArray[np.int64] | None,
        count: int,
        device: torch.device,
    ) -> Positives:
        """Return the candidates: the ``count`` nearest texts that share a word, and the neighbours of another view.

        Parameters
        ----------
        rows:
            Sparse TF-IDF rows of the texts that are trained on.
        known:
            Their places among all texts, to which ``semantic_neighbours`` refers.
        """
        n_rows = len(known)
        parts = [np.zeros((n_rows, 0), dtype=np.int64)]
        if (count := min(count, n_rows - 1)) > 0:
            near, cosines = nearest(rows, count, device)
            parts.append(np.where(cosines > 0, near, -1))
        if semantic_neighbours is not None:
            places = np.full(len(semantic_neighbours), -1)
            places[known] = np.arange(n_rows)
            parts.append(places[semantic_neighbours[known]])
        # Without any neighbour a text is its own positive.
        table = np.concatenate(parts, axis=1)
        lonely = ~(table >= 0).any(axis=1)
        table = np.column_stack([np.where(lonely, np.arange(n_rows), -1), table])
        table = np.take_along_axis(table, np.argsort(table < 0, axis=1, kind="stable"), axis=1)
        numbers = (table >= 0).sum(axis=1)
        return cls(torch.from_numpy(table[:, : numbers.max()]).to(device), torch.from_numpy(numbers).to(device))

    def sample(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return one candidate of each of the texts ``rows``, uniformly."""
        numbers = self.numbers[rows]
        share = torch.rand(len(rows), generator=generator, device=rows.device)
        # A share just below 1 may be rounded up.
        chosen = torch.minimum((share * numbers).long(), numbers - 1)
        return self.candidates[rows, chosen]


def fit_words(texts: Sequence[str], counts: NDArray[np.int64], max_words: int) -> BagOfWordsEncoder:
    """Return TF-IDF over the most frequent words without English stop words; with them where there are no others."""
    try:
        return BagOfWordsEncoder.fit(texts, counts, max_features=max_words, stop_words="english", weighting="tfidf")
    except InputError:
        return BagOfWordsEncoder.fit(texts, counts, max_features=max_words, stop_words=None, weighting="tfidf")


@torch.no_grad()
def _latent_means(network: LexicalNetwork, rows: SparseRows | DenseRows, at_a_time: int = TEXTS_AT_A_TIME) -> Tensor:
    device = network.first_weight.device
    blocks = [
        network.latent_means(
            network.hidden_states(rows.batch(torch.arange(begin, min(begin + at_a_time, len(rows)), device=device)))
        )
        for begin in range(0, len(rows), at_a_time)
    ]
    return torch.cat(blocks)


def _train(
    network: LexicalNetwork,
    rows: SparseRows | DenseRows,
    positives: Positives,
    weights: Tensor,
    config: LexicalConfig,
    seed: int,
    history: History,
    labels: tuple[Tensor, Tensor] | None,
) -> None:
    device = network.first_weight.device
    generator = torch.Generator(device=device).manual_seed(seed)
    parameters, centers = list(network.parameters()), None
    if labels is not None:
        # The centres begin at the mean latent vectors of the clusters.
        centers = torch.nn.Parameter(labels[0].T @ _latent_means(network, rows))
        parameters.append(centers)
    optimizer = adam(parameters, config.learning_rate)

    def loss(texts: Tensor) -> LossTerms:
        batch = rows.batch(torch.cat([texts, positives.sample(texts, generator)]))
        here = None
        if labels is not None and centers is not None:
            here = PseudoLabelBatch(centers, labels[0][texts], labels[1][texts])
        return network.loss(batch, weights[texts], config, generator, here)

    steps_per_epoch = -(-len(rows) // config.batch_size)
    steps = min(max(config.min_steps, config.epochs * steps_per_epoch), config.max_steps)
    trainer = VectorTrainer(len(rows), config.batch_size, device, seed, history)
    # Batches of sparse rows differ in shape and cannot be recorded.
    generators = [generator] if isinstance(rows, DenseRows) else None
    trainer.run("lexical", loss, optimizer, steps, generators=generators)
