"""Run jobs in processes that are given texts alone, score what they saved, and write one JSON file per run."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from coterie.benchmark.partitions import ON
from coterie.benchmark.rows import PROTOCOL
from coterie.benchmark.scoring import epochs_of, scores_of
from coterie.benchmark.sets import Loaded, load_set
from coterie.benchmark.source_digest import source_digest
from coterie.benchmark.specs import MEASURE_TITLES
from coterie.benchmark.store import Job, Store
from coterie.benchmark.traces import ranking_scores, trace_of
from coterie.encoders.device import usable_cores
from coterie.methods.registry import find_method

# Expected seconds of the first run of a row, whatever the number of texts: to start a process and load a model.
UNKNOWN_SECONDS = 20.0
# Expected seconds per thousand texts of the first run of a row.
UNKNOWN_SECONDS_PER_THOUSAND = 3.0
# Part of torch's error message, in lower case.
OUT_OF_MEMORY = "out of memory"
# Factor by which a run may take longer than the longest one like it.
MARGIN = 1.3


@dataclass(frozen=True)
class Outcome:
    """The result of a job: its record, or the error."""

    job: Job
    record: dict[str, Any] | None
    error: str = ""

    @property
    def description(self) -> str:
        """The result in a line."""
        where = f"{self.job.row.name:18s} {self.job.dataset.name:16s} seed {self.job.seed}"
        if self.record is None:
            return f"{where}  FAILED: {self.error}"
        scores = self.record["scores"]
        first, second = ("map", "mrr") if self.job.dataset.ranking else ("accuracy", "nmi")
        start = "" if scores["frozen"] is None else f"  start {scores['frozen'][first]:5.1f}"
        end = "".join(f"  {MEASURE_TITLES[name]} {scores['final'][name]:5.1f}" for name in (first, second))
        return f"{where}  {self.record['seconds']['fit']:6.1f} s{start}{end}"


@dataclass
class _Worker:
    """A fitting process and the job it works on."""

    process: subprocess.Popen[str]
    job: Job
    began: float

    @property
    def answers(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    *,
    at_once: int = 1,
    device: str = "auto",
    time_budget: float | None = None,
    on_outcome: Callable[[Outcome], object] = lambda _: None,
) -> list[Job]:
    """Run the jobs that ``store`` has no run of, and return those that were not started for lack of time.

    Where runs at once need more memory than a GPU has, the one that failed is put at the end of the queue, and fewer
    run at once from then on. If the process is killed, only the runs in progress are lost.

    Parameters
    ----------
    at_once:
        Number of processes, each with its share of the cores.
    time_budget:
        Seconds; a run that is not expected to end within is not started.
    on_outcome:
        Called with the result of every job.
    """
    waiting = [job for job in jobs if not store.has(job)]
    with tempfile.TemporaryDirectory(prefix="coterie-benchmark-") as folder:
        return _Runner(store, Path(folder), device, on_outcome, time_budget, at_once).run(waiting)


@dataclass
class _Runner:
    store: Store
    folder: Path
    device: str
    on_outcome: Callable[[Outcome], object]
    time_budget: float | None
    at_once: int
    began: float = field(default_factory=time.monotonic)
    _sets: dict[str, Loaded] = field(default_factory=dict)

    def run(self, waiting: list[Job]) -> list[Job]:
        left: list[Job] = []
        idle: list[subprocess.Popen[str]] = []
        with selectors.DefaultSelector() as busy, _ended(idle, busy):
            while waiting or busy.get_map():
                while waiting and len(busy.get_map()) < self.at_once:
                    job = waiting.pop(0)
                    if self._fits(job):
                        self._start(job, idle.pop() if idle else _new_process(self.at_once), busy)
                    else:
                        left.append(job)
                # With no process busy there would be nothing to wait for.
                for key, _ in busy.select() if busy.get_map() else []:
                    worker: _Worker = key.data
                    line = worker.answers.readline()
                    busy.unregister(worker.answers)
                    if self._lacked_memory(line, len(busy.get_map())):
                        waiting.append(worker.job)
                        worker.process.kill()  # with the memory that it holds
                    else:
                        self._finish(worker, line)
                        if line:
                            idle.append(worker.process)
                            continue
                    worker.process.wait()
        return left

    def _fits(self, job: Job) -> bool:
        """Return whether the job would end in time, by the seconds of earlier runs like it."""
        if self.time_budget is None:
            return True
        expected = expected_seconds(job, len(self._loaded(job).texts), self.store)
        return time.monotonic() - self.began + MARGIN * expected <= self.time_budget

    def _start(self, job: Job, process: subprocess.Popen[str], busy: selectors.BaseSelector) -> None:
        data = self._loaded(job)
        request = {
            "method": job.row.method,
            "settings": job.settings,
            "n_clusters": data.n_clusters,
            "seed": job.seed,
            "device": self.device,
            "texts": str(self._text_file(job, data)),
            "assignments": str(self.store.assignment_file(job.name).resolve()),
            "epochs": str(self.store.epochs_file(job.name).resolve()),
            "reclustered": job.row.reclustered,
            "trace": str(self._trace_arrays(job)) if job.trace or data.questions else "",
            "ranks": bool(data.questions),
        }
        assert process.stdin is not None
        # A process that has ended gives no answer, which is reported when the answer is read.
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        worker = _Worker(process, job, time.monotonic())
        busy.register(worker.answers, selectors.EVENT_READ, worker)

    def _lacked_memory(self, line: str, others: int) -> bool:
        """Return whether a run lacked memory that others occupied; if so, fewer run at once from now on."""
        if not line or not others or OUT_OF_MEMORY not in json.loads(line).get("error", "").lower():
            return False
        self.at_once = max(1, min(self.at_once - 1, others))
        return True

    def _finish(self, worker: _Worker, line: str) -> None:
        job = worker.job
        if not line:
            self.on_outcome(Outcome(job, None, "its process ended without an answer (killed, or out of memory)"))
            return
        answer = json.loads(line)
        if "error" in answer:
            self.on_outcome(Outcome(job, None, answer["error"]))
            return
        traced, arrays = answer.pop("traced"), self._trace_arrays(job)
        record = self._record(job, answer)
        if traced:
            trace = trace_of(arrays, traced, self._loaded(job))
            self.store.write_trace(job.name, trace)
            arrays.unlink()
            if job.dataset.ranking:
                record["scores"] = ranking_scores(trace)
        self.store.write(job.name, record)
        self.on_outcome(Outcome(job, record))

    def _record(self, job: Job, answer: dict[str, Any]) -> dict[str, Any]:
        data, assignments = self._loaded(job), self.store.assignments(job.name)
        epochs = [] if data.questions else epochs_of(data, assignments)
        return {
            "row": job.row.name,
            "method": job.row.method,
            "dataset": job.dataset.name,
            "seed": job.seed,
            "protocol": PROTOCOL,
            "settings": job.settings,
            "data_sha256": data.sha256,
            "texts": len(data.texts),
            "n_clusters": data.n_clusters,
            "date": datetime.now(UTC).date().isoformat(),
            "source_digest": source_digest(find_method(job.row.method).target.split(":")[0]),
            **answer,
            # Runs that share a machine take longer than alone.
            "runs_at_once": self.at_once,
            "scores": {} if data.questions else scores_of(data, assignments, epochs),
            "curve": [{name: round(each[name], 3) for name in ("accuracy", "nmi")} for each in epochs],
        }

    def _loaded(self, job: Job) -> Loaded:
        name = job.dataset.name
        if name not in self._sets:
            self._sets[name] = load_set(job.dataset)
        return self._sets[name]

    def _trace_arrays(self, job: Job) -> Path:
        return self.folder / f"{job.name}.trace.safetensors"

    def _text_file(self, job: Job, data: Loaded) -> Path:
        """Return the file of the texts alone: what a fitting process is given of a data set."""
        path = self.folder / f"{job.dataset.name}.json"
        if not path.is_file():
            path.write_text(json.dumps({"texts": data.texts, "held_out": data.held_out}), encoding="utf-8")
        return path


def expected_seconds(job: Job, n_texts: int, store: Store) -> float:
    """Return the seconds of the longest run of the row on the data set; else of the row, per text; else a guess."""
    like = [store.read(name) for name in store.names() if name.startswith(f"{job.row.name}.")]
    same = [_seconds(run) for run in like if run["dataset"] == job.dataset.name]
    if same:
        return max(same)
    if like:
        return max(_seconds(run) / run["texts"] for run in like) * n_texts
    return UNKNOWN_SECONDS + UNKNOWN_SECONDS_PER_THOUSAND * n_texts / 1000


def _seconds(run: dict[str, Any]) -> float:
    """Return the seconds of the fit and of other clusterings after it."""
    return float(sum(seconds for name, seconds in run["seconds"].items() if name == "fit" or name.startswith(ON)))


def _new_process(at_once: int) -> subprocess.Popen[str]:
    """Start a fitting process with its share of the cores; it does not get the folder of data sets and labels."""
    environment = {name: value for name, value in os.environ.items() if name != "COTERIE_DATA"}
    share = str(max(1, usable_cores() // at_once))
    environment |= {"OMP_NUM_THREADS": share, "RAYON_NUM_THREADS": share}
    return subprocess.Popen(
        [sys.executable, "-m", "coterie.benchmark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    )


@contextmanager
def _ended(idle: list[subprocess.Popen[str]], busy: selectors.BaseSelector) -> Iterator[None]:
    """End all processes with the block: busy ones are killed, idle ones end with their input."""
    try:
        yield
    finally:
        for key in list(busy.get_map().values()):
            key.data.process.kill()
            key.data.process.wait()
        for process in idle:
            process.communicate()
