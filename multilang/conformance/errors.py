"""The ways in which a case ends early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multilang.conformance.reading import Finding


class CaseFailed(Exception):
    """The program does not keep the requirement.

    Attributes:
        why: The reason.
        expected: What was expected; it is shown above ``received``.
        received: What came.
        timed_out: True if something did not come in time.
        culprit: The path of the case whose requirement is broken, if it may be another's.
    """

    def __init__(
        self,
        why: str,
        expected: str | None = None,
        received: str | None = None,
        timed_out: bool = False,
        culprit: str | None = None,
    ):
        super().__init__(why)
        self.why = why
        self.expected = expected
        self.received = received
        self.timed_out = timed_out
        self.culprit = culprit


class SlowStart(CaseFailed):
    """The pid has not come in time, in a conversation that asks for something else."""


class DiedAtStart(CaseFailed):
    """The program ended before its pid, at a handshake as in all other conversations."""


class Halted(Exception):
    """The program broke a rule that ends a Storm worker, so that this conversation could not continue.

    Attributes:
        finding: The broken rule.
        path: The path of the case whose requirement it is; None: the case that watches for the finding's code.
    """

    def __init__(self, finding: Finding, path: str | None = None) -> None:
        super().__init__(finding.detail)
        self.finding = finding
        self.path = path


class NotApplicable(Exception):
    """The case can't be played to this program; the text has the reason."""


class BadFile(Exception):
    """A recording or a result can't be read; the text names the file."""
