"""The process of one task: from the handshake to the end of its input."""

from __future__ import annotations

import os
import sys

from multilang.component.output import Output
from multilang.component.stdio import Stdio
from multilang.component.wire import EndOfInput, Wire
from multilang.protocol import ChildConnection, RemoteProtocolError, Setup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from multilang.component.attendant import Attendant
    from multilang.component.base import Component
    from multilang.component.collector import Collector
    from multilang.component.context import Context


def run_component(component: Component) -> None:
    """Run ``component`` as this process, until its input ends. Exits with status 1 when it fails."""
    run_process(lambda _: component)


def run_process(find: Callable[[Context], Component]) -> None:
    """Run the component that ``find`` makes of the task's context. Nothing of it is imported before the pid is sent."""
    stdio = Stdio()
    try:
        task = _shake_hands(stdio)
        if task is None:
            return
    except BaseException:
        os.dup2(stdio.error, 2)  # nobody reads the pipe in its place yet
        raise
    task.run(find)


def _shake_hands(stdio: Stdio) -> Task | None:
    connection = ChildConnection()
    output = Output(connection, stdio.output)
    wire = Wire(connection, stdio.input, output)
    try:
        setup = wire.next_event()
    except EndOfInput:
        return None
    except RemoteProtocolError as error:
        os.write(stdio.error, f"multilang: {error}\n".encode())
        sys.exit(1)
    assert isinstance(setup, Setup)
    pid = os.getpid()
    connection.send_pid(pid)
    try:
        # "Your script should create an empty file named with its PID in this directory."
        os.close(os.open(os.path.join(setup.pid_dir, str(pid)), os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError as error:
        connection.log(f"the PID file can't be made, so the supervisor won't find this process: {error}", 3)
    wire.flush()
    return Task(stdio, connection, output, wire, setup)


class Task:
    """What comes after the handshake."""

    def __init__(self, stdio: Stdio, connection: ChildConnection, output: Output, wire: Wire, setup: Setup) -> None:
        from multilang.component.context import Context

        self._stdio = stdio
        self._connection = connection
        self._output = output
        self._wire = wire
        self._conf = setup.conf
        self._context = Context(setup.context)
        self._component: Component | None = None
        self._stopping = False
        self._attendant = self._start_attendant()

    def run(self, find: Callable[[Context], Component]) -> None:
        """Find, start and run the component; close it at the end."""
        self._catch_signals()
        status = 0
        try:
            self._start(find)
            self._attendant.busy = None
            self._wire.loop()
        except EndOfInput:
            pass
        except RemoteProtocolError as error:
            status = 1
            self._report(f"the parent broke the protocol, the process ends: {error}")
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
            if status:
                self._report(self._describe(error))
        except BaseException as error:  # noqa: BLE001 - whatever it is, Storm's log gets to show it
            status = 1
            self._report(self._describe(error))
        self._end(status)

    def _start(self, find: Callable[[Context], Component]) -> None:
        from multilang.component.runner import start_bolt, start_spout
        from multilang.component.spout import Spout
        from multilang.component.wire import WireBoltCollector, WireSpoutCollector, spout_commands

        attendant = self._attendant
        attendant.busy = "the start of the component"
        attendant.deadline = _deadline(self._conf)
        self._wire.log_level = _log_level(self._conf)
        component = find(self._context)
        attendant.component = component
        wire = self._wire
        if isinstance(component, Spout):
            attendant.is_spout = True
            spouts = WireSpoutCollector(wire)
            self._set(component, spouts)
            runner = start_spout(component, spouts, self._conf, self._context)
            wire.on_command = spout_commands(wire, runner, spouts, self._conf.get("multilang.parent") == "local")
        else:
            bolts = WireBoltCollector(wire)
            self._set(component, bolts)
            wire.on_tuple = start_bolt(component, bolts, self._conf, self._context)  # type: ignore[arg-type]

    def _set(self, component: Component, collector: Collector) -> None:
        self._component = component

        def look() -> None:
            # logging costs 2 MB and 10 ms: it is attached when somebody has imported it.
            if "logging" in sys.modules:
                self._attendant.on_look = _nothing
                collector.attach_logging()

        self._attendant.on_look = look
        self._attendant.collector = collector
        look()

    def _start_attendant(self) -> Attendant:
        from multilang.component.attendant import Attendant

        # A task that nothing in the topology sends to is a spout; until the component is known that is all there is.
        attendant = Attendant(self._stdio, self._connection, self._output, not self._context.sources)
        self._wire.attendant = attendant
        attendant.start()
        return attendant

    def _catch_signals(self) -> None:
        import faulthandler
        import signal

        faulthandler.enable(self._stdio.error)  # a crash in C code leaves its stack where Storm looks
        try:
            signal.signal(signal.SIGTERM, self._stop)
            signal.signal(signal.SIGINT, self._stop)
        except ValueError:
            pass  # run() was called outside of the main thread: signals are its caller's

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if not self._stopping:
            self._stopping = True
            self._attendant.ending(0)
            if self._output.writing:
                self._output.closed = True  # the loop sees it when the write is done
            else:
                raise EndOfInput

    def _describe(self, error: BaseException) -> str:
        from multilang.component.base import Component
        from multilang.component.report import describe

        component = self._component
        if component is None:
            component = Component()
            component.context = self._context
        current = getattr(getattr(component, "_collector", None), "current", None)
        return describe(error, component, current)

    def _report(self, text: str) -> None:
        self._connection.error(text)
        self._connection.log(text, 4)

    def _end(self, status: int) -> None:
        attendant = self._attendant
        self._stopping = True
        attendant.ending(status)
        attendant.busy = None
        component = self._component
        if component is not None:
            try:
                component.close()
                if component._metrics is not None:
                    component._metrics.report()
            except Exception as error:  # noqa: BLE001 - user code: reported, and the end goes on
                status = status or 1
                self._report(self._describe(error))
        attendant.drain()
        self._wire.abandon()
        if status:
            sys.exit(status)


def _deadline(conf: dict[str, Any]) -> float:
    from multilang.component.errors import ConfigError

    value = conf.get("multilang.process.timeout.secs", 300)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ConfigError(f"multilang.process.timeout.secs is {value!r}; use seconds above 0, or 0 for no deadline")
    return float(value)


_LOG_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}


def _log_level(conf: dict[str, Any]) -> int:
    from multilang.component.errors import ConfigError

    name = conf.get("multilang.log.level", "info")
    level = _LOG_LEVELS.get(name.lower()) if isinstance(name, str) else None
    if level is None:
        raise ConfigError(f"multilang.log.level is {name!r}; use one of {', '.join(_LOG_LEVELS)}")
    return level


def _nothing() -> None:
    pass
