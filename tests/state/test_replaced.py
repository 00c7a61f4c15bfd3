"""Steps that are cut at every write: a process that is killed there, and one that is stopped there and wakes up late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
import ujson

from multilang.state import FencedError
from multilang.state.providers import provider_of
from tests.state.conftest import opened

BEFORE, AFTER = {"a": 1, "b": 1, "c": 1, "gone": 1}, {"a": 2, "b": 2, "c": 2}
NAMES = ("count-0", "count-1", "lengths-0")
STATES = {"count-0": AFTER, "count-1": {**AFTER, "more": [1]}, "lengths-0": {}}
OLD = dict.fromkeys(NAMES, BEFORE)
MOST = 60  # writes of one step


@contextmanager
def each_write(conf, before):
    """Yield a function from whose call on ``before`` gets the number of each write of what was opened meanwhile."""
    with closing(provided(conf, "none")) as found:
        kind = type(found.store)
    write, rows = kind.__dict__["compare_and_write"], kind.__dict__.get("portion_rows")
    numbers = []

    def counted(store, *arguments):
        before(next(numbers[-1]) if numbers else -1)
        return write(store, *arguments)

    kind.compare_and_write, kind.portion_rows = counted, 2  # so that there are several portions
    try:
        yield lambda: numbers.append(count())
    finally:
        kind.compare_and_write = write
        if rows is None:
            del kind.portion_rows
        else:
            kind.portion_rows = rows


def provided(conf, number, **more):
    """A provider of a topology of its own."""
    return provider_of({**conf, "topology.name": f"stateful-{number}", "storm.id": "one", **more})


def fill(conf, number):
    """Store the rows of the time before, and others that are only prepared."""
    with closing(provided(conf, number)) as found:
        for name in NAMES:
            state = opened(found, name)
            for key, value in BEFORE.items():
                state.put(key, value)
            state.prepare_commit(1)
            state.commit(1)
            state.put("prepared", 1)
            state.prepare_commit(2)
            state.close()


def contents(found):
    """Return what is stored, as it is after the claim of the next one."""
    found.claim()
    stored = {}
    for name in NAMES:
        state = opened(found, name)
        if found.txids(name) != (None, None):
            state.rollback()
        stored[name] = dict(state)
        state.close()
    return stored


def steps(found):
    state = opened(found, "count-0")
    if found.txids("count-0")[1] == 2:
        state.rollback()
    for key, value in AFTER.items():
        state.put(key, value)
    state.delete("gone")
    return {
        "prepare": lambda: state.prepare_commit(2),
        "commit": lambda: state.commit(2),
        "write": state.commit,
        "rollback": state.rollback,
        "replace": lambda: found.replace(STATES),
    }


def run_and_die(conf, step, call):
    """Take a step, and be killed before its write ``call``. Ends with 3 if there is no such write."""

    def die(number):
        if number == call:
            os.kill(os.getpid(), signal.SIGKILL)

    with each_write(conf, die) as begin:
        todo = steps(provided(conf, f"{step}-{call}"))
        if step in ("commit", "rollback"):
            todo["prepare"]()
        begin()
        todo[step]()
    os._exit(3)


def killed_at_each_write(conf, step):
    """Print how many kills there were. Each is in a topology of its own."""
    for call in range(MOST):
        fill(conf, f"{step}-{call}")
        child = os.fork()
        if child == 0:
            try:
                run_and_die(conf, step, call)
            finally:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 3, "see above"
            print(call)
            return


@pytest.mark.parametrize("step", ["prepare", "commit", "write", "rollback", "replace"])
def test_a_step_in_which_the_process_is_killed_is_done_whole_or_not_at_all(durable, step):
    code = "import sys, ujson; from tests.state import test_replaced as t; t.killed_at_each_write(ujson.loads(sys.argv[1]), sys.argv[2])"
    done = subprocess.run(
        [sys.executable, "-c", code, ujson.dumps(durable), step],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    seen = []
    for call in range(int(done.stdout) + 1):  # behind the last one it was not killed
        with closing(provided(durable, f"{step}-{call}")) as found:
            if step in ("prepare", "write"):
                state = opened(found, "count-0")
                is_prepared = found.txids("count-0")[1] == 2
                if step == "prepare" and not is_prepared:
                    state.rollback()
                seen.append(dict(state))
                assert seen[-1] in (BEFORE, AFTER)
                state.close()
            else:
                seen.append(contents(found))
                either = (OLD, STATES) if step == "replace" else (OLD, {**OLD, "count-0": AFTER})
                assert seen[-1] in either, f"killed at {call}"
    assert (seen[0] == seen[-1]) == (step == "rollback")


@pytest.mark.parametrize("completes", [True, False])
def test_an_owner_that_wakes_up_in_a_replacement_changes_nothing_of_its_successors(durable, completes):
    """Its successor has claimed the states at any write of the replacement: and, or not yet, completed it."""
    replaced = []
    for call in range(MOST):
        fill(durable, call)
        successor = provided(durable, call)
        seen = {}

        def overtake(number, call=call, successor=successor, seen=seen):
            if number != call:
                return
            if not completes:
                successor._complete = lambda claim: None  # as if it was stopped before it
                successor.claim()
                return
            seen.update(contents(successor))
            for name in NAMES:
                state = opened(successor, name)
                state.put("later", 1)
                state.commit()
                state.close()

        with each_write(durable, overtake) as begin:
            found = provided(durable, call)
            found.claim()
            begin()
            try:
                found.replace(STATES)
            except FencedError:
                pass
            else:
                assert successor._claim is None, "the old owner was not refused"
        is_over = successor._claim is None
        found.close()
        successor.close()
        with closing(provided(durable, call)) as third:
            stored = contents(third)
        if is_over:
            break
        if completes:
            assert stored == {name: {**content, "later": 1} for name, content in seen.items()}
        assert (seen or stored) in (OLD, STATES)
        replaced.append((seen or stored) == STATES)
    assert replaced == sorted(replaced)
    assert {*replaced} == {True, False}
