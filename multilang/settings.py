"""The settings of this library: the conf keys that begin with ``multilang.``, each in one row.

A row has the values that a key may have, its default, what reads it, and a sentence about it. All checks, the table in
docs/configuration.md (``scripts/settings_table.py`` writes it), ``multilang config keys`` and the completion of ``-c`` come from
these rows. It is the lowest layer, which every task's process imports at its start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

PROCESS_TIMEOUT = "multilang.process.timeout.secs"
LOG_LEVEL = "multilang.log.level"
MAX_REPLAYS = "multilang.max.replays"
MIDDLEWARE = "multilang.middleware"
METRICS_INTERVAL = "multilang.metrics.interval.secs"
METRICS_REGISTERED = "multilang.metrics.registered"
PROMETHEUS_PORT = "multilang.metrics.prometheus.port"
PROMETHEUS_HOST = "multilang.metrics.prometheus.host"
MAX_BUFFER = "multilang.buffer.max.bytes"
MILD = "multilang.compat.mild"
EXCHANGE = "multilang.exchange"
EXCHANGE_TUPLES = "multilang.exchange.tuples"
STORE = "multilang.store"
POSITIONS = "multilang.positions"
MARKS = "multilang.source.store"
TRANSACTIONS = "multilang.transactional.store"
STORED_NAME = "multilang.state.name"
ALIGNMENT = "multilang.state.alignment"
CACHED_KEYS = "multilang.state.cache.keys"
TRACE = "multilang.trace"
REDIS_ACCESS = "multilang.redis.access"
KAFKA_OPTIONS = "multilang.kafka.options"
SOURCE = "multilang.source"
SOURCE_GROUP = "multilang.source.group"
SECRET_FILE = "multilang.source.secret.file"  # its path alone: a conf is no place for secrets

PARENT = "multilang.parent"
EDGES = "multilang.exchange.edges"
INPUT_FILES = "multilang.input.files"
RECORD = "multilang.record"
BATCH = "multilang.batch"
DEPLOYMENT = "multilang.deployment"
DRPC_SERVICE = "multilang.drpc.service"

AT_LEAST_ONCE, EXACT = "at-least-once", "exact"
LOG_LEVELS = {"trace": 5, "debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}  # with logging's numbers
REDIS_MEMBERS = ("user", "password", "tls", "ca", "cert", "key")
NAME_TABOO = "/.:\\"  # Storm's Utils.validateTopologyName: the name becomes part of paths and keys


class Kind:
    """The values that a key may have.

    Attributes:
        allowed: The end of the sentence "use ...".
        takes: Returns whether a value is one of them; None, the default, is not asked.
    """

    __slots__ = ("allowed", "takes")

    def __init__(self, allowed: str, takes: Callable[[Any], bool]) -> None:
        self.allowed = allowed
        self.takes = takes


class Setting:
    """A row of the table.

    Attributes:
        key: The conf key.
        kind: The values that it may have.
        default: What holds where it is not set.
        reader: What reads it.
        text: A sentence about it, in Markdown as in the pages of docs/.
        otherwise: The default in words, where it is no value.
    """

    __slots__ = ("default", "key", "kind", "otherwise", "reader", "text")

    def __init__(self, key: str, kind: Kind, default: Any, reader: str, text: str, otherwise: str = "none") -> None:
        self.key = key
        self.kind = kind
        self.default = default
        self.reader = reader
        self.text = text
        self.otherwise = otherwise

    @property
    def plain_text(self) -> str:
        """The sentence without Markdown, for a terminal."""
        import re

        return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", self.text).replace("`", "")


def value(conf: Mapping[str, Any], key: str) -> Any:
    """Return what a conf has for a key, or else the key's default.

    Raises:
        ConfigError: The value has the wrong type or range.
    """
    row = ROWS[key]
    found = conf.get(key)
    if found is None:
        return row.default
    if not row.kind.takes(found):
        raise _error(key, found, row.kind)
    return found


def check(conf: Mapping[str, Any]) -> None:
    """Raise ConfigError for the first of our keys that has a value of the wrong type or range."""
    for key, row in ROWS.items():
        found = conf.get(key)
        if found is not None and not row.kind.takes(found):
            raise _error(key, found, row.kind)


def fault(key: str, wrong: object, kind: Kind) -> str:
    """Return the sentence about a value that a key may not have."""
    from multilang.helpers.masked import masked

    return f"{key} is {masked(wrong, key)!r}; use {kind.allowed}"


def _error(key: str, wrong: object, kind: Kind) -> Exception:
    from multilang.component.errors import ConfigError

    return ConfigError(fault(key, wrong, kind))


def is_printable(text: object) -> bool:
    """Return whether a value is text that can be seen, and read again from a message."""
    return isinstance(text, str) and bool(text) and text.isprintable() and text == text.strip()


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def is_text(value: object) -> bool:
    """Return whether a value is text."""
    return isinstance(value, str)


def is_texts(value: object) -> bool:
    """Return whether a value is a list of texts, none of them empty."""
    return isinstance(value, list | tuple) and all(isinstance(item, str) and item for item in value)


def whole(least: int, most: float = float("inf")) -> Callable[[Any], bool]:
    """Return a function that checks whether a value is a whole number in a range."""
    return lambda value: type(value) is int and least <= value <= most


def one_of(*texts: str) -> Kind:
    """Return the kind of a key that has one of some texts."""
    return Kind(f"{', '.join(map(repr, texts[:-1]))} or {texts[-1]!r}", lambda value: value in texts)


def _is_name(value: Any) -> bool:
    return is_printable(value) and not any(letter in NAME_TABOO for letter in value)


FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TEXT = Kind("text, in quotation marks", is_text)
DOTTED = Kind("a dotted name, as text", is_text)
TEXTS = Kind("a list of texts", is_texts)
MAP = Kind("a map", lambda value: isinstance(value, dict))
FROM_1 = Kind("a whole number from 1", whole(1))
SECS = Kind("seconds above 0", lambda value: is_number(value) and value > 0)
STORE_URL = Kind("the URL of a store", is_text)
STORE_OR_FILE = Kind("the URL of a store, or the path of an SQLite file", is_text)

_PROCESS = "each component's process"
_STATE = "state"
_SPARK = "`PartitionSpout`"

SETTINGS = {
    row.key: row
    for row in (
        Setting(
            PROCESS_TIMEOUT,
            Kind("seconds above 0, or 0 for no deadline", lambda value: is_number(value) and value >= 0),
            300,
            _PROCESS,
            "the seconds that one call of your code may take; after that the process ends, and the log has the call's stack; 0: no limit",
        ),
        Setting(
            LOG_LEVEL,
            Kind(
                f"one of {', '.join(LOG_LEVELS)}", lambda value: isinstance(value, str) and value.lower() in LOG_LEVELS
            ),
            "info",
            _PROCESS,
            "the lowest level that Python's logging sends to Storm's log: trace, debug, info, warning, error",
        ),
        Setting(
            MAX_REPLAYS,
            FROM_1,
            None,
            "`ReliableSpout`",
            "how often a spout without a `max_replays` of its own (None, for ever, is one, too) replays a failed tuple, before it "
            "reports it and gives it up; without it, until it is acked",
        ),
        Setting(
            MIDDLEWARE,
            Kind("a list of dotted names", is_texts),
            [],
            _PROCESS,
            "[middleware](components.md) around every component, by dotted name",
        ),
        Setting(
            METRICS_INTERVAL,
            SECS,
            60,
            _PROCESS,
            "seconds between two reports of `self.metrics`, and on Storm of [how busy a task is](observing.md#how-busy-a-task-is)",
        ),
        Setting(
            METRICS_REGISTERED,
            Kind("a list of names", is_texts),
            [],
            _PROCESS,
            "metrics registered on the Java side, which are sent by the `metrics` command too",
        ),
        Setting(
            PROMETHEUS_PORT,
            Kind("a port number, or 0 for any free one", whole(0, 65535)),
            None,
            _PROCESS,
            "the port on which metrics are served (extra `metrics`); 0: any free port; if the port is taken, the next free one",
        ),
        Setting(
            PROMETHEUS_HOST,
            Kind("an address, such as 127.0.0.1", lambda value: isinstance(value, str) and bool(value)),
            "127.0.0.1",
            _PROCESS,
            "the address of that server",
        ),
        Setting(
            MAX_BUFFER,
            Kind("a number of bytes above 0", whole(1)),
            128 * 1024 * 1024,
            _PROCESS,
            "the size of the longest message that is read, and the memory that it may take when it is parsed, which is counted "
            "before: a list of small numbers takes up to 40 times its text",
        ),
        Setting(
            MILD,
            FLAG,
            False,
            "components of pystorm and streamparse",
            "true: an exception in a component of [another library's](migrating.md) fails its tuple, and the process continues",
        ),
        Setting(
            EXCHANGE,
            one_of("auto", "tuple", "root", "block"),
            "auto",
            "each component's process, and `build`",
            "how tuples between two Python components travel: `root`, [in blocks](exchange.md) of what comes of one tuple of a spout; "
            "`block`, in larger ones; `auto`, in larger ones [where this is known to be safe](exchange.md#what-the-library-chooses); "
            "`tuple`, one by one",
        ),
        Setting(EXCHANGE_TUPLES, FROM_1, 1000, _PROCESS, "the largest number of tuples in a block"),
        Setting(
            STORE,
            STORE_URL,
            None,
            "[state](state.md), [transactions](transactional.md), [connectors](connectors.md)",
            "the URL of the store: `sqlite:///FOLDER/FILE.sqlite`, `redis://HOST:PORT/DATABASE`, `zookeeper://HOST:PORT/PATH`, "
            "`memory:`, or one of yours. Connectors that are read by position keep it only if this is set",
            "an SQLite file for each topology; on a cluster none",
        ),
        Setting(
            POSITIONS,
            STORE_OR_FILE,
            None,
            "spouts that keep a position",
            "another place for the positions of spouts alone",
            f"`{STORE}`",
        ),
        Setting(
            MARKS,
            STORE_OR_FILE,
            None,
            _SPARK,
            "another place for the [progress of partitions](spark.md) alone",
            f"`{STORE}`; without that, an SQLite file of this user",
        ),
        Setting(
            TRANSACTIONS,
            TEXT,
            None,
            "transactions",
            "another [place](transactional.md#where-transactions-are-stored) for the progress of the transactions alone: a URL, "
            "`sqlite`, `zookeeper`, or a class of yours by its dotted name",
            f"`{STORE}`; without that, on a cluster, `zookeeper`",
        ),
        Setting(
            STORED_NAME,
            Kind(f"a name as a topology may have, printable text without {' '.join(NAME_TABOO)}", _is_name),
            None,
            "whatever is stored",
            "the name under which state and positions are stored, such as a topology may have; "
            "[`deploy --blue-green`](shipping.md#blue-and-green) sets it",
            "the topology's name",
        ),
        Setting(
            ALIGNMENT,
            one_of(AT_LEAST_ONCE, EXACT),
            AT_LEAST_ONCE,
            "`build`, and state",
            "`exact`: the state is as if each tuple had been processed once; set it when the topology is built",
        ),
        Setting(
            CACHED_KEYS,
            Kind("a number of keys, from 0", whole(0)),
            100_000,
            _STATE,
            "the number of unchanged keys of a task's state that are kept in memory",
        ),
        Setting(
            TRACE,
            DOTTED,
            None,
            "state, and transactions",
            "the dotted name of a function `(who, step, txid)`, which is called at each step of a checkpoint or of a transaction",
        ),
        Setting(
            REDIS_ACCESS,
            Kind(
                f"an object with any of {', '.join(REDIS_MEMBERS)}",
                lambda value: isinstance(value, dict) and set(value) <= set(REDIS_MEMBERS),
            ),
            None,
            "whatever uses Redis",
            "[the way into each Redis](security.md#redis-zookeeper-kafka) that asks for authentication: an object with `user`, `password`, "
            "`tls`, `ca`, `cert`, `key`",
        ),
        Setting(
            KAFKA_OPTIONS,
            MAP,
            None,
            "whatever uses Kafka",
            "settings of librdkafka for all topics of the topology, such as [a login and TLS](security.md#redis-zookeeper-kafka); "
            "a spout's own come before them",
        ),
        Setting(
            SOURCE,
            Kind("the URL of a source", is_text),
            None,
            _SPARK,
            "the URL of the [source](spark.md) of a spout that is made without one",
        ),
        Setting(
            SOURCE_GROUP,
            TEXT,
            None,
            _SPARK,
            "the name of the [group](spark.md) of a spout that is made without one; a later run of the group continues where it ended",
        ),
        Setting(
            SECRET_FILE,
            TEXT,
            None,
            _SPARK,
            "the path of the file with the secret of a [`served://`](spark.md) source",
        ),
    )
}
"""The keys that users set."""

SET_HERE = {
    row.key: row
    for row in (
        Setting(
            PARENT,
            TEXT,
            None,
            _PROCESS,
            "by the embedded cluster (`local`) and on Spark (`spark`), so that a component's process knows its parent",
        ),
        Setting(
            EDGES,
            MAP,
            None,
            _PROCESS,
            "by `build`, for a component whose tuples travel in blocks, so that its process knows which",
        ),
        Setting(
            INPUT_FILES,
            TEXTS,
            None,
            "spouts",
            "by `multilang run --input`: absolute paths for the spouts to read",
        ),
        Setting(
            RECORD,
            MAP,
            None,
            "spouts",
            "by `multilang run --record`: the [recording](testing.md#recordings) to which they write what they emit, and the instant from "
            "which its times count",
        ),
        Setting(
            BATCH,
            MAP,
            None,
            "windowed bolts",
            "by Spark: the instant of the present batch, and the components whose tasks count as one source",
        ),
        Setting(
            DEPLOYMENT,
            TEXT,
            None,
            "`multilang deploy`",
            "by [`deploy`](shipping.md#replacing-a-running-topology): a name drawn at random, by which it knows a topology that it "
            "submitted from one that somebody else submits under the same name meanwhile",
        ),
        Setting(
            DRPC_SERVICE,
            TEXT,
            None,
            "DRPC",
            "by `LocalDRPC`, which is found through it without a socket, in its own process",
        ),
    )
}
"""The keys that this library puts into a conf itself."""

ROWS = {**SETTINGS, **SET_HERE}

REMOVED = {
    "multilang.chaining": "write the bolt that does the work of several by hand, as docs/scaling.md shows",
    "multilang.chaining.view": "write the bolt that does the work of several by hand, as docs/scaling.md shows",
    "multilang.direct.task.plain": "leave it out: a direct emit always has the form that every version of Storm reads",
    "multilang.state.trace": f"write {TRACE}",
    "multilang.transactional.trace": f"write {TRACE}",
    "multilang.transactional.sqlite.path": f"write {TRANSACTIONS}: sqlite:///FOLDER/FILE.sqlite",
}
"""The keys that are no more, each with what to do instead."""
