"""Tests every available implementation, and writes docs/conformance-results.md.

    scripts/conformance-matrix [--html FILE] [--results FOLDER] [--page FILE] [--case PATH...] [NAME...]

The libraries are downloaded with pip, npm and Maven to a cache folder ($MULTILANG_CACHE, else the user's); they are no
part of this project. If one is not available (no Maven, no Ruby, no Node), the page has the reason.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from multilang import __version__
from multilang.conformance import CaseResult, Result, Run, Target
from multilang.conformance.case import selected
from multilang.conformance.cases import all_cases
from multilang.conformance.page import to_page
from multilang.conformance.result import BLOCKED, FAILED, PASSED, SKIPPED, from_json
from multilang.shipping.cluster.artifacts import cache_folder

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance-results.md"
STORM = "2.8.3"
PYSTORM, STREAMPARSE = "3.1.4", "5.0.1"
NODE_STORM = "0.0.1"
KINDS = ("bolt", "spout")


class Missing(Exception):
    """An implementation is not available here, for the reason in the text."""


@dataclass
class Implementation:
    name: str
    version: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)


def output_of(*command: str) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except FileNotFoundError:
        raise Missing(f"there is no {command[0]} here") from None
    if done.returncode:
        raise Missing(f"{' '.join(command[:4])} … failed: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout.strip()


def of_storm(language: str, file: str) -> Path:
    """Return Storm's library for a language, taken from its Maven artifact."""
    folder = cache_folder() / "conformance" / f"storm-{STORM}"
    if not (folder / file).exists():
        folder.mkdir(parents=True, exist_ok=True)
        jar = folder / f"multilang-{language}-{STORM}.jar"
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
        artifact = f"-Dartifact=org.apache.storm:multilang-{language}:{STORM}:jar"
        output_of("mvn", "--quiet", "--batch-mode", goal, artifact, f"-DoutputDirectory={folder}")
        with zipfile.ZipFile(jar) as archive:
            (folder / file).write_bytes(archive.read(f"resources/{file}"))
    return folder / file


def of_npm(package: str, version: str) -> Path:
    """Return the folder of a package of npm."""
    folder = cache_folder() / "conformance" / f"npm-{package}-{version}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        flags = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
        output_of("npm", "install", "--prefix", str(folder), *flags, f"{package}@{version}")
        (folder / "complete").touch()
    return folder / "node_modules" / package


def of_pypi(package: str) -> Path:
    """Return the Python of an environment that has the package."""
    venv = cache_folder() / "conformance" / f"py{platform.python_version()}-{package}".replace("==", "-")
    python = venv / "bin" / "python"
    if not (venv / "complete").exists():
        shutil.rmtree(venv, ignore_errors=True)
        output_of(getattr(sys, "_base_executable", sys.executable), "-m", "venv", str(venv))
        output_of(str(python), "-m", "pip", "install", "--quiet", package)
        (venv / "complete").touch()
    return python


def ours() -> Implementation:
    return Implementation("storm-multilang", __version__, [sys.executable, str(HERE / "ours.py")])


def plain_python() -> Implementation:
    return Implementation("plain Python", platform.python_version(), [sys.executable, str(HERE / "plain.py")])


def plain_node() -> Implementation:
    return Implementation("plain Node", output_of("node", "--version"), ["node", str(HERE / "node.js")])


def storm_py() -> Implementation:
    file = of_storm("python", "storm.py")
    program = str(HERE / "peers" / "stormpy_component.py")
    return Implementation("storm.py", f"Storm {STORM}", [sys.executable, program], {"PYTHONPATH": str(file.parent)})


def storm_js() -> Implementation:
    version = output_of("node", "--version")
    file = of_storm("javascript", "storm.js")
    program = str(HERE / "peers" / "stormjs_component.js")
    return Implementation("storm.js", f"Storm {STORM}, Node {version}", ["node", program], {"STORM_JS": str(file)})


