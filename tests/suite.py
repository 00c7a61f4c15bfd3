"""The runner behind ``scripts/test``: checks, all tests, one more try of those that failed, and a last line with the result.

    python -m tests.suite [ARGUMENT OF PYTEST]...

What each test did, and how long it took, is in the environment's ``last-test.jsonl``. No process outlives a run. A run that
does not end within ``MULTILANG_TEST_LIMIT`` minutes shows the stacks of its processes, names the tests under way, and is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tests import reports
from tests.family import Family
from tests.patience import PACE, SLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[1]
LIMIT = "MULTILANG_TEST_LIMIT"
LIMIT_MINS = 40.0
SLOWEST = 20
COMPILING_SECS = 600.0
TYPES_SECS = 1200.0  # behind the tests
STACKS_SECS = 3.0  # for all processes to write their stacks
OPTIONS = ["--dist=loadgroup", "--no-loadscope-reorder", f"--durations={SLOWEST}", "-o", "console_output_style=classic"]
COUNTED = ("failed", "error", "passed", "skipped", "xfailed", "xpassed", "rerun")
MEASURED = bool(os.environ.get("MULTILANG_COVERAGE"))


def main(arguments: Sequence[str]) -> int:
    """Run all checks and tests, and return the exit status."""
    begun = time.monotonic()
    family = Family()
    try:
        return checked(family, arguments, begun)
    except KeyboardInterrupt as error:
        say(f"scripts/test: red after {clock(time.monotonic() - begun)}: {error or 'interrupted'}")
        return 130
    finally:
        family.beside.clear()
        family.end()


def checked(family: Family, arguments: Sequence[str], begun: float) -> int:
    lint = ROOT / "scripts" / "lint"
    with tempfile.TemporaryFile() as ignored, tempfile.TemporaryFile("w+") as said:
        # Meanwhile the tests are compiled, which all processes that run them would else do at once, each for itself.
        collect = [*pytest(arguments), "--collect-only", "-qq", "-p", "no:cacheprovider"]
        compiling = family.start(collect, stdout=ignored, stderr=ignored)
        status = family.wait(family.start([lint, "ruff", "format", "imports"]))
        if family.wait(compiling, COMPILING_SECS) is None:
            family.end()  # the tests themselves show what hangs, and where
        summary = "the code does not pass scripts/lint"
        if not status:
            # The types take longest, and are checked beside the tests.
            types = family.start(["nice", str(lint), "types"], beside=True, stdout=said, stderr=said)
            status, summary = tests(family, arguments)
            wrong_types = family.wait(types, TYPES_SECS) != 0
            said.seek(0)
            say(said.read().rstrip())
            if wrong_types:
                status, summary = status or 1, f"{summary}; the types are wrong"
    say(f"scripts/test: {'red' if status else 'green'} after {clock(time.monotonic() - begun)}: {summary}")
    return status


def tests(family: Family, arguments: Sequence[str]) -> tuple[int, str]:
    """Run the tests, and those that failed once more; return the exit status and a summary."""
    limit = float(os.environ.get(LIMIT) or LIMIT_MINS)
    begun = time.monotonic()
    deadline = begun + 60 * limit if limit else float("inf")
    if MEASURED:
        family.wait(family.start([sys.executable, "-m", "coverage", "erase"]))
    first = Run(family, arguments, deadline, workers())
    first.wait(Path(sys.prefix) / "last-test.jsonl")
    again = None
    if first.status == 1 and first.failed and not first.uncollected:
        say(f"What failed is run once more, alone ({len(first.failed)} in all):")
        again = Run(family, arguments, deadline, 1, only=list(first.failed))
        again.wait()
    if MEASURED:
        for command in (["combine", "--quiet"], ["report"]):
            family.wait(family.start([sys.executable, "-m", "coverage", *command]))
    flaky = [
        test
        for test in first.failed
        if again is not None and again.outcomes.get(test) == "passed" and test not in first.stay_failed
    ]
    red = [test for test in first.failed if test not in flaky]
    for test in red:
        say(f"failed: {test} ({first.failed[test]})")
        if again is not None and test in again.failed:
            say(f"  alone, too: {again.failed[test]}")
        elif again is not None:
            say(
                f"  alone: {again.outcomes.get(test, 'did not run')}; its process ended or hung"
                * (test in first.stay_failed)
            )
    for test in flaky:
        say(f"flaky: {test} (first failure: {first.failed[test]})")
    counts = Counter(outcome for test, outcome in first.outcomes.items() if test not in flaky)
    counts.update(passed=len(flaky), rerun=len(flaky))
    summary = ", ".join(f"{counts[name]} {name}" for name in COUNTED if counts[name]) or "no tests ran"
    missing = 0 if first.uncollected else first.tests - len(first.outcomes)
    if missing:
        summary += f", {missing} never ran"
    if first.status != 0 or flaky or red:
        # What came behind pytest's own closing line is over: here is the whole run's, in its form.
        secs = time.monotonic() - begun
        say(f" {summary} in {secs:.2f}s ({clock(secs)}) ".center(shutil.get_terminal_size().columns, "="))
    endings = [run.ending for run in (first, again) if run is not None and run.ending]
    if endings:
        return first.status or 1, "; ".join([summary, *endings])
    if flaky and not red and not missing and again is not None and again.status == 0:
        return 0, summary
    return first.status or int(bool(red or missing)), summary


def pytest(arguments: Sequence[str]) -> list[str]:
    """Return the command line of pytest."""
    # Coverage starts before pytest does: our own pytest plugin is imported while pytest reads its plugins.
    return [sys.executable, "-m", *(["coverage", "run", "-m"] if MEASURED else []), "pytest", *arguments]


def workers() -> int:
    """Return the number of tests at once: where there are few cores two for each, since half of a test's time is waiting."""
    if given := os.environ.get("MULTILANG_TEST_WORKERS"):
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # Where processes start slowly, what tests wait for comes no sooner for two.
    return cores if PACE >= SLOW else max(cores, min(2 * cores, 8))


