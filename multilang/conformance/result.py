"""The result of a run, as data: stored as JSON, shown as a table, JUnit's XML or a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from multilang.conformance.errors import BadFile

FORMAT = 3
PASSED, FAILED, BLOCKED, SKIPPED = "passed", "failed", "blocked", "skipped"
UNKNOWN = "unknown"  # the kind of a program that does not come to a first valid message


@dataclass
class TranscriptEntry:
    """One message of a conversation.

    Attributes:
        direction: ``"sent"``, ``"received"``, or ``"…"`` for messages that are left out.
        text: Its bytes as text, with escapes for what is no UTF-8; a long one is cut in its middle.
        seconds: When it was sent or read, since the beginning of the conversation.
        size: The number of its bytes.
    """

    direction: str
    text: str
    seconds: float
    size: int


@dataclass
class CaseResult:
    """The result of one case.

    Attributes:
        path: The case's path.
        section: The name of its section.
        level: MUST or SHOULD.
        title: The case in a few words.
        requirement: The requirement in a sentence.
        source: The page or measurement that the requirement comes from.
        status: passed, failed, blocked by the failure of another requirement, or skipped.
        why: The reason for the status.
        expected: The expected message, of a failure.
        received: The received message, of a failure.
        seconds: The duration of the conversation.
        bytes_sent: The number of bytes that the program was sent.
        bytes_received: The number of bytes that it wrote.
        transcript: The messages of the conversation; of a long one its beginning and its end.
    """

    path: str
    section: str
    level: str
    title: str
    requirement: str
    source: str
    status: str
    why: str = ""
    expected: str | None = None
    received: str | None = None
    seconds: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    transcript: list[TranscriptEntry] = field(default_factory=list)

    @property
    def is_must(self) -> bool:
        """True if its failure counts as a failure also without --strict."""
        return self.level == "MUST"


@dataclass
class Result:
    """The result of one program.

    Attributes:
        name: The program's name.
        command: Its command line.
        kind: ``"bolt"``, ``"spout"``, or ``"unknown"`` if it does not come to a first valid message.
        contract: The steps of the conformance contract that it knows; None: it does not keep the contract.
        seconds: The duration of the run.
        cases: The results of the cases.
        notes: Remarks on the run, for people.
    """

    name: str
    command: list[str]
    kind: str
    contract: list[str] | None
    seconds: float
    cases: list[CaseResult]
    notes: list[str] = field(default_factory=list)

    def count(self, status: str, level: str | None = None) -> int:
        """Return how many cases have this status.

        Args:
            status: The status.
            level: Only cases of this level; None: all.
        """
        return sum(case.status == status and level in (None, case.level) for case in self.cases)

    def asked(self, level: str | None = None) -> int:
        """Return how many cases were asked of the program: those that are not skipped.

        Args:
            level: Only cases of this level; None: all.
        """
        return sum(self.count(status, level) for status in (PASSED, FAILED, BLOCKED))

    @property
    def judged(self) -> int:
        """The number of cases that have a verdict: passed or failed."""
        return self.count(PASSED) + self.count(FAILED)

    def bad(self, strict: bool = False, required: int | None = None) -> bool:
        """Return whether the program fails as a whole.

        Args:
            strict: Whether a SHOULD that is not kept counts, too.
            required: The number of cases that must have a verdict; None: any.
        """
        if required is not None and self.judged < required:
            return True
        return any(case.status == FAILED and (strict or case.is_must) for case in self.cases)

    def left_out(self) -> dict[tuple[str, str], int]:
        """Return why cases were skipped or blocked: status and reason, the most frequent first, and how many cases each.

        The reason for a blocked case is the path of the case whose failure blocks it.
        """
        reasons = Counter((case.status, _reason(case)) for case in self.cases if case.status in (SKIPPED, BLOCKED))
        return dict(reasons.most_common())

    def to_json(self) -> str:
        """Return the result as a JSON document."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"


def _reason(case: CaseResult) -> str:
    if case.status == BLOCKED:
        return case.why.partition(": ")[0].removeprefix("blocked ")
    return case.why or "no reason is known"


def from_json(text: str, where: str) -> Result:
    """Return the result that ``to_json`` wrote. Raises BadFile."""
    try:
        data: dict[str, Any] = json.loads(text)
        if data.pop("format") != FORMAT:
            raise BadFile(f"{where} was written by another version of this command; run it again")
        cases = [
            CaseResult(**{**case, "transcript": [TranscriptEntry(**each) for each in case["transcript"]]})
            for case in data.pop("cases")
        ]
        return Result(cases=cases, **data)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadFile(f"{where} is no result of multilang conformance --json") from None


def read(paths: Sequence[Path]) -> list[Result]:
    """Return the results in some files."""
    return [from_json(path.read_text("utf-8", "replace"), str(path)) for path in paths]
