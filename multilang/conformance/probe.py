"""Finding out whether a program is a bolt or a spout, and whether it keeps the conformance contract."""

from __future__ import annotations

import json
import re
from time import monotonic

from multilang.conformance.conversation import Conversation
from multilang.conformance.errors import CaseFailed, Halted
from multilang.conformance.target import Programs

VERSION = 1
# The answer in output that is no JSON, as in a language's own notation, for instance.
_ANSWER = re.compile(r"""[\[(]\W*conformance\W+(\d+)\W+[\[(]([^\[\]()]*)[\])]""")
_WORD = re.compile(r"\w+")
# The answer to the contract's question may come so many seconds after the answer to a later heartbeat, plus so many
# times the seconds since the start, because on a busy machine the answer is slow, too.
_AFTER = 1.0
_TIMES = 3
_NEXTS = 5  # answered nexts that prove a spout, if it is silent as a bolt; a bolt with a timer has sent a sync by then


class Undecided(Exception):
    """The kind of the program can't be found out; the text has the options that name it.

    Attributes:
        shook_hands: True if a valid first message came at least.
    """

    def __init__(self, text: str, shook_hands: bool = True) -> None:
        super().__init__(text)
        self.shook_hands = shook_hands


def kind_of(programs: Programs) -> str:
    """Return "spout" if the program answers each next with a sync, "bolt" if it answers a heartbeat or syncs
    unasked.
    """
    timeout = programs.target.timeout
    with (
        programs.conversation(timeout, kind="spout", contract=False) as spout,
        programs.conversation(timeout, kind="bolt", contract=False) as bolt,
    ):
        start = monotonic()
        for conversation in (spout, bolt):
            conversation.introduce()
        over = {conversation.kind: not _pid(conversation) for conversation in (spout, bolt)}
        until = monotonic() + timeout
        shook_hands = not all(over.values())
        nexts = 0
        beat_after = 0.0  # seconds that the bolt took for its first sync
        bolt.heartbeat()
        while monotonic() < until and not all(over.values()):
            if not over["spout"] and nexts <= spout.syncs:
                spout.begin("next")
                nexts += 1
            for conversation in (spout, bolt):
                over[conversation.kind] = over[conversation.kind] or _look(conversation)
            if bolt.syncs > 1:
                return "bolt"  # one of them was not asked for, which only a bolt may send
            if spout.syncs >= (1 if over["bolt"] else _NEXTS):
                return "spout"
            if bolt.syncs and not spout.syncs:
                beat_after = beat_after or monotonic() - start
                if over["spout"] or monotonic() - start > 1 + 3 * beat_after:
                    return "bolt"
        if spout.syncs or bolt.syncs:
            return "spout" if spout.syncs else "bolt"
        why = bolt.child.error_text.decode("utf-8", "replace").strip()[-400:]
    raise Undecided(
        "it is unknown whether the program is a bolt or a spout: it answered neither a heartbeat nor a next with a sync. "
        f"Write which: multilang conformance bolt -- …{f' (on standard error: {why})' if why else ''}",
        shook_hands,
    )


def finishes_tuples(programs: Programs, limit: float) -> bool:
    """Return whether the program acks or fails a tuple, which only a bolt does.

    Args:
        programs: Starts the program.
        limit: Seconds in which it does.
    """
    with programs.conversation(limit, kind="bolt", contract=False) as conversation:
        try:
            conversation.handshake()
            conversation.finished(conversation.tuple(conversation.world.tuples[0]))
        except (CaseFailed, Halted):
            return False
    return True


def _pid(conversation: Conversation) -> bool:
    try:
        conversation.wait_pid()
    except (CaseFailed, Halted):
        return False
    return True


def _look(conversation: Conversation) -> bool:
    """Return whether no more output will come."""
    try:
        conversation.take()
        conversation.child.pump(monotonic() + 0.005)
        conversation.take()
    except (CaseFailed, Halted):
        return True
    return conversation.child.output_ended


def contract_of(programs: Programs, insist: bool = False, notes: list[str] | None = None) -> tuple[str, ...] | None:
    """Return the steps that the program knows, or None when it does not keep the contract.

    A program that neither answers nor finishes what asks it is asked once more, with a longer limit.

    Args:
        programs: Starts the program.
        insist: Raise Undecided instead of returning None.
        notes: Gets a sentence if it could not be found out.
    """
    for patience in (_TIMES, None):
        steps, is_decided, answer = _asked(programs, patience)
        if steps is not None:
            return steps
        if is_decided:
            break
    if insist:
        raise Undecided(
            f'the program does not keep the conformance contract: asked for ["contract"], it answered {answer}'
        )
    if notes is not None and not is_decided:
        notes.append(
            "it could not be found out whether the program keeps the conformance contract, because it did not finish what "
            f"asked it within {programs.target.timeout:g} s; use --contract, --no-contract, or a longer --timeout"
        )
    return None


def _asked(programs: Programs, patience: int | None) -> tuple[tuple[str, ...] | None, bool, str]:
    """Ask the program for the contract.

    Args:
        programs: Starts the program.
        patience: A bolt is waited for so many times the seconds since the start; None: the whole limit.

    Returns:
        The steps that it knows, or None; whether that is certain; and its answer as text.
    """
    is_decided = True
    with programs.conversation(programs.target.timeout, contract=True) as conversation:
        start = monotonic()
        try:
            if conversation.kind == "spout":
                conversation.handshake('[[["contract"]]]')
                conversation.command("activate")
                conversation.next()
            else:
                conversation.handshake()
                id = conversation.steps(["contract"])
                conversation.heartbeat()
                conversation.wait(
                    lambda: conversation.monitor.finished.get(id) or conversation.syncs or None, "an answer"
                )
                if patience is not None:
                    conversation.timeout = min(conversation.timeout, _AFTER + patience * (monotonic() - start))
                conversation.finished(id)
                conversation.beat()  # what was written behind the ack, by another thread for instance, has come, too
        except CaseFailed as failure:
            is_decided = not failure.timed_out
        except Halted:
            pass  # its messages until then count
        steps = steps_in(conversation)
        if steps is not None:
            return steps, True, ""
        output = b" | ".join(conversation.outputs).replace(b"\nend\n", b"").decode("utf-8", "backslashreplace")
        error = conversation.child.error_text.decode("utf-8", "replace").strip()[-600:]
        return None, is_decided, f"{output[-600:] or 'nothing'}{f', and on standard error: {error}' if error else ''}"


def steps_in(conversation: Conversation) -> tuple[str, ...] | None:
    """Return the steps that the program knows by its answer to the contract's question, or None if it gave none.

    Args:
        conversation: The conversation in which it was asked.
    """
    for message in conversation.received.emits:
        answer = message.values[0] if isinstance(message.values, list) and message.values else None
        if isinstance(answer, list) and len(answer) == 3 and answer[0] == "conformance":
            return _steps(answer)
    # A fault may have ended the conversation before, but the answer may still be in the output.
    written = b"".join(conversation.outputs) + bytes(conversation.child.unread)
    found = _ANSWER.search(written.decode("utf-8", "replace"))
    return None if found is None else _steps(["conformance", found[1], _WORD.findall(found[2])])


def _steps(answer: list[object]) -> tuple[str, ...]:
    _, version, steps = answer
    # That numbers come out as texts is a fault of which another case reports.
    if version not in (VERSION, str(VERSION)) or not isinstance(steps, list):
        raise Undecided(
            f"the program keeps another version of the conformance contract: {json.dumps(answer)}; this one is {VERSION}"
        )
    return tuple(map(str, steps))
