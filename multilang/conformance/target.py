"""The program under test: its command, and what is known of it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from multilang.conformance.child import StartedProgram
from multilang.conformance.conversation import Conversation
from multilang.conformance.world import COMPONENT, SENTENCE, World

TIMEOUT = 10.0  # seconds that an answer may take


@dataclass
class Target:
    """The program to test, and how to test it.

    Attributes:
        command: The program's command line.
        kind: ``"bolt"``, ``"spout"`` or ``"auto"``, which finds it out.
        name: The program's name in results; None: the command line.
        timeout: Seconds that an answer may take.
        component: The component's id.
        streams: The streams of a program that does not keep the contract: stream -> fields; None: they are unknown.
        tuples: The tuples for a bolt that does not keep the contract.
        conf: Entries of the topology's conf.
        contract: Whether the program keeps the contract; None: it is asked.
        knows: The steps of the contract that it knows.
        cwd: The folder in which it starts; None: the current one.
    """

    command: Sequence[str]
    kind: str = "auto"
    name: str | None = None
    timeout: float = TIMEOUT
    component: str = COMPONENT
    streams: Mapping[str, Sequence[str]] | None = None
    tuples: Sequence[Sequence[Any]] = ([SENTENCE],)
    conf: Mapping[str, Any] = field(default_factory=dict)
    contract: bool | None = None
    knows: tuple[str, ...] = ()
    cwd: str | None = None

    def world(self) -> World:
        """Return a topology for one conversation."""
        if self.contract:
            return World(self.kind, self.component, conf=dict(self.conf), tuples=[[[["emit", [SENTENCE]]]]])
        return World(self.kind, self.component, self.streams, dict(self.conf), contract=False, tuples=self.tuples)


class Programs:
    """Starts the program for each conversation, one ahead, and ends what is left of it.

    Attributes:
        target: The program.
        start_timeout: Seconds that a start may take, if a conversation's limit is not longer.
    """

    def __init__(self, target: Target, ahead: bool = True) -> None:
        self.target = target
        self.start_timeout = target.timeout
        self._ahead = ahead
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
        self._lock = threading.Lock()
        self._running: set[StartedProgram] = set()
        self._spare: list[StartedProgram] = []
        self._closed = False

    def __enter__(self) -> Programs:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._folder.cleanup()

    def end(self) -> None:
        """End every process, and start no more."""
        with self._lock:
            self._closed = True
            running, self._running = self._running, set()
        for child in running:
            child.kill()

    @contextmanager
    def conversation(
        self, timeout: float, env: Mapping[str, str] | None = None, **changes: Any
    ) -> Iterator[Conversation]:
        """Have a conversation with a new process, whose group is killed at the end. ``changes``: of the target."""
        target = replace(self.target, **changes) if changes else self.target
        child = self._start(env) if env else self._take()
        try:
            conversation = Conversation(child, target.world(), tempfile.mkdtemp(dir=self._folder.name), timeout)
            conversation.start_timeout = max(timeout, self.start_timeout)
            yield conversation
        finally:
            child.kill()
            with self._lock:
                self._running.discard(child)

    def _take(self) -> StartedProgram:
        with self._lock:
            child = self._spare.pop() if self._spare else None
        found = child or self._start(None)
        if self._ahead:
            spare = self._start(None)  # its start overlaps with this conversation
            with self._lock:
                self._spare.append(spare)
        return found

    def _start(self, env: Mapping[str, str] | None) -> StartedProgram:
        child = StartedProgram(self.target.command, env, self.target.cwd)
        with self._lock:
            if self._closed:
                child.kill()
                raise KeyboardInterrupt
            self._running.add(child)
        return child
