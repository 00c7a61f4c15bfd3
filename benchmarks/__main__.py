"""`python -m benchmarks`: measures, prints tables and verdicts, and writes JSON on request."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import environment, report
from .driver import Driver, children
from .measure import FULL, QUICK, Suite, say

SECTIONS = (
    "rates",
    "heartbeats",
    "starts",
    "memory",
    "flat",
    "cluster",
    "state",
    "transactional",
    "spark",
    "storm",
    "shellbolt",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures this project against pystorm, streamparse, storm.py, a bare ujson loop and a native child.",
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all but the last three if none"
    )
    parser.add_argument("--quick", action="store_true", help="shorter runs: a look, not a figure to quote")
    parser.add_argument(
        "--storm", action="store_true", help="also what takes a real Storm: storm and shellbolt (Maven, JDK 17)"
    )
    parser.add_argument("--children", metavar="NAME,...", help="only these implementations")
    parser.add_argument(
        "--source", type=Path, default=environment.PROJECT, metavar="FOLDER", help="measure that checkout"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    chosen = parser.parse_args()
    if unknown := set(chosen.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return chosen


def main() -> int:
    chosen = arguments()
    real = ("storm", "shellbolt")
    sections = chosen.sections or [name for name in SECTIONS if name not in (*real, "spark")]
    if chosen.storm:
        sections += real
    names = chosen.children.split(",") if chosen.children else None
    try:
        driver = Driver()
        found = children(environment.lay(chosen.source, driver.path / "ours"))
        suite = Suite(driver, found, QUICK if chosen.quick else FULL, lambda name: names is None or name in names)
    except environment.Missing as missing:
        say(f"benchmarks: {missing}")
        return 2
    for section in SECTIONS:
        if section in sections:
            try:
                getattr(suite, section)()
            except environment.Missing as missing:
                suite.results.problems.append(str(missing))
                say(f"  {missing}")
    print(report.tables(suite.results))
    print(report.verdict_table(suite.results))
    for problem in suite.results.problems:
        print(f"problem: {' '.join(problem.split())[:200]}")
    print(f"\nload average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if chosen.json:
        chosen.json.write_text(json.dumps(report.as_json(suite.results, chosen.quick), indent=1) + "\n")
    verdicts = {found["verdict"] for found in report.verdicts(suite.results)}
    return 1 if "FAIL" in verdicts or suite.results.problems else 0


if __name__ == "__main__":
    sys.exit(main())
