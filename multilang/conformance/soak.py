"""Soak and fuzz: random conversations one after the other, each of which is a case that a seed and a number play again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from shlex import join
from time import monotonic

from multilang.conformance.cases import all_cases
from multilang.conformance.errors import CaseFailed, Halted
from multilang.conformance.random_conversations import RandomConversation, random_conversation
from multilang.conformance.result import FAILED, PASSED, CaseResult, Result
from multilang.conformance.runner import Run, shown
from multilang.conformance.target import Programs, Target

_SHORTEST = 200  # actions of a soak's shortest conversations; each is twice as long as the one before, and after the longest the shortest follows
_LENGTHS = 7
_FUZZED = 40  # random messages of one conversation
_MOST_FAILURES = 5  # after which the others would only repeat them
_REQUIREMENT = {
    "soak": "A legal conversation in any order, cut anywhere, is answered as the protocol demands.",
    "fuzz": "Any value, and any way in which JSON may spell it, is read and written as it is.",
}


@dataclass(frozen=True)
class Plan:
    """The random conversations to have.

    Attributes:
        what: ``"soak"`` or ``"fuzz"``.
        seed: The seed of all that is random.
        seconds: The duration of a soak.
        messages: The number of random messages of a fuzz.
        number: The one conversation to have, whole; None: all of them.
    """

    what: str
    seed: int
    seconds: float = 0.0
    messages: int = 0
    number: int | None = None

    def numbers(self) -> Iterator[int]:
        """Return the numbers of the conversations."""
        if self.number is not None:
            return iter((self.number,))
        return count() if self.what == "soak" else iter(range(-(-self.messages // _FUZZED)))

    def actions(self, number: int) -> int:
        """Return how many things are done in a conversation.

        Args:
            number: Its number.
        """
        return _FUZZED if self.what == "fuzz" else _SHORTEST << number % _LENGTHS


class RandomRun:
    """A run of random conversations with one program."""

    def __init__(self, target: Target, plan: Plan, report: Callable[[CaseResult], None] | None = None) -> None:
        """Prepare a run.

        Args:
            target: The program.
            plan: The conversations.
            report: Called with each result.
        """
        self.target = target
        self.plan = plan
        self.report = report or (lambda _: None)
        self._messages = 0

    def run(self) -> Result:
        """Have the conversations. Raises CannotStart and Undecided as ``Run.run`` does."""
        start = monotonic()
        first = Run(self.target)
        plan, target = self.plan, self.target
        results: list[CaseResult] = []
        with Programs(target, ahead=False) as programs:
            first.prepare(programs)
            until = None if plan.what == "fuzz" or plan.number is not None else start + plan.seconds
            for number in plan.numbers():
                if until is not None and monotonic() >= until:
                    break
                results.append(self._play(programs, number, until))
                self.report(results[-1])
                if sum(each.status == FAILED for each in results) >= _MOST_FAILURES:
                    first.notes.append(f"ended after {_MOST_FAILURES} failures")
                    break
        contract = list(target.knows) if target.contract else None
        notes = [*first.notes, self._closing(len(results))]
        name = target.name or join(target.command)
        return Result(name, list(target.command), target.kind, contract, monotonic() - start, results, notes)

    def _closing(self, conversations: int) -> str:
        return f"{self.plan.what}: seed {self.plan.seed}, {conversations} conversations, {self._messages:,} messages"

    def _play(self, programs: Programs, number: int, until: float | None) -> CaseResult:
        plan, kind = self.plan, self.target.kind
        actions = plan.actions(number)
        start = monotonic()
        with programs.conversation(self.target.timeout) as conversation:
            random = Random(f"{plan.what} {plan.seed} {number}")
            odd = plan.what == "fuzz"
            each = random_conversation(kind)(conversation, self.target.knows, random, actions, odd)
            failure = _failure(each, kind, until)
            self._messages += len(conversation.transcript.times) + conversation.transcript.forgotten
            title = f"conversation {number} of seed {plan.seed}, {each.done} of its {actions} actions"
            result = CaseResult(
                *(f"{plan.what}/{number}", "Random conversations", "MUST", title, _REQUIREMENT[plan.what]),
                *("all requirements together", FAILED if failure else PASSED),
                seconds=round(monotonic() - start, 3),
                bytes_sent=conversation.transcript.sent,
                bytes_received=conversation.transcript.received,
            )
            if failure is not None:
                result.why = f"{failure.why}; to play it again, alone: --{plan.what} {self._size()} --seed {plan.seed} --number {number}"
                result.expected, result.received = failure.expected, failure.received
                result.transcript = shown(conversation.transcript)
        return result

    def _size(self) -> str:
        return f"{self.plan.seconds:g}s" if self.plan.what == "soak" else str(self.plan.messages)


def _failure(conversation: RandomConversation, kind: str, until: float | None) -> CaseFailed | None:
    """Have a conversation. Return its failure, or None."""
    try:
        conversation.play(until)
    except CaseFailed as failed:
        return failed
    except Halted as halted:
        return CaseFailed(halted.finding.detail, "what the protocol allows", halted.finding.code)
    levels = {code: case.level for case in all_cases(kind) for code in case.watch}
    for finding in conversation.conversation.findings:
        if levels.get(finding.code) == "MUST":
            return CaseFailed(finding.detail, "what the protocol allows", finding.code)
    return None
