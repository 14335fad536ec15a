"""Fixtures that many tests share: a tiny encoder with random weights, and short texts on three topics."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

# One thread: tiny models are not faster with more, and much slower on busy cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Columns of the terminal that commands wrap their output to; a test process may have no terminal.
os.environ["COLUMNS"] = "120"
# No test downloads from a model hub.
os.environ["HF_HUB_OFFLINE"] = "1"
# Collection makes millions of objects that all live to the end: searching them for cycles frees nothing.
gc.disable()

TOPICS = {
    "parcel": ["parcel", "late", "courier", "delivery", "tracking", "depot", "shipped", "doorstep"],
    "password": ["password", "login", "account", "reset", "locked", "username", "code", "email"],
    "refund": ["refund", "money", "bank", "paid", "invoice", "card", "charged", "returned"],
}
FILLERS = ["my", "the", "is", "still", "please", "again", "not", "why", "today", "help"]


def topic_texts(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return ``n`` distinct short texts and the topic of each, the three topics in turn."""
    generator = np.random.default_rng(seed)
    topics = list(TOPICS)
    texts: dict[str, str] = {}
    while len(texts) < n:
        topic = topics[len(texts) % len(topics)]
        words = [*generator.choice(TOPICS[topic], 3, replace=False), *generator.choice(FILLERS, 2, replace=False)]
        texts.setdefault(" ".join(generator.permutation(words)), topic)
    return list(texts), list(texts.values())


# Tests that `make test-fast` leaves out: they start processes or a browser, use the real encoder, or take long.
SLOW_FILES = (
    "benchmark/test_augmentation_cosines.py",
    "benchmark/test_papers_*.py",
    "benchmark/test_ranking_sets.py",
    "benchmark/test_reclustering.py",
    "benchmark/test_runner.py",
    "benchmark/test_sampled_runs.py",
    "benchmark/test_traces.py",
    "browser/*.py",
    "cli/test_demo_command.py",
    "cli/test_fit_auto_k.py",
    "cli/test_processes.py",
    "docs/test_docs_examples.py",
    "clustering/test_optimal_transport.py",
    "encoders/test_model_loading.py",
    "encoders/test_packed_bert.py",
    "language/test_back_translation.py",
    "language/test_contextual.py",
    "methods/aecl/test_aecl.py",
    "methods/auto/test_auto.py",
    "methods/deccrl/test_deccrl.py",
    "methods/test_clusterbert.py",
    "methods/test_cost_estimate.py",
    "methods/test_uftc.py",
    "metrics/external/test_significance.py",
    "report/plots/test_plots.py",
    "report/test_map_projection.py",
    "report/test_report_size.py",
    "test_end_to_end.py",
    "test_release.py",
    "training/test_cost.py",
    "training/test_recorded.py",
    "training/test_stages_and_looks.py",
    "training/test_view_worker_pool.py",
    "training/test_views.py",
)
# Of tests that every method goes through, `make test-fast` keeps those of one method of each kind: words, the frozen
# encoder, one that trains the encoder, a network over fixed vectors.
FAST_METHODS = {"tfidf", "frozen", "sccl", "dec"}


TESTS = Path(__file__).parent
# Where each test has a case of every method, and the parameters that name it.
OF_EVERY_METHOD = {"contract/*.py", "cli/test_fit_command.py"}
METHOD_PARAMETERS = ("case", "method_case", "encoder_case", "folder_case", "trained_case", "method")


def _is_slow(item: pytest.Item) -> bool:
    if not item.path.is_relative_to(TESTS):
        return True  # an example in the sources
    path = item.path.relative_to(TESTS)
    if any(path.match(pattern) for pattern in SLOW_FILES):
        return True
    if not (isinstance(item, pytest.Function) and any(path.match(pattern) for pattern in OF_EVERY_METHOD)):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    named = {str(parameters[name]).partition("-")[0] for name in METHOD_PARAMETERS if name in parameters}
    return not named <= FAST_METHODS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests."""
    for item in items:
        if _is_slow(item):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Exclude the modules and tests loaded so far from garbage collection, and turn it on for what tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()


# Steps of t-SNE for a map whose looks no test asks about: the fewest that scikit-learn allows.
FEWEST_MAP_STEPS = 250


@pytest.fixture(scope="session", autouse=True)
def full_map_steps() -> Iterator[int]:
    """Make maps quick in all tests; return the steps they have otherwise, for tests that need them."""
    from coterie.report import projection

    steps = projection.TSNE_STEPS
    projection.TSNE_STEPS = FEWEST_MAP_STEPS
    yield steps
    projection.TSNE_STEPS = steps


@pytest.fixture
def full_maps(full_map_steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make maps with as many steps as a user's have."""
    monkeypatch.setattr("coterie.report.projection.TSNE_STEPS", full_map_steps)


def speed_up_lexical_views(patch: pytest.MonkeyPatch) -> None:
    """Train the lexical views of the default method for a tenth of the usual steps, in few dimensions."""
    from functools import partial

    from coterie.methods.lexical import ensemble, view
    from coterie.methods.lexical.network import LexicalConfig

    quick = partial(LexicalConfig, hidden=64, dimension=16, min_steps=60, max_steps=60, batch_size=32)
    patch.setattr(ensemble, "LexicalConfig", quick)
    patch.setattr(view, "LexicalConfig", quick)


@pytest.fixture(scope="module")
def quick_lexical_views() -> Iterator[None]:
    """Make the lexical views of the default method quick, for tests that do not depend on how good they are."""
    with pytest.MonkeyPatch.context() as patch:
        speed_up_lexical_views(patch)
        yield


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a randomly initialised BERT of two layers with a word-level WordPiece tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    words = [*FILLERS, *(word for topic in TOPICS.values() for word in topic)]
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters, *(f"##{c}" for c in letters)]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def run_folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder with a report; tests only read it."""
    from made_run import make_run

    return make_run(tmp_path_factory.mktemp("made"), tiny_encoder)
