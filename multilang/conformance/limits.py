"""Limits and rates of a program, measured: they are no requirements, and depend on the machine and what else it does."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import monotonic

from multilang.conformance.errors import CaseFailed, Halted
from multilang.conformance.talk import Talk
from multilang.conformance.target import Programs, Target
from multilang.conformance.world import storm_text

_STARTS = 5
_ANSWERS = 300
_OPEN = 100  # tuples without an answer, as many as a ShellBolt sends
_WORK = 2.0  # seconds of work that a rate is measured in
_SMALLEST, _LARGEST, _TIMES = (
    1 << 19,
    32 << 20,
    4,
)  # bytes, each so many times the one before; the tester itself reads no message above 48 MB


def measure(target: Target) -> dict[str, str]:
    """Return what was measured, each with its unit. What a program does not survive is said so.

    Args:
        target: The program, of which kind and contract are known.
    """
    measured: dict[str, str] = {}
    with Programs(target, ahead=False) as programs:
        is_bolt = target.kind == "bolt"
        tasks: dict[str, Callable[[Programs], str]] = {"start": _start}
        tasks["answer to a heartbeat" if is_bolt else "answer to a next"] = _latency
        tasks["rate"] = _bolt_rate if is_bolt else _spout_rate
        if is_bolt:
            tasks["largest message"] = _largest
        for name, task in tasks.items():
            try:
                measured[name] = task(programs)
            except CaseFailed as failed:
                measured[name] = f"not measured: {failed.why}"
            except Halted as halted:
                measured[name] = f"not measured: {halted.finding.detail}"
    return measured


def _start(programs: Programs) -> str:
    times = []
    for _ in range(_STARTS):
        start = monotonic()
        with programs.talk(programs.target.timeout) as talk:
            talk.handshake()
            times.append(monotonic() - start)
    return f"{_ms(median(times))} from its start to its pid"


def _latency(programs: Programs) -> str:
    times = []
    with programs.talk(programs.target.timeout) as talk:
        _begin(talk)
        for _ in range(_ANSWERS):
            start = monotonic()
            if talk.kind == "bolt":
                talk.beat()
            else:
                talk.next()
            times.append(monotonic() - start)
            talk.forget()
    times.sort()
    return f"{_ms(median(times))}, 1 of 100 takes {_ms(times[len(times) * 99 // 100])} or more"


def _bolt_rate(programs: Programs) -> str:
    with programs.talk(programs.target.timeout) as talk:
        _begin(talk)
        values = next(iter(talk.world.tuples))
        monitor, done, start = talk.monitor, 0, monotonic()
        while monotonic() < start + _WORK:
            with talk.at_once():
                for _ in range(_OPEN - len(monitor.pending)):
                    talk.tuple(values)
            most = len(monitor.pending) // 2
            before = len(monitor.pending)
            talk.wait(lambda most=most: len(monitor.pending) <= most or None, "the ack (or fail) of tuples")  # type: ignore[misc]
            done += before - len(monitor.pending)
            monitor.finished.clear()
            talk.forget()
        return f"{done / (monotonic() - start):,.0f} tuples/s, acked or failed, {_OPEN} at most under way"


def _spout_rate(programs: Programs) -> str:
    with programs.talk(programs.target.timeout) as talk:
        rounds = 5000 if talk.world.contract else 0
        _begin(talk, storm_text([[["emit", [number]]] for number in range(rounds)]))
        nexts = emits = 0
        start = monotonic()
        while monotonic() < start + _WORK and (not rounds or nexts < rounds):
            emits += len(talk.next().emits)
            nexts += 1
            talk.forget()
        seconds = monotonic() - start
        return f"{nexts / seconds:,.0f} nexts/s, with {emits / seconds:,.0f} tuples/s"


def _largest(programs: Programs) -> str:
    size, largest = _SMALLEST, 0
    while size <= _LARGEST:
        try:
            with programs.talk(programs.target.timeout) as talk:
                _begin(talk)
                text = "x" * size
                if talk.world.contract:
                    talk.echo(f'"{text}"')
                else:
                    talk.tuple([text])
                    talk.beat()
        except (CaseFailed, Halted):
            break
        largest, size = size, size * _TIMES
    way = "both ways" if programs.target.contract else "to the program"
    if size > _LARGEST:
        return f"{_LARGEST >> 20} MB {way}; a larger one was not tried"
    tried = f"{size / 2**20:g} MB failed or took longer than {programs.target.timeout:g} s"
    return f"{largest / 2**20:g} MB {way}; {tried}" if largest else f"below {size / 2**20:g} MB {way}"


def _begin(talk: Talk, script: str = "[]") -> None:
    talk.handshake(script)
    if talk.kind == "spout":
        talk.command("activate")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.{0 if seconds >= 0.1 else 1}f} ms"
