"""What a training step costs, in counts that no machine changes: passes through the encoder, waits, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from conftest import topic_texts
from test_recorded import on_host
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from training_helpers import PAIR, MeanGap, prepare

import coterie.encoders.transformer as transformer_module
from coterie import AECL, DECCRL, RSTC, SCCL, UFTC, ClusterBERT, TrainingConfig
from coterie.encoders.device_tokens import DeviceTokens
from coterie.encoders.tokenization import TokenArrays, contiguous_tokens
from coterie.encoders.transformer import TransformerEncoder
from coterie.encoders.window_packing import plan_windows, window_width
from coterie.training.objective import ORIGINAL, Batch, LossTerms
from coterie.training.recorded import RecordedSteps, window_step
from coterie.training.steps import Steps, Work

BUDGETS = "coterie.training.steps.TOKENS_PER_TRAINING_FORWARD"
TEXTS, _ = topic_texts(60)

# Operations whose result's size, or whose result, the host has to know.
WAITING = {
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::nonzero_numpy",
    "aten::argwhere",
    "aten::masked_select",
    "aten::is_nonzero",
    "aten::equal",
    "aten::unique_dim",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
    "aten::bincount",
    "aten::lift_fresh",  # numbers of Python's made into a tensor: they would be copied to the device
}
# The same, where no operation shows it.
FETCHING = {torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.cpu, torch.Tensor.__array__}


class Waits(TorchDispatchMode):
    """Counts what would make a step wait for a GPU, or keep it from being recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self._fetches = _Fetches(self.found)

    def __enter__(self) -> Waits:
        self._fetches.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._fetches.__exit__(*error)

    def __torch_dispatch__(self, function: Any, types: Any, given: Any = (), options: Any = None) -> Any:
        options = options or {}
        name = function._schema.name
        if name in WAITING or self._depends_on_values(name, given, options):
            self.found[name] += 1
        return function(*given, **options)

    @staticmethod
    def _depends_on_values(name: str, given: Any, options: Any) -> bool:
        if name in {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}:
            return any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in given[1])
        if name == "aten::repeat_interleave":
            return options.get("output_size") is None
        if name in {"aten::_to_copy", "aten::copy_"}:
            devices = {each.device for each in given if isinstance(each, Tensor)}
            return len(devices | {torch.device(options.get("device") or given[0].device)}) > 1
        return False


class _Fetches(TorchFunctionMode):
    def __init__(self, found: Counter[str]) -> None:
        super().__init__()
        self._found = found

    def __torch_function__(self, function: Any, types: Any, given: Any = (), options: Any = None) -> Any:
        if function in FETCHING:
            self._found[function.__name__] += 1
        return function(*given, **(options or {}))


# --- The counter itself ---


@pytest.mark.parametrize(
    "waits",
    [
        lambda x: x.sum().item(),
        lambda x: float(x[0, 0].detach()),
        lambda x: bool(x.any()),
        lambda x: x.tolist(),
        lambda x: x.detach().cpu(),
        lambda x: x.detach().numpy(),
        lambda x: x[x > 0],
        lambda x: x.detach().clone().index_put_((x > 0,), torch.zeros(())),
        lambda x: (x > 0).nonzero(),
        lambda x: x.masked_select(x > 0),
        lambda x: x.unique(),
        lambda x: torch.equal(x, x),
        lambda x: torch.repeat_interleave(x, torch.ones(3, dtype=torch.long), dim=0),
        lambda x: x * torch.tensor([1.0, 2.0, 3.0]),
        lambda x: torch.where(x > 0)[0],
        lambda x: x.detach().to("meta"),
        lambda x: torch.empty(3, 3, device="meta").copy_(x.detach()),
    ],
)
def test_a_wait_is_seen(waits: Callable[[Tensor], object]) -> None:
    given = torch.randn(3, 3, requires_grad=True)
    with Waits() as counter:
        waits(given)
    assert counter.found


def test_a_wait_on_the_way_back_is_seen() -> None:
    class Backwards(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, given: Tensor) -> Tensor:
            return given * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * gradient.sum().item()

    with Waits() as counter:
        Backwards.apply(torch.ones(3, requires_grad=True)).sum().backward()
    assert counter.found == {"aten::_local_scalar_dense": 1}


