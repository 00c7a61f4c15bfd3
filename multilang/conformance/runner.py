"""Plays the cases to a program, several at a time, and reports the result of each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from shlex import join
from time import monotonic

from multilang.conformance.advice import ADVICE
from multilang.conformance.case import Case
from multilang.conformance.cases import all_cases, all_sections
from multilang.conformance.conversation import Conversation, Transcript
from multilang.conformance.errors import CaseFailed, DiedAtStart, Halted, NotApplicable, SlowStart
from multilang.conformance.exercise import exercise
from multilang.conformance.probe import Undecided, contract_of, finishes_tuples, kind_of
from multilang.conformance.reading import Finding
from multilang.conformance.result import BLOCKED, FAILED, PASSED, SKIPPED, UNKNOWN, CaseResult, Result, TranscriptEntry
from multilang.conformance.stuck import why_silent
from multilang.conformance.target import Programs, Target

_MOST_JOBS = 8
_MAX_SHOWN = 2000  # characters of one message in a transcript
_MAX_MESSAGES = 60  # messages in a transcript, from its beginning and from its end
_PATIENCE = 10  # number of late answers after which the limit is shortened
_SHORTENED = 4
# Storm waits for a start as long as it takes. A program that has started once is given so many times the limit from then on.
_START = 3
_GLANCE = 2.0  # seconds without an answer, after which a program's kind is looked at; no verdict depends on it alone
# Cases that ran out of time are played again, alone and for longer, because the machine may have been busy. When so many
# one after another are late again, the program is, and the others are played side by side with the usual limit, never less.
_AGAIN = 3
HANDSHAKE = "common/handshake/1"
FLUSHED = "common/io/9"
ACKS = "bolt/ordinary/2"  # the case that waits as long as an answer may take for a bolt to ack or fail its tuples
_ANSWERS = (HANDSHAKE, "bolt/heartbeat/1", "spout/commands/1")
# What must work, or nothing can be tested: the handshake, an answer, and for a spout that it works on after task ids. A
# program that keeps the contract is tested by tuples that it acks, most of them behind an emit.
_GATES = {
    "bolt": (HANDSHAKE, "bolt/heartbeat/1", "bolt/heartbeat/9"),
    "spout": (HANDSHAKE, "spout/commands/1", "spout/ordinary/1"),
}
_CONTRACT_GATES = {
    "bolt": ("common/io/8", "bolt/ordinary/1", "bolt/ordinary/3", "bolt/ack/1", "bolt/emit/4"),
    "spout": ("spout/emit/6",),
}
# It sends heartbeats that name a component, which a bolt may not answer however they come.
_SIMPLER = {"common/io/8": "bolt/heartbeat/2"}
# Cases that send what is formed in an unusual way. A fault that shows in them alone is theirs.
_FORMED = (
    *("common/handshake", "common/json", "common/io", "common/unknown", "common/context", "common/unicode"),
    *("common/numbers", "common/sizes"),
)
_FEW = 2  # sections of them; a fault that shows in more is one of all conversations
# Kinds of messages that a program may never send. Their requirements can't be judged then.
_SEEN_OR_NOT = {"ack", "anchors", "direct", "emit", "error", "fail", "log", "metrics"}
_FINISHES = {"ack", "fail"}
# Findings that explain why a case failed in whose conversation they are: it is blocked by the case that watches for them.
_EXPLAINS = ("sync.twice", "framing.utf8", "direct.nobody")


class Run:
    """One run of some cases against one program.

    Attributes:
        target: The program.
        again: Whether a few cases whose answers did not come in time are played again.
        jobs: The number of conversations at a time.
        report: Called with each result.
        notes: Remarks on the run, for people.
    """

    def __init__(
        self,
        target: Target,
        jobs: int | None = None,
        report: Callable[[CaseResult], None] | None = None,
        again: bool = True,
    ) -> None:
        """Prepare a run.

        Args:
            target: The program.
            jobs: The number of conversations at a time; None: two for each core, 8 at most.
            report: Called with each result.
            again: Whether a few cases whose answers did not come in time are played again.
        """
        self.target = target
        self.again = again
        # Much of a conversation is waiting, for the program's start or for its answers, so more of them than cores are held.
        self.jobs = jobs or min(_MOST_JOBS, 2 * (os.cpu_count() or 1))
        self.report = report or (lambda _: None)
        self.notes: list[str] = []
        self._names = {case.path: section.name for section in all_sections() for case in section.cases}
        self._found: dict[str, tuple[Finding, str]] = {}  # code -> the first finding, and the case of its conversation
        self._broke: dict[str, Finding] = {}  # path of a case -> the finding that it watches for and that failed it
        self._in_form: dict[str, list[tuple[Finding, Case]]] = {}  # code -> findings in cases of unusual form
        self._seen = 0  # the number of messages that were checked
        self._kinds: set[str | None] = set()  # their commands, with "direct" and "anchors" for emits that have these
        self._overdue = 0
        self._late: set[str] = set()  # cases that failed because something did not happen in time
        self._is_open = False
        self._is_found_out = target.kind == "auto"
        self._is_other_kind = False  # True: it is tested as a bolt, and looks like a spout, or the other way
        self._is_surely_other = False  # True: it has done what programs of its given kind never do
        self._exercised = False
        self._is_cut_short = False  # True: the ordinary work ran out of time
        self._lock = threading.Lock()

    def prepare(self, programs: Programs) -> None:
        """Find out the kind and the contract, where they are not given.

        Args:
            programs: Starts the program.
        """
        if self.target.kind == "auto":
            self.target.kind = kind_of(programs)
        else:
            self._glance_at_its_kind(programs)
        if self._is_surely_other:
            self.target.contract = False
        elif self.target.contract is None or (self.target.contract and not self.target.knows):
            steps = contract_of(programs, self.target.contract is True, self.notes)
            self.target.knows = steps or ()
            self.target.contract = steps is not None

    def run(self, cases: Sequence[Case] | None = None) -> Result:
        """Play the cases of the target's kind.

        Args:
            cases: The cases to choose from; None: all.

        Returns:
            The result of the program, with the cases in their order.

        Raises:
            CannotStart: The program can't be started.
            Undecided: The program's kind can't be found out.
        """
        start = monotonic()
        with Programs(self.target, ahead=cases is None or len(cases) > 1) as programs:
            kind = self._find_out(programs)
            chosen = [case for case in (all_cases() if cases is None else cases) if case.fits(kind)]
            results = self._gates(programs, chosen)
            if results is None:
                results = self._play_all(programs, chosen)
        order = {case.path: number for number, case in enumerate(chosen)}
        results.sort(key=lambda result: order[result.path])
        contract = list(self.target.knows) if self.target.contract else None
        name = self.target.name or join(self.target.command)
        return Result(name, list(self.target.command), kind, contract, monotonic() - start, results, self.notes)

    def _find_out(self, programs: Programs) -> str:
        """Return the kind of the program; it is unknown, and the cases of all kinds are played, if no valid first message comes."""
        try:
            self.prepare(programs)
        except Undecided as undecided:
            if undecided.shook_hands:
                raise
            self.target.kind = "bolt"  # either will do: the handshake is the same
            self.target.contract = False
            self.notes.append(
                "it could not be found out whether it is a bolt or a spout, because no valid first message came"
            )
            return UNKNOWN
        return self.target.kind

    # ---- gates ----

    def _gates(self, programs: Programs, chosen: Sequence[Case]) -> list[CaseResult] | None:
        """Test the handshake and one answer, without which nothing can be tested.

        Return None when both work, else all results.
        """
        if self._is_open:
            return None
        contract = _CONTRACT_GATES[self.target.kind] if self.target.contract else ()
        for path in (*_GATES[self.target.kind], *contract):
            gate = next(case for case in all_cases(self.target.kind) if case.path == path)
            limit = _GLANCE if self._is_surely_other and path in _ANSWERS else None
            result = self._play(programs, gate, limit, settle=False)
            if self.again and path in self._late and not self._is_other_kind:
                self._late.discard(path)
                result = self._play(programs, gate, self.target.timeout * 3, settle=False)
            if path == HANDSHAKE:
                programs.start_timeout = self.target.timeout * _START
            if result.status in (FAILED, BLOCKED):
                result = self._simpler(programs, result)
                if path in self._late and path in _ANSWERS and not self._is_other_kind:
                    self._look_for_held_output(programs, result)
                self._look_for_its_kind(programs, result)
                return self._closed(result, chosen)
        self._is_open = True
        return None

    def _simpler(self, programs: Programs, gate: CaseResult) -> CaseResult:
        """Return the result of the simpler case with the same fault, if it failed, else the gate's."""
        path = _SIMPLER.get(gate.path)
        if path is None or self.target.kind == "spout":
            return gate
        case = next(case for case in all_cases(self.target.kind) if case.path == path)
        result = self._play(programs, case, settle=False)
        return result if result.status == FAILED else gate

    def _closed(self, gate: CaseResult, chosen: Sequence[Case]) -> list[CaseResult]:
        """Return the results after a failed gate: the requirement at fault has failed, and all others are blocked."""
        found = {case.path: self._judge(case) for case in chosen if case.watch and case.run is None}
        results = {path: result for path, result in found.items() if result.status == FAILED}
        blamed = next((case for case in chosen if gate.status == BLOCKED and case.path == _culprit(gate)), None)
        if blamed is not None and blamed.path not in results:
            why = gate.why.partition(": ")[2]
            results[blamed.path] = gate = self._result(blamed, FAILED, why, gate.expected, gate.received)
        if gate.path in {case.path for case in chosen} and (gate.status == FAILED or not results):
            gate.status = FAILED
            results[gate.path] = gate
        culprit = results.get(gate.path) or next(iter(results.values()), None)
        for case in chosen:
            if case.path in results:
                pass
            elif culprit is not None:
                results[case.path] = self._result(case, BLOCKED, f"blocked by {culprit.path}: {culprit.title}")
            else:  # the requirement at fault is not among the chosen ones
                results[case.path] = self._result(
                    case, FAILED, f"it comes to nothing: {gate.path}, {gate.why}", gate.expected, gate.received
                )
        for result in results.values():
            self.report(result)
        return list(results.values())

    def _glance_at_its_kind(self, programs: Programs) -> None:
        """Find out early, with a short limit, whether the program is of the other kind than it is tested as."""
        if self._is_found_out or self.target.timeout <= _GLANCE:
            return
        with programs.conversation(_GLANCE, contract=False) as conversation:
            try:
                conversation.handshake()
                conversation.command("next") if conversation.kind == "spout" else conversation.beat()
                return
            except (CaseFailed, Halted):
                pass  # which the cases judge
        self._look_for_its_kind(programs)
        self._is_surely_other = self._is_other_kind and (
            self.target.kind == "bolt" or finishes_tuples(programs, _GLANCE)
        )

    def _look_for_its_kind(self, programs: Programs, gate: CaseResult | None = None) -> None:
        """Find out whether the program is of the other kind than it is tested as."""
        if not self._is_found_out:
            self._is_found_out = True
            try:
                kind = kind_of(programs)
            except Undecided:
                return
            self._is_other_kind = kind != self.target.kind
            if self._is_other_kind:
                self.notes.append(
                    f"it looks like a {kind}, and is tested as a {self.target.kind}: write {kind}, or neither"
                )
        if gate is not None and self._is_other_kind:
            gate.why += f"; it looks like a {'bolt' if self.target.kind == 'spout' else 'spout'}"

    def _look_for_held_output(self, programs: Programs, gate: CaseResult) -> None:
        """Blame the case of flushed output if the answers that did not come in time come when the input is closed."""
        with programs.conversation(self.target.timeout) as conversation:
            try:
                conversation.introduce()
                if conversation.kind == "spout":
                    conversation.begin("next")
                else:
                    conversation.heartbeat()
                conversation.flush()
                conversation.leave()
            except (Halted, CaseFailed):
                return
            if conversation.syncs:
                gate.status = BLOCKED
                gate.why = (
                    f"blocked by {FLUSHED}: what it writes comes only when its input is closed: flush each message"
                )
                gate.received = "its answers, behind the end of its input"

    def _play_all(self, programs: Programs, chosen: Sequence[Case]) -> list[CaseResult]:
        watched = [case for case in chosen if case.watch and case.run is None]
        played = [case for case in chosen if case.run is not None]
        if watched and not self._exercised:
            self._exercised = True
            self._exercise(programs, self.target.timeout)
        results: dict[str, CaseResult] = {}

        def done(result: CaseResult) -> None:
            results[result.path] = result
            if not self._may_play_again(result):
                self.report(result)

        self._play_in_turn(programs, played, results, done)
        self._play_again(programs, played, results)
        self._wait_for_acks(programs, watched, results)
        if self.again and self._is_cut_short and any(self._judge(case).status == SKIPPED for case in watched):
            self._exercise(programs, self.target.timeout * 3)
        self._settle_forms(results)
        self._settle_broken(results)
        results |= {case.path: self._judge(case) for case in watched}
        for case in watched:
            before = next((each for each in case.after if each in results and results[each].status == FAILED), None)
            if before is not None and results[case.path].status == FAILED:
                blocked = f"blocked by {before}: {results[before].title}"
                results[case.path] = self._result(case, BLOCKED, blocked)
            self.report(results[case.path])
        codes = {code for case in watched for code in case.watch}
        for case in played:
            # What a case alone watches for may have been found in the conversation of another.
            judged = self._judge(replace(case, watch=tuple(code for code in case.watch if code not in codes)))
            if judged.status == FAILED and results[case.path].status in (PASSED, BLOCKED, SKIPPED):
                results[case.path].status, results[case.path].why = FAILED, judged.why
                results[case.path].expected, results[case.path].received = judged.expected, judged.received
        slow = [
            result
            for result in results.values()
            if result.status == BLOCKED and result.is_must and "slow start" in result.why
        ]
        if slow and results.get(HANDSHAKE, slow[0]).status != FAILED:
            worst = results.get(HANDSHAKE, slow[0])
            worst.status, worst.why = FAILED, f"{slow[0].why.partition(': ')[2]} (in {len(slow)} conversations)"
        _settle_circles(results)
        for result in results.values():
            was_played = bool(result.transcript)
            _blame_the_first(result, results)
            if result.status == BLOCKED and was_played and results.get(_culprit(result), result).status != FAILED:
                # The case that blocks it was not chosen, or did not fail, so the fault is shown here.
                result.status, result.why = FAILED, result.why.partition(": ")[2]
        return list(results.values())

    def _side_by_side(
        self,
        programs: Programs,
        play: Callable[[Case], CaseResult],
        cases: Sequence[Case],
        done: Callable[[CaseResult], None],
    ) -> None:
        """Play cases, several at a time, and call ``done`` with each result in the order of the cases."""
        with ThreadPoolExecutor(max(1, self.jobs)) as pool:
            try:
                for result in pool.map(play, cases):
                    done(result)
            except BaseException:  # for Ctrl-C: the present conversations end with their processes
                programs.end()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _play_in_turn(
        self,
        programs: Programs,
        cases: Sequence[Case],
        results: Mapping[str, CaseResult],
        done: Callable[[CaseResult], None],
    ) -> None:
        """Play each case when those that it depends on are done, so that a slow one delays only its dependents.

        ``done`` adds each to ``results``.
        """
        left = [case for group in _in_turn(cases) for case in group]
        paths = {case.path for case in left}
        running: dict[Future[CaseResult], Case] = {}
        with ThreadPoolExecutor(max(1, self.jobs)) as pool:
            try:
                while left or running:
                    ready = [case for case in left if paths.intersection(case.after) <= results.keys()]
                    running |= {pool.submit(self._play_after, programs, case, results): case for case in ready}
                    left = [case for case in left if case not in ready]
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        del running[future]
                        done(future.result())
            except BaseException:  # for Ctrl-C: the present conversations end with their processes
                programs.end()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _play_after(self, programs: Programs, case: Case, results: Mapping[str, CaseResult]) -> CaseResult:
        """Play a case, unless one that it depends on failed."""
        stop = (FAILED, BLOCKED)
        before = next((results[path] for path in case.after if path in results and results[path].status in stop), None)
        if before is None:
            return self._play(programs, case)
        path = before.path if before.status == FAILED else _culprit(before)
        return self._result(case, BLOCKED, f"blocked by {path}: {before.title}")

    def _play_again(self, programs: Programs, played: Sequence[Case], results: dict[str, CaseResult]) -> None:
        slow = [case for case in played if self._may_play_again(results[case.path])]
        if self.again:
            left, late = list(slow), 0
            while left and late < _AGAIN:
                case = left.pop(0)
                self._late.discard(case.path)
                results[case.path] = self._play(programs, case, self.target.timeout * 3)
                late = late + 1 if case.path in self._late else 0

            def done(result: CaseResult) -> None:
                results[result.path] = result

            self._side_by_side(programs, lambda case: self._play(programs, case, self.target.timeout), left, done)
            for group in _in_turn(played) if slow else ():
                for case in group:
                    if results[case.path].status == BLOCKED and not results[case.path].transcript:
                        results[case.path] = self._play_after(programs, case, results)
        for case in slow:
            self.report(results[case.path])

    def _may_play_again(self, result: CaseResult) -> bool:
        return result.status in (FAILED, BLOCKED) and result.path in self._late

    # ---- one case ----

    def _limit(self) -> float:
        if self._overdue < _PATIENCE:
            return self.target.timeout
        shortened = max(1.0, self.target.timeout / _SHORTENED)
        if not self.notes:
            self.notes.append(
                f"{_PATIENCE} answers did not come within {self.target.timeout:g} s; the limit was {shortened:g} s from then on"
            )
        return min(self.target.timeout, shortened)

    def _play(self, programs: Programs, case: Case, limit: float | None = None, settle: bool = True) -> CaseResult:
        reason = self._inapplicable(case)
        if reason is not None or case.run is None:
            return self._result(case, SKIPPED, reason or "")
        start = monotonic()
        with programs.conversation(limit or self._limit(), dict(case.env)) as conversation:
            result = self._converse(case, conversation, settle)
            if result.status == PASSED:
                conversation.look_at_pid_file()
            result.seconds = round(monotonic() - start, 3)
            result.transcript = shown(conversation.transcript)
            result.bytes_sent, result.bytes_received = conversation.transcript.sent, conversation.transcript.received
            self._note(conversation, case.path, case)
        return result

    def _converse(self, case: Case, conversation: Conversation, settle: bool) -> CaseResult:
        assert case.run is not None
        try:
            try:
                case.run(conversation)
                if settle and not conversation.monitor.leaving:
                    conversation.settle()
            except (LookupError, TypeError, AttributeError, ValueError, StopIteration) as error:
                if isinstance(error, UnicodeError):
                    raise
                raise CaseFailed(
                    f"what came has not the shape that is due ({type(error).__name__}: {error})",
                    case.requirement,
                    " | ".join(
                        each.raw.decode("utf-8", "backslashreplace")[:200] for each in conversation.received[-4:]
                    ),
                ) from None
        except NotApplicable as reason:
            return self._result(case, SKIPPED, str(reason))
        except Halted as halted:
            return self._halted(case, halted)
        except CaseFailed as failed:
            with self._lock:
                self._overdue += failed.timed_out
                # A program that started in other conversations may have met a handshake that its pipe cut by chance.
                if failed.timed_out or (isinstance(failed, DiedAtStart) and case.path != HANDSHAKE):
                    self._late.add(case.path)
            _look_again(conversation)
            if isinstance(failed, SlowStart) and case.path != HANDSHAKE:
                return self._result(case, BLOCKED, f"blocked by {HANDSHAKE}: {failed.why}", failed.expected, "nothing")
            for cause in (each for code in _EXPLAINS for each in conversation.findings if each.code == code):
                watch = self._watch_of(cause)
                if watch is not None and cause.code not in case.watch:
                    return self._result(case, BLOCKED, f"blocked by {watch.path}: {cause.detail}", failed.expected)
            silent = why_silent(conversation) if failed.timed_out else None
            if failed.culprit is not None and failed.culprit != case.path:
                why = f"blocked by {failed.culprit}: {failed.why}"
                return self._result(case, BLOCKED, why, failed.expected, failed.received)
            if silent is not None and silent[0] != case.path:
                why = f"blocked by {silent[0]}: {silent[1]}: {failed.why}"
                return self._result(case, BLOCKED, why, failed.expected, failed.received)
            return self._result(case, FAILED, failed.why, failed.expected, failed.received)
        broken = next((finding for finding in conversation.findings if finding.code in case.watch), None)
        if broken is not None:
            self._broke[case.path] = broken
            return self._result(case, FAILED, broken.text, case.title, broken.detail)
        return self._result(case, PASSED)

    def _halted(self, case: Case, halted: Halted) -> CaseResult:
        finding = halted.finding
        if finding.code in case.watch:
            self._broke[case.path] = finding
            return self._result(case, FAILED, finding.text, case.title, finding.detail)
        watch = self._watch_of(finding)
        path = halted.path or (watch.path if watch else finding.code)
        if path == case.path:
            return self._result(case, FAILED, finding.text, case.requirement, finding.detail)
        return self._result(case, BLOCKED, f"blocked by {path}: {finding.detail}", case.requirement, finding.detail)

    def _inapplicable(self, case: Case) -> str | None:
        if not case.steps:
            return None
        if not self.target.contract:
            return "needs a program that keeps the conformance contract"
        missing = [step for step in case.steps if step not in self.target.knows]
        return f"the program does not know the step {', '.join(missing)}" if missing else None

    # ---- what is watched ----

    def _exercise(self, programs: Programs, limit: float) -> None:
        with programs.conversation(limit) as conversation:
            try:
                exercise(conversation, self.target.knows)
            except Halted:
                pass  # the finding is noted below
            except CaseFailed as failed:  # the cases find the fault
                self._is_cut_short = failed.timed_out
            self._note(conversation, "an ordinary day's work")
            if conversation.kind == "bolt" and not conversation.monitor.finished and not conversation.received.emits:
                self._look_for_its_kind(programs)
            if not self.target.contract and set(conversation.monitor.finished.values()) == {"fail"}:
                self.notes.append(
                    "the bolt failed every tuple that it was given: --tuple is for what it takes, --output for what it emits"
                )

    def _wait_for_acks(self, programs: Programs, watched: Sequence[Case], results: Mapping[str, CaseResult]) -> None:
        """Give an ordinary bolt the whole limit for an ack or fail, if there is none yet and they are judged."""
        if self.target.kind == "spout" or self.target.contract or ACKS in results:
            return
        judged = {code.partition(".")[0] for case in watched for code in case.watch}
        if judged & _FINISHES and not self._kinds & _FINISHES:
            case = next(case for case in all_cases("bolt") if case.path == ACKS)
            self._play(programs, case, self.target.timeout)

    def _note(self, conversation: Conversation, where: str, case: Case | None = None) -> None:
        """Store what the watched requirements are judged by."""
        with self._lock:
            self._seen += len(conversation.received)
            for message in conversation.received:
                self._kinds.add(message.command)
                if message.command == "emit" and message.task is not None:
                    self._kinds.add("direct")
                if message.command == "emit" and message.anchors:
                    self._kinds.add("anchors")
            if any(finding.code == "emit.late" for finding in conversation.findings):
                _look_again(conversation)
            shifted = any(finding.code == "sync.twice" for finding in conversation.findings)
            for finding in conversation.findings:
                if shifted and finding.code == "emit.late":
                    continue  # the answers were one too early since the second sync
                if case is not None and finding.code not in case.watch and case.path.startswith(_FORMED):
                    self._in_form.setdefault(finding.code, []).append((finding, case))
                elif case is None or self._counts(finding, case):
                    self._found.setdefault(finding.code, (finding, where))

    def _settle_forms(self, results: Mapping[str, CaseResult]) -> None:
        """Count the findings in cases of unusual form that show elsewhere, too, or in many of these, or stopped none."""
        for code, found in self._in_form.items():
            sections = {case.path.rpartition("/")[0] for _, case in found}
            for finding, case in found:
                stopped = case.path in results and results[case.path].status in (BLOCKED, FAILED)
                if self._counts(finding, case) and (len(sections) > _FEW or not stopped):
                    self._found.setdefault(code, (finding, case.path))

    def _settle_broken(self, results: Mapping[str, CaseResult]) -> None:
        """Let a case that was failed by what shows elsewhere, too, be blocked by the case that watches for it."""
        for path, finding in self._broke.items():
            watch = self._watch_of(finding)
            if finding.code not in self._found or watch is None or watch.path == path:
                continue
            for result in results.values():
                if result.path == path and result.status == FAILED:
                    result.status, result.why = BLOCKED, f"blocked by {watch.path}: {finding.detail}"
                elif result.status == BLOCKED and _culprit(result) == path:
                    result.why = f"blocked by {watch.path}: {finding.detail}"

    def _counts(self, finding: Finding, case: Case) -> bool:
        """Return whether a finding in this case's conversation breaks a watched requirement.

        It does not if the case provokes it, nor if it would turn a SHOULD into a MUST. Such a case, but for the one
        that waits for acks, may send what Storm never sends, and a program that mistakes it, for instance for a tuple,
        fails only this case.
        """
        if finding.code in case.watch:
            return False
        watch = self._watch_of(finding)
        if finding.code in case.provokes:
            return False
        return case.level == "MUST" or case.path == ACKS or watch is None or watch.level == "SHOULD"

    def _watch_of(self, finding: Finding) -> Case | None:
        """Return the case that watches for a finding, in all conversations rather than in its own alone."""
        watching = [each for each in all_cases(self.target.kind) if finding.code in each.watch]
        return min(watching, key=lambda case: case.run is not None, default=None)

    def _judge(self, case: Case) -> CaseResult:
        for code in case.watch:
            if code in self._found:
                finding, where = self._found[code]
                return self._result(
                    case, FAILED, f"{finding.detail} (in {where}); {ADVICE[code]}", case.title, finding.detail
                )
        if {code.partition(".")[0] for code in case.watch} <= _SEEN_OR_NOT - self._kinds:
            return self._result(case, SKIPPED, "the program sent nothing of the kind")
        return self._result(case, PASSED, f"watched in {self._seen} messages")

    def _result(
        self, case: Case, status: str, why: str = "", expected: str | None = None, received: str | None = None
    ) -> CaseResult:
        section = self._names[case.path]
        return CaseResult(
            case.path, section, case.level, case.title, case.requirement, case.source, status, why, expected, received
        )


