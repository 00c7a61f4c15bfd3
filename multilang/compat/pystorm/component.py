"""pystorm's Component, the base of spouts and bolts.

A component is run in one of two ways. Usually an engine of this library runs it: then ``attach`` has given it a link,
which takes its messages. A component that was given streams, as in unit tests, uses the protocol over them itself.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque, namedtuple
from traceback import format_exc

from multilang.compat.pystorm.exceptions import StormWentAwayError
from multilang.compat.pystorm.serializers.json_serializer import JSONSerializer
from multilang.compat.pystorm.serializers.msgpack_serializer import REFUSED, MsgpackSerializer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_alone(component: Any) -> None:
    """Run a component as the process of one task: the package puts the function here, since that needs these classes."""
    raise NotImplementedError


STORM_LOG_LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "critical": 4}
_PYTHON_LOG_LEVELS = {
    "critical": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}
_SERIALIZERS = {"json": JSONSerializer, "msgpack": MsgpackSerializer}
_FILE_FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
_STORM_FORMAT = "%(asctime)s - %(name)s - %(message)s"

log = logging.getLogger("pystorm.component")

Tuple = namedtuple("Tuple", "id component stream task values")  # noqa: PYI024 - users take it apart and compare it as one
Tuple.__doc__ = """A tuple that a bolt received.

``values`` is a namedtuple with the names of the source's fields, or a plain tuple when they are not known."""


class StormHandler(logging.Handler):
    """Sends each record to Storm's log through a serializer.

    Args:
        serializer: An object with ``send_message``.
    """

    def __init__(self, serializer: Any) -> None:
        super().__init__()
        self.serializer = serializer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = STORM_LOG_LEVELS.get(record.levelname.lower(), 2)
            self.serializer.send_message({"command": "log", "msg": self.format(record), "level": level})
        except Exception:  # noqa: BLE001 - logging's own rule: a handler never raises
            self.handleError(record)


class Inside:
    """The attributes of a component that pystorm's do not have, in one, so that all other names are free for users.

    Attributes:
        link: The connection to the engine that runs it; None for a component that is run over streams, or not at all.
        streams: The streams that it was given.
        serializer: The serializer over them, once it was asked for.
        tups: The tuples in process, without an engine.
        due: The time at which a TicklessBatchingBolt hands over its groups, without an engine.
    """

    __slots__ = ("due", "link", "serializer", "streams", "tups")

    def __init__(self, streams: tuple[Any, Any] = (None, None)) -> None:
        self.link: Any = None
        self.streams = streams
        self.serializer: Any = None
        self.tups: Any = []
        self.due = 0.0


