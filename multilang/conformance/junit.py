"""A run as JUnit's XML, which CI systems show."""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree import ElementTree

from multilang.conformance.result import BLOCKED, FAILED, SKIPPED, CaseResult, Result

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(result: Result, strict: bool = False) -> str:
    """Return one suite for each section. A SHOULD that is not kept counts as skipped, unless the run is strict."""
    root = ElementTree.Element("testsuites", name=_clean(f"multilang conformance {result.name}"))
    for path, cases in groupby(result.cases, key=lambda case: case.path.rpartition("/")[0]):
        _suite(root, path, list(cases), strict)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, path: str, cases: list[CaseResult], strict: bool) -> None:
    failures = sum(case.status == FAILED and (strict or case.is_must) for case in cases)
    skipped = sum(case.status != FAILED and case.status != "passed" for case in cases)
    skipped += sum(case.status == FAILED for case in cases) - failures
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=f"{path} {cases[0].section}",
        tests=str(len(cases)),
        failures=str(failures),
        skipped=str(skipped),
        errors="0",
        time=f"{sum(case.seconds for case in cases):.3f}",
    )
    for case in cases:
        _case(suite, case, strict)


def _case(suite: ElementTree.Element, case: CaseResult, strict: bool) -> None:
    name = f"{case.path} {case.level} {case.title}"
    element = ElementTree.SubElement(
        suite, "testcase", classname=case.path.replace("/", "."), name=_clean(name), time=f"{case.seconds:.3f}"
    )
    if case.status == FAILED and (strict or case.is_must):
        failure = ElementTree.SubElement(element, "failure", message=_clean(case.why), type=case.level)
        failure.text = _clean(
            f"{case.requirement} ({case.source})\nexpected: {case.expected}\nreceived: {case.received}\n\n"
            + "\n".join(f"{said.direction}: {said.text}" for said in case.transcript)
        )
    elif case.status in (FAILED, BLOCKED, SKIPPED):
        word = "SHOULD, not kept: " if case.status == FAILED else ""
        ElementTree.SubElement(element, "skipped", message=_clean(word + case.why))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