def _in_turn(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """Return the cases in groups, each after those that its cases depend on."""
    left = list(cases)
    while left:
        paths = {case.path for case in left}
        group = [case for case in left if not paths.intersection(case.after)]
        yield group
        left = [case for case in left if paths.intersection(case.after)]


def _look_again(conversation: Conversation) -> None:
    """Read a late second sync, which shifts a spout's answers."""
    if conversation.kind == "spout" and not any(finding.code == "sync.twice" for finding in conversation.findings):
        try:
            conversation.linger()
        except Halted:
            pass  # the finding is noted


def _blame_the_first(result: CaseResult, results: Mapping[str, CaseResult]) -> None:
    """Name the first blocker of a case that is blocked by a blocked one."""
    passed = {result.path}
    while result.status == BLOCKED:
        blocker = results.get(_culprit(result))
        if blocker is None or blocker.status != BLOCKED or blocker.path in passed:
            return
        passed.add(blocker.path)
        result.why = blocker.why


def _settle_circles(results: Mapping[str, CaseResult]) -> None:
    """Fail the case that a conversation blames, if it was not played because of that conversation's own case."""
    for result in list(results.values()):
        blamed = results.get(_culprit(result)) if result.status == BLOCKED and result.transcript else None
        if blamed is None or blamed.status != BLOCKED or blamed.transcript:
            continue
        if _culprit(blamed) in (result.path, blamed.path):
            blamed.status, blamed.why = FAILED, result.why.partition(": ")[2]
            blamed.expected, blamed.received = result.expected, result.received


def _culprit(result: CaseResult) -> str:
    """Return the path of the case that blocks this one."""
    return result.why.split(" ")[2].rstrip(":")


def shown(transcript: Transcript) -> list[TranscriptEntry]:
    """Return a conversation for the report, of a long one its beginning and its end.

    Args:
        transcript: The conversation.
    """
    entries = [
        TranscriptEntry(direction, _text(data), round(at, 6), len(data))
        for number, ((direction, data), at) in enumerate(zip(transcript, transcript.times, strict=True))
        if min(number, len(transcript) - 1 - number) < _MAX_MESSAGES
    ]
    left_out = len(transcript) - len(entries) + transcript.forgotten
    if left_out:
        middle = entries[_MAX_MESSAGES - 1]
        between = transcript.sent + transcript.received - sum(each.size for each in entries)
        entries.insert(_MAX_MESSAGES, TranscriptEntry("…", f"{left_out} messages", middle.seconds, between))
    return entries


def _text(data: bytes) -> str:
    if len(data) > _MAX_SHOWN:
        half = _MAX_SHOWN // 2
        data = data[:half] + f"… {len(data)} bytes …".encode() + data[-half:]
    return data.decode("utf-8", "backslashreplace")