class Component:
    """The base of pystorm's spouts and bolts.

    Args:
        input_stream: A stream to read from, for tests; by default the component is run by this library's engine.
        output_stream: A stream to write to, for tests.
        rdb_signal: Ignored; it is there for pystorm's callers.
        serializer: ``"json"``.

    Attributes:
        exit_on_exception: Whether an exception ends the process, so that Storm restarts it.
        topology_name: The name of the topology.
        task_id: The task's id.
        component_name: The component's id.
        debug: Whether ``topology.debug`` is set.
        storm_conf: The topology's conf, merged with the component's own.
        context: The task's place in the topology, from the handshake.
        pid: The id of the process.
        logger: A logger whose records go to Storm's log, or to the file of ``pystorm.log.path``.
    """

    exit_on_exception: bool = True

    topology_name: Any = None
    task_id: Any = None
    component_name: Any = None
    debug: Any = None
    storm_conf: Any = None
    context: Any = None
    logger: Any = None

    _multilang = Inside()

    def __init__(
        self,
        input_stream: Any = None,
        output_stream: Any = None,
        rdb_signal: Any = "SIGUSR1",
        serializer: str = "json",
    ) -> None:
        if serializer == "msgpack":
            raise ValueError(REFUSED)
        if serializer not in _SERIALIZERS:
            raise ValueError(f'there is no serializer {serializer!r}; write serializer="json"')
        self.pid = os.getpid()
        self._multilang = Inside((input_stream, output_stream))
        self._pending_commands: deque[Any] = deque()
        self._pending_task_ids: deque[Any] = deque()
        self._reader_lock = threading.RLock()
        self._writer_lock = threading.RLock()

    @property
    def serializer(self) -> Any:
        """The serializer of a component with streams of its own; made when it is first asked for."""
        inside = self._multilang
        if inside.serializer is None:
            given, taken = inside.streams
            source = sys.stdin if given is None else given
            target = sys.stdout if taken is None else taken
            inside.serializer = JSONSerializer(source, target, self._reader_lock, self._writer_lock)
        return inside.serializer

    @serializer.setter
    def serializer(self, serializer: Any) -> None:
        """Replace it."""
        self._multilang.serializer = serializer

    @staticmethod
    def is_heartbeat(tup: Any) -> bool:
        """Return whether a tuple is a heartbeat."""
        return bool(tup.task == -1 and tup.stream == "__heartbeat")

    def initialize(self, storm_conf: Any, context: Any) -> None:
        """Prepare for tuples: called once, before anything else.

        Args:
            storm_conf: The topology's conf, merged with the component's own.
            context: The task's place in the topology.
        """

    # ---- what it sends ----

    def send_message(self, message: Any) -> None:
        """Send a message of the multi-lang protocol, a dict."""
        if not isinstance(message, dict):
            logger = self.logger or log
            logger.error(
                "%s.%d attempted to send a non dict message to Storm: %r", self.component_name, self.pid, message
            )
        elif self._multilang.link is not None:
            self._multilang.link.perform(message)
        else:
            self.serializer.send_message(message)

    def emit(
        self,
        tup: Any,
        tup_id: Any = None,
        stream: Any = None,
        anchors: Any = None,
        direct_task: Any = None,
        need_task_ids: bool = False,
    ) -> Any:
        """Send a tuple; see the methods of Bolt and Spout."""
        if not isinstance(tup, list | tuple):
            raise TypeError(f"a tuple to emit is a list or a tuple, not {type(tup)!r}")
        message: dict[str, Any] = {"command": "emit", "tuple": tup}
        given = {"anchors": anchors, "id": tup_id, "stream": stream, "task": direct_task}
        message.update((key, value) for key, value in given.items() if value is not None)
        if not need_task_ids:
            message["need_task_ids"] = False
        link = self._multilang.link
        if link is not None:
            self.send_message(message)
            return link.task_ids if need_task_ids else None
        if not need_task_ids or direct_task is not None:
            self.send_message(message)
            return [direct_task] if need_task_ids else None
        with self._reader_lock, self._writer_lock:
            self.send_message(message)
            return self.read_task_ids()

    def log(self, message: Any, level: Any = None) -> None:
        """Write a line to Storm's log.

        Args:
            message: The line; it is turned into a string.
            level: trace, debug, info, warn or error; anything else is info.
        """
        self.send_message({"command": "log", "msg": str(message), "level": STORM_LOG_LEVELS.get(level, 2)})

    def report_metric(self, name: str, value: Any) -> None:
        """Send a value for a metric that the Java side registered."""
        self.send_message({"command": "metrics", "name": name, "params": value})

    def raise_exception(self, exception: BaseException, tup: Any = None) -> None:
        """Report the exception that is being handled, to Storm's log and UI.

        Args:
            exception: The exception.
            tup: The tuple, or the tuples, in process.
        """
        link = self._multilang.link
        if link is not None and link.dying:
            return  # the engine reports what ends a task, with its component and task
        on = f" while processing Tuple {tup!r}" if tup else ""
        message = f"Python {type(exception).__name__} raised{on}\n{format_exc()}"
        self.send_message({"command": "error", "msg": message})
        self.send_message({"command": "sync"})

    # ---- the loop over streams of its own ----

    def read_message(self) -> Any:
        """Return the next message."""
        return self.serializer.read_message()

    def read_task_ids(self) -> Any:
        """Return the next task ids, and queue the commands before them."""
        return _read(self, self._pending_task_ids, self._pending_commands, is_ids=True)

    def read_command(self) -> Any:
        """Return the next command or tuple, and queue the task ids before it."""
        return _read(self, self._pending_commands, self._pending_task_ids, is_ids=False)

    def read_handshake(self) -> Any:
        """Return the handshake's conf and context, after answering it with the pid."""
        message = self.read_message()
        with open(os.path.join(message["pidDir"], str(self.pid)), "w"):
            pass
        self.send_message({"pid": self.pid})
        return message["conf"], message["context"]

    def run(self) -> None:
        """Run the component as the process of one task, until its input ends."""
        if all(stream is None or stream in (sys.stdin, sys.stdout) for stream in self._multilang.streams):
            run_alone(self)
            return
        storm_conf, context = self.read_handshake()
        self._setup_component(storm_conf, context)
        self.initialize(storm_conf, context)
        while True:
            _run_once(self)

    def _run(self) -> None:
        raise NotImplementedError

    def _handle_run_exception(self, exc: BaseException) -> None:
        """Report an exception; called before the process ends."""
        self.raise_exception(exc)

    # ---- the start ----

    def _setup_component(self, storm_conf: Any, context: Any) -> None:
        """Set the attributes from the handshake, and set up logging."""
        self.topology_name = storm_conf.get("topology.name", "")
        self.task_id = context.get("taskid", "")
        name = context.get("componentid")
        if name is None:  # before Storm 0.10
            name = context.get("task->component", {}).get(str(self.task_id), "")
        self.component_name = name
        self.debug = storm_conf.get("topology.debug", False)
        self.storm_conf = storm_conf
        self.context = context
        _set_up_logging(self)


