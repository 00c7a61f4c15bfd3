"""The results as tables for people and as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from typing import Any

from .measure import Results
from .targets import TARGETS, Target

UNITS = {
    "rate": "tuples (1 MB values: values) per CPU-second of the child",
    "latency": "p50 of one `next` to its sync, microseconds",
    "p50": "heartbeat to sync, p50, microseconds, parent and child on one CPU",
    "p99": "heartbeat to sync, p99, microseconds",
    "p50 unpinned": "the same, the child on any CPU: the wake-up of another CPU is in it",
    "start": "exec to pid, milliseconds",
    "start cpu": "CPU time of exec to pid, milliseconds",
    "memory": "resident memory of an idle child, MiB",
    "memory pss": "the same, shared pages divided among their users, MiB",
    "flat": "the most over the least of the figures below, within a round",
    "flat ns": "CPU nanoseconds per tuple",
    "flat MiB": "resident memory after that many tuples, MiB",
    "state": "word count, sentences per second: without state (none), and with state in ...",
    "state cpu": "the same, sentences per CPU-second of all processes",
    "checkpoint": "prepare and commit of 1000 changed keys, milliseconds, by the keys stored",
    "checkpoint growth": "the same, with the most keys over the least",
    "transactional": "word count, words per second, plain and with transactions of 1000 words, so many of them at once",
    "transactional cpu": "the same, words per CPU-second of all processes",
    "spark": "word count on Spark, local[2], sentences per second",
    "spark cpu": "the same per CPU-second of all processes, the JVM's included",
    "spark seconds": "word count by run_topology, seconds",
    "spark MiB": "what the driver holds after it: its resident memory and the JVM's live heap, MiB",
    "spark growth": "the most over the least, of the cost of a further sentence and of that memory, within a round",
    "cluster": "word count, sentences per second, process: with child processes, inprocess: without",
    "shellbolt": "the split bolt under Storm's ShellBolt, acked sentences of ten words per second",
    "cluster cpu": "word count, sentences per CPU-second of all processes, start and end included",
}


def ratios(results: Results, section: str, work: str, ours: str, peer: str | None) -> list[float]:
    """Return our figures divided by the peer's, round by round; without a peer, our figures."""
    mine = results.of(section, work, ours)
    return mine if peer is None else [a / b for a, b in zip(mine, results.of(section, work, peer), strict=False)]


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} [{min(values):.2f} to {max(values):.2f}]"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def tables(results: Results) -> str:
    lines: list[str] = []
    for section, unit in UNITS.items():
        rows = [(work, child) for s, work, child in results.figures if s == section]
        if not rows:
            continue
        lines += ["", f"{section}: {unit}", f"  {'work':14} {'child':13} {'median':>12}   ours / child [min to max]"]
        for work, child in rows:
            values = results.of(section, work, child)
            against = ratios(results, section, work, "ours", child)
            compared = spread(against) if against and child != "ours" else ""
            lines.append(f"  {work:14} {child:13} {number(statistics.median(values)):>12}   {compared}".rstrip())
    return "\n".join(lines)


def verdict(results: Results, target: Target) -> dict[str, Any]:
    values = ratios(results, target.section, target.work, target.ours, target.peer)
    found: dict[str, Any] = {
        "section": target.section, "work": target.work if target.ours == "ours" else f"{target.work}, {target.ours}", "peer": target.peer, "wanted": target.wanted, "verdict": "not measured",
    }  # fmt: skip
    if values:
        middle = statistics.median(values)
        found |= {"median": middle, "min": min(values), "max": max(values)}
        found["verdict"] = "PASS" if target.met(middle) else "FAIL"
    return found


def verdicts(results: Results) -> list[dict[str, Any]]:
    return [verdict(results, target) for target in TARGETS]


def verdict_table(results: Results) -> str:
    lines = ["", "targets", f"  {'':4} {'what':22} {'against':14} {'wanted':20} measured [min to max]"]
    for found in verdicts(results):
        measured = ""
        if "median" in found:
            measured = f"{number(found['median'])} [{number(found['min'])} to {number(found['max'])}]"
        what = f"{found['section']} {found['work']}"
        verdict_text = found["verdict"] if measured else "-"
        lines.append(f"  {verdict_text:4} {what:22} {found['peer'] or '':14} {found['wanted']:20} {measured}".rstrip())
    return "\n".join(lines)


def as_json(results: Results, quick: bool) -> dict[str, Any]:
    figures = [
        {
            "section": section,
            "work": work,
            "child": child,
            "median": statistics.median(values),
            "values": values,
            "ours_over_child": ratios(results, section, work, "ours", child) if child != "ours" else None,
        }
        for (section, work, child), values in results.figures.items()
    ]
    machine = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "quick": quick,
    }
    return {
        "machine": machine,
        "units": UNITS,
        "targets": verdicts(results),
        "figures": figures,
        "problems": results.problems,
    }