def storm_rb() -> Implementation:
    version = output_of("ruby", "-e", "print RUBY_VERSION")
    file = of_storm("ruby", "storm.rb")
    program = str(HERE / "peers" / "stormrb_component.rb")
    return Implementation("storm.rb", f"Storm {STORM}, Ruby {version}", ["ruby", "-I", str(file.parent), program])


def pystorm() -> Implementation:
    python = of_pypi(f"pystorm=={PYSTORM}")
    return Implementation("pystorm", PYSTORM, [str(python), str(HERE / "peers" / "pystorm_component.py")])


def streamparse() -> Implementation:
    python = of_pypi(f"streamparse=={STREAMPARSE}")
    return Implementation("streamparse", STREAMPARSE, [str(python), str(HERE / "peers" / "streamparse_component.py")])


def node_storm() -> Implementation:
    version = output_of("node", "--version")
    folder = of_npm("node-storm", NODE_STORM)
    program = str(HERE / "peers" / "nodestorm_component.js")
    return Implementation("node-storm", f"{NODE_STORM}, Node {version}", ["node", program], {"NODE_STORM": str(folder)})


IMPLEMENTATIONS = {
    "storm-multilang": ours,
    "plain Python": plain_python,
    "plain Node": plain_node,
    "storm.py": storm_py,
    "storm.js": storm_js,
    "storm.rb": storm_rb,
    "pystorm": pystorm,
    "streamparse": streamparse,
    "node-storm": node_storm,
}


def tested(each: Implementation, kind: str, patterns: tuple[str, ...]) -> Result:
    chosen = [case for case in selected(all_cases(), patterns) if case.fits(kind)]
    target = Target([*each.command, kind], kind, name=each.name, timeout=10, contract=True)
    before = {name: os.environ.get(name) for name in each.env}
    os.environ.update(each.env)  # a target's program inherits it
    try:
        return Run(target).run(chosen)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ---- the page ----


def page(found: list[tuple[Implementation, list[Result]]], missing: dict[str, str]) -> Iterator[str]:
    cases = all_cases()
    musts = sum(case.level == "MUST" for case in cases)
    yield "# Conformance of multi-lang libraries"
    yield ""
    yield f"""This page has the results of `multilang conformance` ({musts} MUST and {len(cases) - musts} SHOULD cases; some are for bolts
only, some for spouts only) for this library, Storm's own libraries, others from PyPI and npm, and no library at all.
Each ran the same component, written with what the library offers ([the contract](conformance.md#the-contract)); if a
library can't express something, these cases are left out.

This page is made by `scripts/conformance-matrix` with Python {platform.python_version()} on
{platform.system()}. [What the cases mean](conformance.md).

Not here, though they exist: petrel (PyPI), which asks for packages that are too old for today's Python; pyleus (PyPI), which needs Python 2; gostorm (Go), of which the module proxy gave neither the
original nor the fork of sixgill; storm-multilang-js and storm-node (Node), which the npm registry did not give. Searched for
and not found: a library in Rust, in the public documentation of crates (crates.io has no search here; antimony builds
topologies of another system); one in Perl, PHP, Ruby or Go among Debian's packages; and one beside those
here in the lists of PyPI and npm. CPAN, Packagist, RubyGems, NuGet and Hackage were not reached, so the libraries for
Perl, PHP, .NET and F# there are not judged."""
    yield ""
    yield "| library | version | kind | MUST met | SHOULD met | not judged | not asked |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: |"
    for each, results in found:
        for result in results:
            met = [f"{result.count(PASSED, level)} of {result.asked(level)}" for level in ("MUST", "SHOULD")]
            row = [each.name, each.version, result.kind, *met, result.count(BLOCKED), result.count(SKIPPED)]
            yield f"| {' | '.join(map(str, row))} |"
    for name, why in missing.items():
        yield f"| {name} | not tested here: {why} | | | | | |"
    yield ""
    yield "*Not judged*: another failure ended the conversation. *Not asked*: the library has no way to do what the case needs."
    for each, results in found:
        yield from failures(each, results)


