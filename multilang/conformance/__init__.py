"""Tests of a program, in any language, against Storm's multi-lang protocol, requirement by requirement.

``run(Target(["node", "mybolt.js"]))`` plays ShellBolt or ShellSpout against the program. Cases are in ``cases``, one
module for each section of the protocol; ``multilang conformance`` is the command.
"""

from __future__ import annotations

from multilang.conformance.case import Case
from multilang.conformance.cases import all_cases
from multilang.conformance.child import CannotStart
from multilang.conformance.probe import Undecided
from multilang.conformance.result import CaseResult, Result
from multilang.conformance.runner import Run
from multilang.conformance.target import Target

__all__ = ["CannotStart", "Case", "CaseResult", "Result", "Run", "Target", "Undecided", "all_cases"]