def test_what_does_not_wait_is_not_counted() -> None:
    given, places = torch.randn(5, 3, requires_grad=True), torch.arange(5).flip(0)
    with Waits() as counter:
        result = torch.where(given > 0, given[places], 0).masked_fill(given > 1, 0.5)
        result = result + torch.repeat_interleave(given, torch.ones(5, dtype=torch.long), dim=0, output_size=5)
        result.to(torch.bfloat16).float().softmax(0).sum().backward()
    assert not counter.found


# --- Counting during a fit ---


@contextmanager
def _steps_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """For every step taken inside: its passes through the encoder, by kind, and its waits."""
    records: list[dict[str, Any]] = []
    inside: list[Waits] = []
    run_packed, forward = transformer_module.run_packed, TransformerEncoder.forward

    def count(kind: str) -> None:
        if inside:
            records[-1][kind] += 1

    def packed(*given: Any) -> Tensor:
        count("packed")
        return run_packed(*given)

    def padded(*given: Any) -> Any:
        count("padded")
        return forward(*given)

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(steps: Steps, *given: Any) -> Any:
            records.append({"packed": 0, "padded": 0, "views": len(steps.objective.views)})
            with Waits() as counter:
                inside.append(counter)
                try:
                    return real(steps, *given)
                finally:
                    inside.pop()
                    records[-1]["waits"] = counter.found

        return step

    with monkeypatch.context() as patched:
        patched.setattr(BUDGETS, {})  # a device that takes everything at once
        patched.setattr(transformer_module, "run_packed", packed)
        patched.setattr(TransformerEncoder, "forward", padded)
        patched.setattr(Steps, "take", counted(Steps.take))
        patched.setattr(RecordedSteps, "_whole_step", counted(RecordedSteps._whole_step))
        yield records


def _training(**changed: Any) -> TrainingConfig:
    chosen = {"batch_size": 20, "max_epochs": 3, "max_steps": None, "precision": "float32", "check_every": 0}
    return TrainingConfig(**{**chosen, **changed})


def _fit(kind: Any, folder: Path, **settings: Any) -> Any:
    return kind(3, encoder=str(folder), device="cpu", **{"training": _training(), **settings}).fit(TEXTS)