def _read(component: Component, wanted: deque[Any], others: deque[Any], is_ids: bool) -> Any:
    """Return the first wanted message, and queue the others before it."""
    if wanted:
        return wanted.popleft()
    while isinstance(message := component.read_message(), list) != is_ids:
        others.append(message)
    return message


def _run_once(component: Component) -> None:
    """Handle one message over the component's streams, with pystorm's handling of exceptions."""
    text = f"Exception in {type(component).__name__}.run()"
    try:
        component._run()
    except StormWentAwayError:
        _went_away()
    except Exception as error:  # noqa: BLE001 - user code: handled as pystorm does
        try:
            component.logger.error(text, exc_info=error)
            component._handle_run_exception(error)
        except StormWentAwayError:
            log.error(text, exc_info=error)
            _went_away()
        except Exception as another:
            log.error(text, exc_info=error)
            log.error("While trying to handle previous exception...", exc_info=another)
        if component.exit_on_exception:
            _leave(1)


def _went_away() -> None:
    log.info("Exiting because parent Storm process went away.")
    _leave(2)


def _leave(status: int) -> None:
    if threading.active_count() > 1:
        os._exit(status)  # other threads would keep the process running
    sys.exit(status)


def _set_up_logging(component: Component) -> None:
    conf = component.storm_conf
    link = component._multilang.link
    level = (
        logging.DEBUG
        if component.debug
        else _PYTHON_LOG_LEVELS.get(conf.get("pystorm.log.level", "info"), logging.INFO)
    )
    component.logger = logging.getLogger(f"pystorm.component.{component.component_name}")
    component.logger.setLevel(level)
    logging.getLogger("pystorm").setLevel(level)
    form = conf.get("pystorm.log.format")
    handler: logging.Handler | None = None
    problem: OSError | None = None
    if conf.get("pystorm.log.path"):
        try:
            handler = _file_handler(component)
            handler.setFormatter(logging.Formatter(form or _FILE_FORMAT))
        except OSError as error:
            if link is None:
                raise
            problem = error  # a folder of the cluster's that this machine does not have
    elif link is None:
        handler = StormHandler(component.serializer)
        handler.setFormatter(logging.Formatter(form or _STORM_FORMAT))
    if handler is not None:
        handler.setLevel(level)
    if link is not None:
        link.set_up_logging(component.logger, handler, level, form)
        if problem is not None:
            component.logger.warning("pystorm.log.path can't be written to, so that this is the log: %s", problem)
    elif handler is not None:
        logging.getLogger().addHandler(handler)


def _file_handler(component: Component) -> logging.Handler:
    from logging.handlers import RotatingFileHandler

    from multilang.helpers.private import open_file

    class OwnFile(RotatingFileHandler):
        """A log that only its user may read, and that is no link: its name can be guessed."""

        def _open(self) -> Any:
            return open(
                open_file(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "a", encoding=self.encoding
            )

    conf = component.storm_conf
    name = conf.get("pystorm.log.file", "pystorm_{topology_name}_{component_name}_{task_id}_{pid}.log").format(
        topology_name=component.topology_name,
        component_name=component.component_name,
        task_id=component.task_id,
        pid=component.pid,
    )
    return OwnFile(
        os.path.join(conf["pystorm.log.path"], name),
        maxBytes=conf.get("pystorm.log.max_bytes", 1_000_000),
        backupCount=conf.get("pystorm.log.backup_count", 10),
    )


# ---- for what runs components ----


def link_of(component: Component) -> Any:
    """Return the connection of a component to its engine; None without one."""
    return component._multilang.link


def attach(component: Component, link: Any, conf: Any, context: Any) -> None:
    """Connect a component to its engine, and set it up."""
    inside = component._multilang = Inside()
    inside.link = link
    component._setup_component(conf, context)


def handle_exception(component: Component, error: BaseException) -> None:
    """Call a component's handler of an exception, which reports it and fails its tuples."""
    component._handle_run_exception(error)


def serializers() -> list[str]:
    """Return the names that ``serializer`` may have in a command line."""
    return list(_SERIALIZERS)
