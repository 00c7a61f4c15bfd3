"""Test a program of yours, in any language, for each requirement of the multi-lang protocol.

Example:
    from multilang.testing import multilang_conformance

    test_my_bolt = multilang_conformance("python3 mybolt.py")
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def multilang_conformance(
    command: str | Sequence[str],
    kind: str = "auto",
    *,
    strict: bool = False,
    cases: str | Sequence[str] = (),
    timeout: float = 10.0,
    cwd: str | None = None,
    output: Mapping[str, Sequence[str]] | None = None,
    tuples: Sequence[Sequence[Any]] | None = None,
    conf: Mapping[str, Any] | None = None,
    component: str = "tested",
) -> Callable[..., None]:
    """Return a test function with a test for each case; pytest finds it if its name in the module begins with ``test``.

    A broken MUST fails. A broken SHOULD is an expected failure (xfail), unless ``strict``. Requirements that the
    program can't be tested for are skipped.

    Args:
        command: The program and its arguments.
        kind: "bolt", "spout" or "auto" (the program is started while tests are collected, to find out).
        strict: Let a broken SHOULD fail as well.
        cases: Paths of cases, as ``multilang conformance --case`` takes them; all cases by default.
        timeout: The seconds that an answer may take.
        cwd: The folder to start the program in.
        output: The program's output streams, stream: fields.
        tuples: The input tuples; see docs/conformance.md.
        conf: The conf of the handshake.
        component: The component id in the handshake.

    Returns:
        The test function.
    """
    import pytest  # here, since the rest of multilang.testing works without it

    from multilang.conformance import CannotStart, Run, Target, Undecided, all_cases
    from multilang.conformance.case import Case, selected
    from multilang.conformance.target import Programs

    words = shlex.split(command) if isinstance(command, str) else list(command)
    target = Target(words, kind, timeout=timeout, cwd=cwd, streams=output, conf=conf or {}, component=component)
    if tuples is not None:
        target.tuples = tuples
    run = Run(target)
    failure = pytest.fail.Exception
    try:
        if kind == "auto":
            with Programs(target, ahead=False) as programs:
                run.prepare(programs)
        chosen = selected(all_cases(target.kind), (cases,) if isinstance(cases, str) else tuple(cases))
    except (CannotStart, Undecided) as error:
        raise failure(f"multilang_conformance({command!r}): {error}", pytrace=False) from None
    except LookupError as error:
        raise failure(
            f"no case {error.args[0]!r} for a {target.kind}; multilang conformance --list shows them", pytrace=False
        ) from None

    @pytest.mark.parametrize("case", chosen, ids=[case.path for case in chosen])
    def test_conformance(case: Case) -> None:
        try:
            result = run.run([case]).cases[0]
        except CannotStart as error:
            raise failure(f"the program can't be started: {error}", pytrace=False) from None
        if result.status == "skipped":
            pytest.skip(result.why)
        if result.status == "passed":
            return
        text = (
            f"{result.path} {result.level}: {result.title}\n{result.requirement} ({result.source})\n{result.why}\n"
            f"expected: {result.expected}\nreceived: {result.received}"
        )
        if result.is_must or strict:
            pytest.fail(text, pytrace=False)
        pytest.xfail(text)

    return test_conformance
