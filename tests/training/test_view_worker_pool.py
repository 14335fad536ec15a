"""The worker processes by themselves: what they load, what can be sent to them, when they end."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import topic_texts
from tokenizers import Tokenizer, models, pre_tokenizers

from coterie.encoders.tokenization import tokenize
from coterie.text.augmentation.base import Augmenter
from coterie.text.augmentation.char_swap import CharSwap
from coterie.text.augmentation.composition import Composition
from coterie.text.augmentation.eda import EDA
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training import view_worker_pool
from coterie.training.view_worker_pool import ViewWorkerPool
from coterie.training.worker_protocol import (
    describe_augmenter,
    pack_texts,
    rebuild_augmenter,
    receive,
    send,
    unpack_texts,
)

SOURCE = Path(__file__).parents[2] / "src"
SECONDS = 60.0
TEXTS = [*topic_texts(40)[0], "", "  ", "[MASK] a", "ü 中 \U0001f600", "a\nb"]


def _tokenizer() -> Tokenizer:
    words = sorted({word for text in TEXTS for word in text.split()})
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["[UNK]", *words])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["[MASK]"])
    return tokenizer


def _run(code: str, folder: Path, timeout: float = SECONDS) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=timeout, check=False
    )


def test_a_worker_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = ("torch", "transformers", "sklearn", "scipy", "pandas", "pyarrow", "huggingface_hub")
    code = (
        "import sys, coterie.training.view_worker\n"
        "from coterie.text.augmentation.eda import EDA\n"
        "EDA().augment(['where is the parcel'] * 9, __import__('numpy').random.default_rng(0))\n"
        f"print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    run = _run(code, tmp_path)
    assert (run.stdout.strip(), run.stderr) == ("", "")


# --- What is sent ---


def test_a_message_comes_back_as_it_was_sent() -> None:
    stream = io.BytesIO()
    send(stream, {"name": "a\nb", "seed": [1, 2**70]}, b"\x00\nraw", b"")
    send(stream, {"last": True})
    stream.seek(0)
    assert receive(stream) == ({"name": "a\nb", "seed": [1, 2**70]}, [b"\x00\nraw", b""])
    assert receive(stream) == ({"last": True}, [])
    with pytest.raises(EOFError):
        receive(stream)


@pytest.mark.parametrize("missing", [1, 4, 20])
def test_half_a_message_is_an_end(missing: int) -> None:
    stream = io.BytesIO()
    send(stream, {"name": "x"}, b"1234")
    with pytest.raises(EOFError):
        receive(io.BytesIO(stream.getvalue()[:-missing]))


def test_texts_of_any_kind_travel() -> None:
    texts = [*TEXTS, "half a pair \ud83d", "\x00", "é"]
    assert unpack_texts(*pack_texts(texts)) == texts
    assert unpack_texts(*pack_texts([])) == []


@dataclass(frozen=True)
class Listed(WordDeletion):
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Remembering(WordDeletion):
    def __post_init__(self) -> None:
        object.__setattr__(self, "seen", 3)


class Redefined(WordDeletion):
    """Hidden below by another class of its name."""


HIDDEN = Redefined(0.3)


class Redefined(WordDeletion):  # type: ignore[no-redef]
    pass


@dataclass(frozen=True)
class Holding(WordDeletion):
    held: Any = None


@pytest.mark.parametrize(
    "augmenter",
    [
        WordDeletion(0.1),
        EDA(0.3, operations=("swap", "deletion")),
        Composition(WordDeletion(0.2), Composition(CharSwap(0.1), EDA())),
        Holding(held=("a", ("b", 2.5, None))),
    ],
    ids=lambda augmenter: augmenter.describe()[:20],
)
def test_augmenters_travel_as_plain_data(augmenter: Augmenter) -> None:
    described = describe_augmenter(augmenter)
    assert described is not None
    again = rebuild_augmenter(described)
    assert again == augmenter
    assert again.describe() == augmenter.describe()
    texts = TEXTS[:20]
    assert again.augment(texts, np.random.default_rng(3)) == augmenter.augment(texts, np.random.default_rng(3))


@pytest.mark.parametrize(
    "augmenter",
    [Listed(words=["a"]), Remembering(), HIDDEN, Holding(held=object()), Holding(held=lambda text: text),
     Holding(held=float("nan")), Composition(WordDeletion(), Remembering())],
    ids=["a list", "more than its settings", "hidden", "an object", "a function", "not itself", "inside"],
)  # fmt: skip
def test_augmenters_that_would_be_others_do_not_travel(augmenter: Augmenter) -> None:
    assert describe_augmenter(augmenter) is None


def test_the_users_script_is_not_run_twice(tmp_path: Path) -> None:
    code = """
