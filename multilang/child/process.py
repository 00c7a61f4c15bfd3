"""The process of one task, from the handshake to the end of its input."""

from __future__ import annotations

import os
import sys
from _thread import get_ident

from multilang.child.output import Output
from multilang.child.stdio import Stdio
from multilang.child.wire import READ, EndOfInput, Wire
from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.protocol import ChildConnection, LocalProtocolError, RemoteProtocolError, Setup
from multilang.settings import EDGES, PARENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

    from multilang.child.exchange import Exchange
    from multilang.component.base import Component
    from multilang.component.collector import Collector
    from multilang.component.context import Context
    from multilang.component.spout import Spout
    from multilang.protocol.messages import Message


_DEBUG = 10  # logging's DEBUG, at which every report is passed on
UNRECOVERABLE = 77  # EX_NOPERM: UnrecoverableError, for example when another run has taken over the state
UNUSABLE = 78  # EX_CONFIG: the conf is wrong, or the component can't be imported; a restart would fail as well


def run_component(component: Component) -> None:
    """Run ``component`` in this process until its input ends; exit with status 1 when it fails."""
    run_process(lambda _: component)


def run_process(find: Callable[[Context], Component]) -> None:
    """Run the component that ``find`` returns for the task's context, importing nothing before the pid is sent."""
    stdio = Stdio()
    try:
        task = _shake_hands(stdio)
        if task is None:
            return
    except KeyboardInterrupt:
        return  # Ctrl-C at a terminal reaches all of its processes
    except BaseException:
        os.dup2(stdio.error, 2)  # nothing reads the pipe that replaced standard error yet
        raise
    task.run(find)


def _shake_hands(stdio: Stdio) -> Task | None:
    connection = ChildConnection()
    output = Output(connection, stdio.output)
    try:
        setup, events = _first_message(connection, stdio.input)
    except EndOfInput:
        return None
    except RemoteProtocolError as error:
        os.write(stdio.error, f"multilang: {error}\n".encode())
        sys.exit(1)
    pid = os.getpid()
    connection.send_pid(pid)
    try:
        # "Your script should create an empty file named with its PID in this directory."
        os.close(os.open(os.path.join(setup.pid_dir, str(pid)), os.O_WRONLY | os.O_CREAT, 0o644))
    except OSError as error:
        connection.log(f"the PID file can't be made, so the supervisor won't find this process: {error}", 3)
    output.flush_some()
    return Task(stdio, connection, output, setup, events)


def _first_message(connection: ChildConnection, fd: int) -> tuple[Setup, Iterator[Message]]:
    """Return the handshake, and the messages read with it, which are decoded one by one."""
    while data := os.read(fd, READ):
        events = connection.iter_data(data)
        for event in events:
            assert isinstance(event, Setup)
            return event, events
    connection.receive_data(b"")
    raise EndOfInput