class Run:
    """One run of pytest, and of all processes that its tests start."""

    def __init__(
        self,
        family: Family,
        arguments: Sequence[str],
        deadline: float,
        processes: int,
        only: Sequence[str] | None = None,
    ) -> None:
        self.family = family
        self.deadline = deadline
        self.begun = time.monotonic()
        self.status: int | None = None  # pytest's, None when it had to be ended
        self.ending = ""
        self.tests = 0
        self.uncollected = False  # a file of tests could not be imported
        self.under_way: dict[str, float] = {}  # with the time at which each began
        self.outcomes: dict[str, str] = {}
        self.failed: dict[str, str] = {}  # with the first line of the reason
        self.texts: dict[str, str] = {}  # of the failures
        self.stay_failed: set[str] = set()  # whatever they do alone: their process ended, or hung at their end
        self.secs: Counter[str] = Counter()
        command = [*pytest(arguments), "-p", "tests.reports", "-n", str(processes), *OPTIONS]
        if sys.stdout.isatty():
            command.append("--color=yes")
        self.folder = Path(tempfile.mkdtemp(prefix="tests-"))
        (self.folder / reports.EVENTS).touch()
        if only is not None:
            (self.folder / reports.ONLY).write_text(json.dumps(only), encoding="utf-8")
        self.progress = Progress()
        self.process = family.start(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, reports.FOLDER: str(self.folder)},
        )

    def wait(self, copy: Path | None = None) -> None:
        """Wait until pytest ends, or its time is over, and end what is left of the run.

        Args:
            copy: Where what the tests did is kept.
        """
        try:
            with open(self.folder / reports.EVENTS, encoding="utf-8") as events:
                self._follow(events)
        finally:
            self.progress.erase()
            self.status = self.family.status(self.process)
            if self.status is None:
                self.ending = f"the run was ended after {clock(time.monotonic() - self.begun)} ({LIMIT})"
                self._show_where_it_is()
            elif self.status > 1 or self.status < 0:
                self.ending = f"pytest ended with status {self.status}"
            for each in self.family.end():
                if self.status is not None:
                    say(f"left behind, and ended: {each}")
            self._conclude()
            if copy is not None:
                with contextlib.suppress(OSError):
                    shutil.copy(self.folder / reports.EVENTS, copy)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _follow(self, events: TextIO) -> None:
        unfinished = ""
        for line in self.family.lines(self.process, 0.5):
            if line is not None:
                self.progress.erase()
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.flush()
                continue
            *whole, unfinished = (unfinished + events.read()).split("\n")
            for each in whole:
                self._take(json.loads(each))
            if time.monotonic() > self.deadline:
                return
            self.progress.show(self._shown)
        *whole, cut_off = (unfinished + events.read()).split("\n")
        for each in whole:
            self._take(json.loads(each))
        if cut_off:
            say("the last lines of what the tests did are missing: is the disk full?")

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "collected":
                self.tests = event["tests"]
            case "uncollected":
                self.uncollected = True
            case "begun":
                self.under_way[event["test"]] = time.monotonic()
            case "ended":
                self.under_way.pop(event["test"], None)
            case "report":
                test, category = event["test"], event["category"]
                self.secs[test] += event["secs"]
                if event.get("stays"):
                    self.stay_failed.add(test)
                    self.under_way.pop(test, None)
                if "reason" in event:
                    self._fail(test, category, event["reason"], event["text"])
                elif category and test not in self.failed:
                    self.outcomes[test] = category

    def _fail(self, test: str, category: str, reason: str, text: str = "") -> None:
        if test not in self.failed:
            self.outcomes[test], self.failed[test], self.texts[test] = category, reason, text
            self.progress.erase()
            say(f"{clock(time.monotonic() - self.begun)} failed: {test} ({reason})")

    def _shown(self) -> str:
        """Return how far the run is, in one line."""
        over = len(self.outcomes)
        shown = f"{clock(time.monotonic() - self.begun)} {over:,} of {self.tests:,} tests"
        if self.failed:
            shown += f", {len(self.failed)} failed"
        if self.under_way:
            test, begun = min(self.under_way.items(), key=lambda each: each[1])
            shown += f"; {time.monotonic() - begun:.0f} s: {test}"
        return shown

    def _stacks(self) -> None:
        for file in sorted(self.folder.glob(f"*{reports.STACKS_SUFFIX}")):
            if stacks := file.read_text(errors="replace").rstrip():
                say(f"--- the process {file.stem} was at:\n{stacks}")

    def _show_where_it_is(self) -> None:
        relatives = self.family.relatives()
        known = {int(file.stem.rpartition("-")[2]) for file in self.folder.glob(f"*{reports.STACKS_SUFFIX}")}
        for each in relatives:
            if each.pid in known:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, reports.STACKS)
        time.sleep(STACKS_SECS)
        say(f"--- {self.ending}; its processes:")
        for each in relatives:
            say(f"    {each}")

    def _conclude(self) -> None:
        """Show what pytest itself could not."""
        self._stacks()
        shown = set(self.failed) if self.status not in (0, 1, 2) else set()
        for test, begun in self.under_way.items():
            self.secs[test] += time.monotonic() - begun
            self._fail(test, "failed", f"it was under way when {self.ending or 'pytest ended'}")
        for test in shown:
            say(f"--- {test}\n{self.texts[test]}")
        if self.status is None:
            say(f"--- the {SLOWEST} slowest tests:")
            for test, secs in self.secs.most_common(SLOWEST):
                say(f"    {secs:.2f} s {test}")


class Progress:
    """One line that changes on a terminal; elsewhere a line a minute."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()
        self.secs = 0.5 if self.is_terminal else 60.0
        self.due = time.monotonic() + self.secs
        self.is_shown = False

    def show(self, shown: Callable[[], str]) -> None:
        if (now := time.monotonic()) < self.due:
            return
        self.due = now + self.secs
        if self.is_terminal:
            sys.stdout.write(f"\r\x1b[K{shown()[: shutil.get_terminal_size().columns - 1]}")
            sys.stdout.flush()
            self.is_shown = True
        else:
            say(shown())

    def erase(self) -> None:
        if self.is_shown:
            sys.stdout.write("\r\x1b[K")
            self.is_shown = False


def say(text: str) -> None:
    if text:
        print(text, flush=True)


def clock(secs: float) -> str:
    """Return a length of time as minutes and seconds."""
    return f"{int(secs) // 60}:{int(secs) % 60:02}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