def failures(each: Implementation, results: list[Result]) -> Iterator[str]:
    """Return the requirements that a library does not meet. Those that bolt and spout share are listed once."""
    rows: dict[str, tuple[CaseResult, list[str]]] = {}
    for result in results:
        for case in result.cases:
            if case.status == FAILED:
                rows.setdefault(case.path, (case, []))[1].append(result.kind)
    yield ""
    yield f"## {each.name}"
    yield ""
    if not rows:
        yield "Meets every requirement, MUST and SHOULD, as a bolt and as a spout."
        return
    yield from in_words(rows)
    yield "| case | | what it asks | what came |"
    yield "| --- | --- | --- | --- |"
    for path, (case, kinds) in rows.items():
        who = "" if len(kinds) == len(results) else f" ({kinds[0]} only)" if path.startswith("common/") else ""
        came = f"{case.why}: `{short(case.received)}`" if case.received and case.received not in case.why else case.why
        yield f"| {path}{who} | {case.level} | *{cell(case.title)}*: {cell(case.requirement)} | {cell(came)} |"


def in_words(rows: dict[str, tuple[CaseResult, list[str]]]) -> Iterator[str]:
    """Return the requirements that are not met as sentences, before the table with what came."""
    for level, word in (("MUST", "Does not meet"), ("SHOULD", "Better would be")):
        titles = [
            f"{case.title} ({' and '.join(kinds)})" if path.startswith("common/") else f"{case.title} ({kinds[0]})"
            for path, (case, kinds) in rows.items()
            if case.level == level
        ]
        if titles:
            yield f"{word} ({level}): {'; '.join(titles)}."
            yield ""


def short(text: str) -> str:
    text = " ".join(text.replace("`", "'").split())
    return text if len(text) <= 160 else f"{text[:100]} … {text[-50:]}"


def cell(text: str) -> str:
    # Process ids and folders of this machine are different in each run, and are left out.
    text = text.replace(str(cache_folder()), "…").replace(str(HERE.parents[1]), "…").replace("|", "\\|")
    text = re.sub(r'"pid": ?\d+', '"pid": …', text)
    return " ".join(text.replace("<", "&lt;").split()) if "`" not in text else " ".join(text.split())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(IMPLEMENTATIONS)}")
    parser.add_argument("--case", action="append", default=[], metavar="PATH", help="only these cases")
    parser.add_argument("--html", type=Path, help="write the matrix there, too")
    parser.add_argument(
        "--page", type=Path, help=f"write the page there (default: {PAGE.name} in docs/, if all is run)"
    )
    parser.add_argument(
        "--results", type=Path, help="store each result in this folder; those that are there are not tested again"
    )
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(IMPLEMENTATIONS)
    if unknown:
        parser.error(f"no implementation {', '.join(sorted(unknown))}")
    found: list[tuple[Implementation, list[Result]]] = []
    missing: dict[str, str] = {}
    for name in options.names or IMPLEMENTATIONS:
        try:
            each = IMPLEMENTATIONS[name]()
        except Missing as error:
            missing[name] = str(error)
            print(f"{name}: {error}")
            continue
        results = [stored(each, kind, tuple(options.case), options.results) for kind in KINDS]
        found.append((each, results))
        for result in results:
            print(
                f"{name} {result.kind}: {result.count(PASSED)} passed, {result.count(FAILED, 'MUST')} failed, "
                f"{result.count(FAILED, 'SHOULD')} warnings, {result.seconds:.1f} s",
                flush=True,
            )
    target = options.page or (None if options.names or options.case else PAGE)
    if target is not None:
        target.write_text("\n".join(page(found, missing)) + "\n", "utf-8")
    if options.html:
        options.html.write_text(to_page([result for _, results in found for result in results]), "utf-8")
    return 0


def stored(each: Implementation, kind: str, patterns: tuple[str, ...], folder: Path | None) -> Result:
    """Return a result that is in the folder, or run the cases and put it there."""
    if folder is None:
        return tested(each, kind, patterns)
    file = folder / f"{each.name.replace(' ', '-')}-{kind}.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(tested(each, kind, patterns).to_json(), "utf-8")
    return from_json(file.read_text("utf-8"), str(file))


if __name__ == "__main__":
    sys.exit(main())