STAGES = {"stage_1": 1, "stage_2": 1, "stage_3": 1}
METHODS: dict[str, tuple[Any, dict[str, Any], int]] = {
    "sccl": (SCCL, {}, 3),
    "sccl virtual": (SCCL, {"augmentation": "virtual"}, 2),
    "aecl": (AECL, {**STAGES, "augmentation": "word_deletion"}, 2),
    "aecl virtual": (AECL, {**STAGES, "augmentation": "virtual"}, 2),
    "rstc": (RSTC, {"contrast_epochs": 1, "kmeans_epochs": 1, "transport_epochs": 1}, 2),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_plain_step_is_one_pass_over_all_views(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, settings, n_views = METHODS[name]
    with _steps_counted(monkeypatch) as steps:
        model = _fit(kind, tiny_encoder, **settings)
    assert len(steps) == len(model.history_.steps) == 9
    assert {(step["packed"], step["padded"], step["views"]) for step in steps} == {(1, 0, n_views)}
    # No padding at all.
    assert model.history_.padding == 1


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_a_recorded_step_is_one_pass_and_waits_for_nothing(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, name: str, clipped: bool
) -> None:
    kind, settings, n_views = METHODS[name]
    on_host(monkeypatch)
    with _steps_counted(monkeypatch) as steps:
        model = _fit(kind, tiny_encoder, **settings, training=_training(max_grad_norm=1.0 if clipped else None))
    if kind is AECL:
        assert set(model.history_.stop_reasons) == {"stage_1", "stage_2", "stage_3"}
    assert len(steps) == len(model.history_.steps) == 9
    assert {(step["packed"], step["padded"], step["views"]) for step in steps} == {(1, 0, n_views)}
    waits = sum((step["waits"] for step in steps), Counter())
    assert not waits, waits


def test_a_recorded_step_in_half_precision_waits_for_nothing(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_host(monkeypatch)
    with _steps_counted(monkeypatch) as steps:
        _fit(SCCL, tiny_encoder, training=_training(precision="bfloat16"))
    assert len(steps) == 9
    assert not sum((step["waits"] for step in steps), Counter())


class _Asking(MeanGap):
    """Asks for a number in the middle of a step."""

    recordable = True

    def loss(self, batch: Batch) -> LossTerms:
        terms = super().loss(batch)
        return LossTerms(terms.total * (1 if terms.total.item() else 2))


def test_an_objective_that_waits_is_caught(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_host(monkeypatch)
    run = prepare(tiny_encoder, max_epochs=1)
    run.objective = _Asking(run.encoder.dimension)
    with _steps_counted(monkeypatch) as steps:
        run.go()
    assert [dict(step["waits"]) for step in steps] == [{"aten::_local_scalar_dense": 1}] * 3


# --- Methods whose steps are not recorded: as many passes as now, and no more ---

OTHERS: dict[str, tuple[Any, dict[str, Any], dict[str, set[tuple[int, int]]]]] = {
    "uftc": (UFTC, {"mask_ratio": 0.3}, {"masked_head": {(0, 1)}, "joint": {(0, 1)}}),
    "clusterbert": (
        ClusterBERT,
        {"decoder_epochs": 1, "adaptation_epochs": 1, "clustering_epochs": 1, "hardening_epochs": 1},
        {"decoder": {(1, 0)}, "adaptation": {(1, 0)}, "clustering": {(1, 0)}, "hardening": {(1, 0)}},
    ),
    "deccrl": (DECCRL, {"topic_steps": 0, "augmentation": "word_deletion"}, {"deccrl": {(1, 0)}}),
    "deccrl virtual": (DECCRL, {"topic_steps": 0, "augmentation": "virtual"}, {"deccrl": {(1, 0)}}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_passes_of_the_other_methods(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kind, settings, expected = OTHERS[name]
    with _steps_counted(monkeypatch) as steps:
        model = _fit(kind, tiny_encoder, training=_training(max_epochs=6), **settings)
    assert len(steps) == len(model.history_.steps)
    found: dict[str, set[tuple[int, int]]] = {}
    for record, step in zip(model.history_.steps, steps, strict=True):
        found.setdefault(record["stage"], set()).add((step["packed"], step["padded"]))
    assert found == expected


# --- Tokens ---


def _realistic(n: int, seed: int) -> TokenArrays:
    generator = np.random.default_rng(seed)
    lengths = np.clip(generator.normal(14, 5, n).round(), 3, 64).astype(np.int64)
    return contiguous_tokens(generator.integers(5, 60, lengths.sum()).astype(np.int32), lengths, 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [400, 800, 1200])
def test_windows_cost_little_beyond_the_texts(n: int, seed: int) -> None:
    lengths = _realistic(n, seed).lengths
    width, real = window_width(64), int(lengths.sum())
    layout = plan_windows(np.arange(n), lengths, width, window_step(real, width))
    assert 1 <= layout.n_windows * width / real <= 1.05


@pytest.mark.parametrize("recorded", [False, True])
def test_the_tokens_of_a_step_over_texts_of_realistic_lengths(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    """800 texts: exactly their tokens in a plain step, a few more in a recorded one."""
    monkeypatch.setattr(BUDGETS, {})
    on_host(monkeypatch)
    encoder, tokens, work = TransformerEncoder.load(tiny_encoder), _realistic(800, 0), Work()
    objective = MeanGap(encoder.dimension, (ORIGINAL,))
    views: Any = SimpleNamespace(tokens=DeviceTokens(tokens, 0, encoder.device), rows=lambda names, rows: rows)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1e-3)
    kind = RecordedSteps if recorded else Steps
    weights = (np.ones(800), torch.ones(800))
    steps = kind(encoder, objective, optimizer, views, TrainingConfig(), torch.float32, weights, work)
    steps.start_epoch([np.arange(800)])
    assert torch.isfinite(steps.take(0)["loss"])
    assert work.real_tokens == tokens.lengths.sum()
    if recorded:
        assert 1 < work.computed_tokens / work.real_tokens <= 1.05
    else:
        assert work.computed_tokens == work.real_tokens


def test_small_passes_on_a_cpu_compute_no_more(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BUDGETS, {"cpu": 60})
    run = prepare(tiny_encoder, views=(ORIGINAL, *PAIR)).go()
    assert run.trainer.history.padding == 1
