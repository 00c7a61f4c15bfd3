"""The parts of a case: a requirement, its source, and a function that plays the parent and can fail.

The cases of one section of the protocol are in one file of ``cases/`` and are numbered in order, so that
``bolt/heartbeat/2`` is the second of its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

Level = Literal["MUST", "SHOULD"]

PAGE = "Multi-Lang Protocol 1.1.0"
MEASURED = "measured on Storm 2.8.3"
C_LOCALE = (("LC_ALL", "C"), ("LANG", "C"), ("LC_CTYPE", "C"))


@dataclass(frozen=True)
class Case:
    """One requirement and its check.

    Attributes:
        path: The case's path, such as ``bolt/heartbeat/2``.
        level: MUST or SHOULD.
        title: The case in a few words.
        requirement: The requirement in a sentence.
        source: The page or measurement that the requirement comes from.
        run: The function that checks it; None: it is only watched.
        steps: The steps of the conformance contract that the program must know.
        watch: The codes of findings that break this requirement, in any conversation, or with ``run`` in its own one.
        provokes: The codes of findings that this case itself may bring about, and that count nowhere.
        env: Variables that the program's environment has for this case.
        after: Paths of cases without which this one can't be judged: it is blocked when one of them failed.
    """

    path: str
    level: Level
    title: str
    requirement: str
    source: str
    run: Callable[[Conversation], None] | None = None
    steps: tuple[str, ...] = ()
    watch: tuple[str, ...] = ()
    provokes: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``bolt``, ``spout`` or ``common``."""
        return self.path.split("/")[0]

    def fits(self, kind: str) -> bool:
        """Return whether the case is meant for this kind of program.

        Args:
            kind: ``bolt`` or ``spout``.
        """
        return self.kind in ("common", kind)


@dataclass
class Section:
    """One section of the protocol."""

    path: str
    name: str
    source: str
    cases: list[Case] = field(default_factory=list)

    def must(self, title: str, requirement: str, **more: object) -> Callable[[Callable[[Conversation], None]], None]:
        """Add a case whose failure is a failure."""
        return self._add("MUST", title, requirement, more)

    def should(self, title: str, requirement: str, **more: object) -> Callable[[Callable[[Conversation], None]], None]:
        """Add a case whose failure is a warning, unless the run is strict."""
        return self._add("SHOULD", title, requirement, more)

    def watch(
        self,
        level: Level,
        codes: str,
        title: str,
        requirement: str,
        source: str | None = None,
        after: tuple[str, ...] = (),
    ) -> None:
        """Add a requirement that is watched in every conversation of a run."""
        self._append(level, title, requirement, source=source, watch=tuple(codes.split()), after=after)

    def _add(self, level: Level, title: str, requirement: str, more: dict[str, object]) -> Callable[..., None]:
        def add(run: Callable[[Conversation], None]) -> None:
            self._append(level, title, requirement, run=run, **more)

        return add

    def _append(self, level: Level, title: str, requirement: str, **more: object) -> None:
        steps = more.pop("steps", "")
        assert isinstance(steps, str)
        source = more.pop("source", None) or self.source
        path = f"{self.path}/{len(self.cases) + 1}"
        self.cases.append(
            Case(path, level, title, requirement, source, steps=tuple(steps.split()), **more)  # type: ignore[arg-type]
        )


def selected(cases: list[Case], patterns: tuple[str, ...]) -> list[Case]:
    """Return the cases that a pattern names: a path, the beginning of one (``bolt/heartbeat``), or ``*/heartbeat/*``.

    Raises LookupError for a pattern that names none.
    """
    if not patterns:
        return cases
    chosen: dict[str, Case] = {}
    for pattern in patterns:
        found = list(_matching(cases, pattern.strip("/")))
        if not found:
            raise LookupError(pattern)
        chosen |= {case.path: case for case in found}
    return [case for case in cases if case.path in chosen]


def _matching(cases: list[Case], pattern: str) -> Iterator[Case]:
    for case in cases:
        if case.path == pattern or case.path.startswith(pattern + "/") or fnmatchcase(case.path, pattern):
            yield case