from dataclasses import dataclass
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.view_worker_pool import ViewWorkerPool
from coterie.training.worker_protocol import describe_augmenter
from tokenizers import Tokenizer, models

@dataclass(frozen=True)
class Own(WordDeletion):
    pass

print("the script")
tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
pool = ViewWorkerPool(1, ["a b c"], {"own": Own(), "other": WordDeletion()}, tokenizer, 9)
request = ("other", (0, 0, 0))
pool.submit(request)
pool._requested[request].exception(60)
print(describe_augmenter(Own()), sorted(pool.names), pool.take(request).tokens.ids.dtype)
"""
    run = _run(code, tmp_path)
    assert (run.stdout.splitlines(), run.stderr) == (["the script", "None ['other'] int32"], "")


# --- What comes back ---


def test_a_worker_tokenises_as_this_process_does() -> None:
    for encode_special_tokens in (False, True):
        tokenizer = _tokenizer()
        tokenizer.encode_special_tokens = encode_special_tokens
        pool = ViewWorkerPool(1, TEXTS, {"view": WordDeletion(0.2)}, tokenizer, 3)
        request = ("view", (4, 0, 2))
        pool.submit(request)
        pool._requested[request].exception(SECONDS)
        view = pool.take(request)
        pool.close()
        assert view is not None
        expected = tokenize(tokenizer, WordDeletion(0.2).augment(TEXTS, np.random.default_rng([4, 0, 2])), 3)
        assert view.tokens.truncated == expected.truncated > 0
        for name in ("ids", "starts", "lengths"):
            array, other = getattr(view.tokens, name), getattr(expected, name)
            assert array.dtype == other.dtype and array.tolist() == other.tolist()
            assert array.flags.writeable  # torch warns of others


class Slow:
    is_fast = False


class Unsayable:
    """A tokenizer with parts in Python, which have no JSON."""

    is_fast = True

    @property
    def backend_tokenizer(self) -> Any:
        tokenizer = _tokenizer()
        tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(self)
        return tokenizer

    def pre_tokenize(self, pretok: Any) -> None:
        return


@pytest.mark.parametrize("tokenizer", [Slow(), Unsayable()], ids=["slow", "unsayable"])
def test_tokenizers_that_do_not_travel_have_no_workers(tokenizer: Any) -> None:
    pool = ViewWorkerPool(2, TEXTS, {"view": WordDeletion(0.2)}, tokenizer, 9)
    request = ("view", (0, 0, 0))
    pool.submit(request)
    assert not pool.has_begun(request)
    assert pool._workers._processes == []
    pool.close()


def test_a_worker_that_cannot_be_started_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="coterie")
    monkeypatch.setattr(view_worker_pool.sys, "executable", "/no/such/python")
    pool = ViewWorkerPool(2, TEXTS, {"view": WordDeletion(0.2)}, _tokenizer(), 9)
    pool.submit(("view", (0, 0, 0)))
    assert not pool.has_begun(("view", (0, 0, 0)))
    assert "no worker can be started" in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_worker_ignores_ctrl_c_and_ends_with_its_requests() -> None:
    command = [sys.executable, "-m", "coterie.training.view_worker"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        header = {
            "augmenters": {"view": describe_augmenter(WordDeletion(0.2))},
            "max_length": 9,
            "encode_special_tokens": False,
        }
        send(worker.stdin, header, *pack_texts(TEXTS), _tokenizer().to_str().encode("utf-8"))
        assert receive(worker.stdout) == ({"ready": True}, [])
        worker.send_signal(signal.SIGINT)
        send(worker.stdin, {"name": "view", "seed": [1, 2]})
        answer, parts = receive(worker.stdout)
        assert 0 < answer["unchanged"] < 1
        assert len(parts) == 2
        worker.stdin.close()
        assert worker.wait(SECONDS) == 0
        assert worker.stdout.read() == b""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_workers_end_with_the_training_process(tmp_path: Path) -> None:
    code = """
import os, signal
from coterie.text.augmentation.word_deletion import WordDeletion
from coterie.training.view_worker_pool import ViewWorkerPool
from tokenizers import Tokenizer, models

tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
pool = ViewWorkerPool(2, ["a b c"], {"view": WordDeletion()}, tokenizer, 9)
request = ("view", (0, 0, 0))
pool.submit(request)
pool._requested[request].exception(60)
print(*[process.pid for process in pool._workers._processes], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = _run(code, tmp_path)
    workers = [int(pid) for pid in run.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + SECONDS
    # A process that has ended but that nobody has taken note of still has an entry.
    while any(_runs(worker) for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert run.stderr == ""


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
