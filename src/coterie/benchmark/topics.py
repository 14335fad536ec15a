"""Clusters and the topics a method has learned of them: DECCRL's Table 4, which holds words and no scores."""

from __future__ import annotations

from coterie.benchmark.store import Job, Store
from coterie.errors import InputError


def topics_as_markdown(job: Job, store: Store) -> str:
    """A line a cluster, the largest first; a column a topic, the most common first."""
    again = f"coterie benchmark run --methods {job.row.name} --datasets {job.chosen.name} --seeds {job.seed}"
    if not store.has_run(job.name):
        raise InputError(f"{store.folder} has no such run yet: {again}")
    clusters = store.read(job.name).get("topics")
    if clusters is None:
        raise InputError(
            f"{job.name} was run when topics were not kept yet; run it into another folder: {again} --out again"
        )
    if not clusters:
        raise InputError(f"{job.row.title} learns no topics")
    columns = max(len(each["topics"]) for each in clusters)
    lines = [
        "| cluster | texts | " + " | ".join(f"topic {number + 1}" for number in range(columns)) + " |",
        "|---|---|" + "---|" * columns,
    ]
    for each in clusters:
        lines.append(f"| {each['cluster']} | {each['texts']:,} | " + " | ".join(each["topics"]) + " |")
    return f"## {job.row.title} on {job.chosen.name}, seed {job.seed}: topics\n\n" + "\n".join(lines) + "\n"