class Task:
    """A task after its handshake, made of the wire and the parts that the watchdog runs.

    Args:
        stdio: The process's descriptors.
        connection: The connection.
        output: The connection's output.
        setup: The handshake.
        events: The messages read with it.
    """

    def __init__(
        self, stdio: Stdio, connection: ChildConnection, output: Output, setup: Setup, events: Iterator[Message]
    ) -> None:
        from multilang.child.parts import Heartbeats
        from multilang.child.watchdog import Watchdog
        from multilang.component.context import Context

        self._stdio = stdio
        self._connection = connection
        self._output = output
        self._conf = setup.conf
        self._context = Context(setup.context)
        self._local = self._conf.get(PARENT) == "local"
        self._component: Component | None = None
        self._initialized = False
        self._stopping = False
        self._failure = UNUSABLE
        self._main = get_ident()
        self._pid = os.getpid()
        self._watchdog = Watchdog(stdio, connection, output)
        self._work = self._watchdog.work
        self._wire = Wire(connection, stdio.input, output, self._work, events, reports_busy=self._local)
        # A task that gets no tuples from the topology is a spout; nothing more is known before the component is. A sync
        # reports the end of the start to a local parent.
        by_sync = bool(self._context.sources) and not self._local
        busy_secs = self._wire.busy_secs if self._local else None
        self._heartbeats = Heartbeats(connection, self._work, by_sync, busy_secs)
        self._watchdog.parts.append(self._heartbeats)

    def run(self, find: Callable[[Context], Component]) -> None:
        """Find, start and run the component; close it at the end."""
        import atexit

        atexit.register(self._last_words)
        os.register_at_fork(after_in_child=self._forked)
        self._watchdog.start(interrupts=self._catch_signals())
        status = 0
        try:
            try:
                self._start(find)
                self._work.doing = None
                self._wire.loop()
            except EndOfInput:
                pass
            except RemoteProtocolError as error:
                status = 1
                self._report(f"the parent broke the protocol, the process ends: {error}")
            except SystemExit as error:
                status = self._exit_status(error)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it must be shown in Storm's log
                status = 1 if isinstance(error, OSError | MemoryError) else self._failure
                if isinstance(error, ConfigError) and not self._initialized:
                    status = UNUSABLE
                if isinstance(error, UnrecoverableError):
                    status = UNRECOVERABLE
                self._report(self._describe(error))
            self._stopping = True
        except EndOfInput:
            pass  # SIGTERM at the moment of another end: Java closes the pipes and sends it at once
        self._end(status)

    def _start(self, find: Callable[[Context], Component]) -> None:
        from multilang.child.garbage import collect_rarely
        from multilang.child.logwatch import watch_logging
        from multilang.child.parts import Deadline, RepeatedErrors, Reports
        from multilang.component.spout import Spout
        from multilang.settings import LOG_LEVEL, LOG_LEVELS, PROCESS_TIMEOUT, check, value

        connection, parts = self._connection, self._watchdog.parts
        self._work.doing = "the start of the component"
        collect_rarely()
        check(self._conf)
        parts.append(Deadline(connection, self._output, self._work, float(value(self._conf, PROCESS_TIMEOUT))))
        reports = Reports(connection, self._wire, self._conf, self._local)
        parts.append(reports)
        level = LOG_LEVELS[value(self._conf, LOG_LEVEL).lower()]
        watch_logging(connection, level)
        report: Callable[[str], None] = connection.error
        if not self._local and level > _DEBUG:
            errors = RepeatedErrors(connection)
            parts.append(errors)
            report = errors.report
        exchange = self._exchange()
        component = find(self._context)
        self._failure = 1
        reports.watch(component)
        if isinstance(component, Spout):
            self._start_spout(component, exchange, report)
        else:
            self._start_bolt(component, exchange, report)
        self._initialized = True

    def _start_spout(self, spout: Spout, exchange: Exchange | None, report: Callable[[str], None]) -> None:
        from multilang.child.spout_commands import spout_commands
        from multilang.child.wire_collectors import UnackedSpoutCollector, WireSpoutCollector
        from multilang.component.runner import start_spout
        from multilang.component.timers import TaskTimers

        wire = self._wire
        self._heartbeats.by_sync = False
        unacked = self._conf.get("topology.acker.executors") == 0
        collector: Any = UnackedSpoutCollector(wire, spout.ack, report) if unacked else WireSpoutCollector(wire, report)
        TaskTimers(collector.scope, thread=self._main)
        if exchange is not None:
            collector = exchange.spout(collector)
        self._set(spout, collector)
        runner: Any = start_spout(spout, collector, self._conf, self._context)
        if exchange is not None:
            runner = exchange.runner(runner, collector)
        wire.on_command = spout_commands(wire, runner, collector, self._local)

    def _start_bolt(self, bolt: Any, exchange: Exchange | None, report: Callable[[str], None]) -> None:
        from multilang.child.parts import Meanwhile
        from multilang.child.wire_collectors import WireBoltCollector
        from multilang.component.runner import start_bolt
        from multilang.component.timers import TaskTimers

        wire = self._wire
        collector: Any = WireBoltCollector(wire, report)
        wire.timers = TaskTimers(collector.scope, thread=self._main)
        if self._local:
            wire.timers.on_awaited = self._connection.timers
        if exchange is not None:
            collector = exchange.bolt(collector)
            self._watchdog.parts.append(Meanwhile(collector.send_meanwhile))
        self._set(bolt, collector)
        execute = start_bolt(bolt, collector, self._conf, self._context)
        wire.on_tuple = execute if exchange is None else collector.receiver(execute, wire.run_timers)
        self._heartbeats.by_sync = True

    def _exchange(self) -> Exchange | None:
        """Return the task's exchange by the block, if some of its streams travel so; the conf and context hide it."""
        if EDGES not in self._conf:
            return None
        from multilang.child.exchange import Exchange

        exchange = Exchange(self._wire, self._conf, self._context)
        self._conf, self._context = exchange.conf, exchange.context
        return exchange

    def _set(self, component: Component, collector: Collector) -> None:
        self._component = component
        self._work.doing = "initialize"
        self._work.scope = collector.scope

    def _catch_signals(self) -> bool:
        """Have signals end the task; return whether they do, which only the process's main thread can arrange."""
        import faulthandler
        import signal

        faulthandler.enable(self._stdio.error)  # a crash in C code leaves its stack where Storm looks for it
        try:
            signal.set_wakeup_fd(self._watchdog.waker, warn_on_full_buffer=False)
            signal.signal(signal.SIGTERM, self._stop)
            signal.signal(signal.SIGINT, self._stop)
        except ValueError:
            return False  # run() was called outside of the main thread: its caller handles signals
        return True

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if not self._stopping:
            self._stopping = True
            self._watchdog.ending(0)
            if self._output.writer == self._main:
                self._wire.stopping = True  # checked when the write is done
            else:
                raise EndOfInput

    def _describe(self, error: BaseException) -> str:
        from multilang.component.base import Component
        from multilang.component.report import describe

        component = self._component
        if component is None:
            component = Component()
            component.context = self._context
        collector: Collector | None = getattr(component, "_collector", None)
        return describe(error, component, None if collector is None else collector.scope.current)

    def _exit_status(self, error: SystemExit) -> int:
        self._report(self._describe(error))
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1

    def _report(self, text: str) -> None:
        self._connection.error(text)
        self._connection.log(text, 4)

    def _end(self, status: int) -> None:
        watchdog = self._watchdog
        self._stopping = True
        watchdog.ending(status)
        self._work.doing = None
        component = self._component
        if component is not None and self._initialized:
            self._wire.closing = True
            from multilang.component.runner import close

            try:
                close(component)
            except SystemExit as error:
                status = status or (self._exit_status(error) if error.code else 0)
            except Exception as error:  # noqa: BLE001 - user code: reported, and the end continues
                status = status or 1
                self._report(self._describe(error))
        watchdog.end()
        self._wire.abandon()
        if status:
            sys.exit(status)

    def _last_words(self) -> None:
        """Log the last text when the interpreter exits; anything later goes to standard error."""
        import signal

        if os.getpid() == self._pid:
            self._watchdog.drain()
            self._wire.abandon(0.5)
            os.dup2(self._stdio.error, 1)
            os.dup2(self._stdio.error, 2)
            # otherwise they would kill the process while the interpreter ends
            self._leave_signals_to(signal.SIG_IGN, signal.SIG_IGN)

    def _forked(self) -> None:
        """Cut off a process forked from this one (multiprocessing): connection and signals are not its own."""
        import signal

        def refuse(_: str) -> None:
            raise LocalProtocolError(
                "this process was forked from the component's own, which alone may write to Storm; return the result to it"
            )

        def log(message: str) -> None:
            os.write(2, message.encode("utf-8", "backslashreplace") + b"\n")  # the component's process logs it

        self._connection.cut_off(refuse, log)
        # If the fork kept the pipe open, Storm would not see the end of the component's process.
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (self._stdio.input, self._stdio.output, self._watchdog.waker):
            os.dup2(null, fd, inheritable=False)
        os.close(null)
        self._leave_signals_to(signal.SIG_DFL, signal.default_int_handler)

    def _leave_signals_to(self, terminate: Any, interrupt: Any) -> None:
        import signal

        for number, handler in ((signal.SIGTERM, terminate), (signal.SIGINT, interrupt)):
            if signal.getsignal(number) == self._stop:
                signal.signal(number, handler)
