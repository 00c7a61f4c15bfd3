"""The settings of a windowed bolt, from its class and its conf."""

from __future__ import annotations

from datetime import timedelta
from operator import itemgetter

from multilang.component.errors import ConfigError, UnrecoverableError
from multilang.settings import PARENT, is_number
from multilang.windowing.aggregates import Aggregate, Count
from multilang.windowing.specs import Session, Sliding, Tumbling, duration_ms, milliseconds, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from multilang.windowing.declared import DeclaredWindows

LENGTH_COUNT = "topology.bolts.window.length.count"
LENGTH_MS = "topology.bolts.window.length.duration.ms"
SLIDE_COUNT = "topology.bolts.window.sliding.interval.count"
SLIDE_MS = "topology.bolts.window.sliding.interval.duration.ms"
LAG_MS = "topology.bolts.tuple.timestamp.max.lag.ms"
INTERVAL_MS = "topology.bolts.watermark.event.interval.ms"
LATE_STREAM = "topology.bolts.late.tuple.stream"
ID_FIELD = "topology.bolts.message.id.field.name"
MAX_SPOUT_PENDING = "topology.max.spout.pending"
TIMEOUT = "topology.message.timeout.secs"
TIMEOUTS = "topology.enable.message.timeouts"

NO_DATA = ("$", "__", "org.apache.storm.")
"""The beginnings of the names of streams of checkpoints, ticks and coordination, whose tuples are in no window."""

ENGINES = ("local", "spark")
"""The engines that do not replay a tuple merely because a window holds it."""

ANCHORS = ("all", "new", "none")
AT_LIMIT = (None, "error", "spill")
_WINDOW_KEYS = (LENGTH_COUNT, LENGTH_MS, SLIDE_COUNT, SLIDE_MS)


class MemoryLimitError(UnrecoverableError):
    """The windows of a task have as much in memory as ``memory_limit`` allows.

    The tuples that fill it are not acked, so that a restarted task would get them all again, and end in the same way.
    """


class Settings:
    """The settings of one bolt, checked.

    Args:
        bolt: The bolt as it is declared.
        conf: Its conf.
        who: The bolt in the words of a message, such as ``bolt 'sums'``.

    Raises:
        ConfigError: A setting can't work.
    """

    def __init__(self, bolt: DeclaredWindows, conf: Mapping[str, Any], who: str) -> None:
        self.who = who
        self.window = self._window(bolt.window, conf)
        self.key_by = self._key_by(bolt.key_by)
        self.has_event_time = bolt.timestamp_field is not None or bolt.has_own_timestamp()
        self.timestamp_field = self._name(bolt.timestamp_field, "timestamp_field")
        self.lag_ms = self._ms(bolt.lag, "lag", conf, LAG_MS)
        self.interval_ms = self._ms(bolt.watermark_interval, "watermark_interval", conf, INTERVAL_MS, least=1)
        self.lateness_ms = self._ms(bolt.allowed_lateness, "allowed_lateness")
        self.idle_ms = None if bolt.idle_after is None else self._ms(bolt.idle_after, "idle_after", least=1)
        self.late_stream = self._name(bolt.late_stream, "late_stream", conf, LATE_STREAM, "a stream's name")
        self.id_field = self._name(bolt.id_field, "id_field", conf, ID_FIELD)
        timeout: Any = conf.get(TIMEOUT)
        self.timeout_secs: float = timeout if is_number(timeout) else 30
        self.is_replayed = conf.get(PARENT) not in ENGINES and conf.get(TIMEOUTS) is not False
        self.aggregate: Aggregate | None = bolt.aggregate
        self.anchor = self._one_of(bolt.anchor, "anchor", ANCHORS)
        self.early_count, self.early_ms = self._early(bolt.early)
        self.accumulating = self._one_of(bolt.accumulating, "accumulating", (True, False))
        self.memory_limit = self._memory_limit(bolt.memory_limit)
        self.spills = self._spills(bolt)
        keeps = self._one_of(bolt.keep_expired, "keep_expired", (None, True, False))
        self.keep_expired = self.key_by is None and bolt.aggregate is None if keeps is None else keeps
        self._check(bolt)

    @property
    def is_counted(self) -> bool:
        """True if the windows depend on the order of the tuples, since a count is in them."""
        return isinstance(self.window, Sliding) and bool(self.window.length_count or self.window.slide_count)

    @property
    def joins_panes(self) -> bool:
        """True if a window may be made of several panes from its beginning, and the aggregate may refuse to merge them."""
        if self.aggregate is None or type(self.aggregate) is Count or isinstance(self.window, Session):
            return False  # a count takes any tuple
        window = self.window
        if bool(window.length_count) != bool(window.slide_count):
            return True
        return window.length_count > window.slide_count or window.length_ms > window.slide_ms

    @property
    def slide_count(self) -> int:
        """The number of tuples from one window to the next; 0 if there is none."""
        return 0 if isinstance(self.window, Session) else self.window.slide_count

    def conf(self) -> dict[str, Any]:
        """Return the settings under Storm's keys, for those that Storm has."""
        found: dict[str, Any] = {}
        if isinstance(self.window, Sliding):
            found[LENGTH_COUNT if self.window.length_count else LENGTH_MS] = (
                self.window.length_count or self.window.length_ms
            )
            found[SLIDE_COUNT if self.window.slide_count else SLIDE_MS] = (
                self.window.slide_count or self.window.slide_ms
            )
        if self.has_event_time:
            found[LAG_MS] = self.lag_ms
            found[INTERVAL_MS] = self.interval_ms
        if self.late_stream is not None:
            found[LATE_STREAM] = self.late_stream
        if self.id_field is not None:
            found[ID_FIELD] = self.id_field
        return found

    def check_limits(self, conf: Mapping[str, Any]) -> None:
        """Check, as Storm does, but also for event time, that tuples can be held for as long as they are in windows.

        Args:
            conf: The topology's conf with the bolt's own.

        Raises:
            ConfigError: Tuples would time out, or spouts would wait for acks, before the windows end.
        """
        timeout, (longest, what) = conf.get(TIMEOUT, 30), self._held()
        if is_number(timeout) and conf.get(TIMEOUTS) is not False and longest > timeout * 1000:
            raise ConfigError(
                f"{self.who}: {what} make {longest / 1000:g} s, and {TIMEOUT} is {timeout:g}: tuples would time out before their windows "
                f"end, and be replayed. Set {TIMEOUT} to {-(-longest // 1000)} or more, or make it a StatefulWindowedBolt, which acks early"
            )
        window = self.window
        most: Any = conf.get(MAX_SPOUT_PENDING)
        pending = 0 if isinstance(window, Session) else window.length_count + window.slide_count
        if is_number(most) and pending > most:
            raise ConfigError(
                f"{self.who}: length and slide of {window!r} make {pending} tuples, and {MAX_SPOUT_PENDING} is {most}: the spouts would "
                f"wait for acks before a window is full. Set {MAX_SPOUT_PENDING} to {pending} or more, or make it a StatefulWindowedBolt, "
                "which acks early"
            )

    @property
    def held_ms(self) -> int:
        """The milliseconds for which tuples are held, if nothing pauses."""
        return self._held()[0]

    def _held(self) -> tuple[int, str]:
        """Return the milliseconds for which tuples are held, and the settings behind them, in words."""
        window = self.window
        if isinstance(window, Session):
            length, slide, by_storm = window.gap_ms, 0, f"the gap of {window!r}"
        else:
            length, slide, by_storm = window.length_ms, window.slide_ms, f"length and slide of {window!r}"
        held = [(length + slide, by_storm)]
        if self.has_event_time:  # which Storm leaves out
            added = [name for name, ms in (("lag", self.lag_ms), ("allowed_lateness", self.lateness_ms)) if ms]
            held.append((length + self.lag_ms + self.lateness_ms, f"{window!r} and its {' and '.join(added)}"))
            held.append((self.interval_ms, "the times between watermarks (watermark_interval)"))
        return max(held, key=itemgetter(0))

    # ---- one setting each ----

    def _window(self, declared: object, conf: Mapping[str, Any]) -> Sliding | Session:
        if any(conf.get(key) is not None for key in _WINDOW_KEYS):
            return self._from_conf(conf)
        if declared is None:
            raise ConfigError(
                f"{self.who} has no window: set window = Tumbling(seconds(10)), for example, or {LENGTH_MS} in its conf"
            )
        if not isinstance(declared, Sliding | Session):
            raise ConfigError(
                f"{self.who}: window is {declared!r}; use Tumbling(length), Sliding(length, slide) or Session(gap)"
            )
        return declared

    def _from_conf(self, conf: Mapping[str, Any]) -> Sliding:
        for key in _WINDOW_KEYS:
            value = conf.get(key)
            if value is not None and (type(value) is not int or value < 1):
                raise ConfigError(f"{self.who}: {key} is {value!r}; use a whole number from 1")
        length = _size(conf, LENGTH_COUNT, LENGTH_MS)
        if length is None:
            raise ConfigError(
                f"{self.who}: the conf has a sliding interval and no length; set {LENGTH_COUNT} or {LENGTH_MS}, too"
            )
        slide = _size(conf, SLIDE_COUNT, SLIDE_MS)
        try:
            return Tumbling(length) if slide == length else Sliding(length, 1 if slide is None else slide)
        except ConfigError as problem:
            raise ConfigError(f"{self.who}: {problem}") from None

    def _key_by(self, declared: object) -> tuple[str, ...] | None:
        if declared is None:
            return None
        names = (declared,) if isinstance(declared, str) else declared
        if (
            not isinstance(names, list | tuple)
            or not names
            or not all(isinstance(each, str) and each for each in names)
        ):
            raise ConfigError(f"{self.who}: key_by is {declared!r}; give a field's name, or a list of names")
        return tuple(names)

    def _ms(
        self, value: object, name: str, conf: Mapping[str, Any] | None = None, key: str = "", least: int = 0
    ) -> int:
        given = None if conf is None else conf.get(key)
        if given is None:
            return duration_ms(value, f"{self.who}: {name}", least)
        if type(given) is not int or given < least:
            raise ConfigError(f"{self.who}: {key} is {given!r}; use a whole number of milliseconds from {least}")
        return given

    def _name(
        self,
        value: object,
        name: str,
        conf: Mapping[str, Any] | None = None,
        key: str = "",
        wanted: str = "a field's name",
    ) -> str | None:
        given = None if conf is None else conf.get(key)
        if given is None:
            return name_or_none(value, f"{self.who}: {name}", wanted)
        return name_or_none(given, f"{self.who}: {key}", wanted)

    def _one_of(self, value: Any, name: str, allowed: tuple[Any, ...]) -> Any:
        if not any(isinstance(value, type(each)) and value == each for each in allowed):
            raise ConfigError(f"{self.who}: {name} is {value!r}; use one of {', '.join(map(repr, allowed))}")
        return value

    def _early(self, value: object) -> tuple[int, int]:
        if value is None:
            return 0, 0
        if isinstance(value, timedelta):
            return 0, duration_ms(value, f"{self.who}: early", 1)
        if type(value) is not int or value < 1:
            raise ConfigError(f"{self.who}: early is {value!r}; give a whole number of tuples from 1, or a duration")
        return value, 0

    def _memory_limit(self, value: object) -> int | None:
        if value is not None and (type(value) is not int or value < 1):
            raise ConfigError(
                f"{self.who}: memory_limit is {value!r}; give a whole number of tuples (of accumulators, with an aggregate) from 1, or None"
            )
        return value

    def _spills(self, bolt: DeclaredWindows) -> bool:
        chosen = self._one_of(bolt.at_memory_limit, "at_memory_limit", AT_LIMIT)
        if chosen is not None and self.memory_limit is None:
            raise ConfigError(
                f"{self.who}: at_memory_limit is {chosen!r}, and there is no limit; set memory_limit, too"
            )
        if chosen == "spill" and not bolt.can_spill:
            raise ConfigError(
                f"{self.who}: at_memory_limit is 'spill', and it has no state to spill to; make it a StatefulWindowedBolt"
            )
        return bolt.can_spill and chosen != "error"

    # ---- together ----

    def _check(self, bolt: DeclaredWindows) -> None:
        who = self.who
        if not self.has_event_time:
            for name, is_set in (
                ("late_stream", self.late_stream is not None),
                ("lag", self.lag_ms > 0),
                ("allowed_lateness", self.lateness_ms > 0),
                ("idle_after", self.idle_ms is not None),
            ):
                if is_set:
                    raise ConfigError(f"{who}: {name} is for event time; set timestamp_field, too")
        elif bolt.timestamp_field is not None and bolt.has_own_timestamp():
            raise ConfigError(f"{who} has both timestamp_field and a method timestamp; keep one of them")
        if self.late_stream is not None and self.late_stream != bolt.late_stream:
            raise ConfigError(
                f"{who}: {LATE_STREAM} is {self.late_stream!r}, which the bolt does not declare; set late_stream = {self.late_stream!r} in "
                "its class"
            )
        if self.aggregate is not None and not isinstance(self.aggregate, Aggregate):
            raise ConfigError(
                f"{who}: aggregate is {self.aggregate!r}; give an Aggregate, such as Count() or Sum('amount'), or None"
            )
        if self.lateness_ms and self.is_counted:
            raise ConfigError(
                f"{who}: allowed_lateness is for windows by duration and sessions, and {self.window!r} has a count"
            )
        is_tumbling = isinstance(self.window, Session) or (
            self.window.length == self.window.slide and not (self.is_counted and self.window.length_ms)
        )
        if (self.early_count or self.early_ms) and not is_tumbling:
            raise ConfigError(f"{who}: early is for tumbling windows and sessions, and the window is {self.window!r}")
        if is_tumbling and isinstance(self.window, Sliding):
            # By event time, a window is open until the watermark has passed its end, however long that takes.
            by_count = 0 < self.window.length_count <= self.early_count
            by_time = 0 < self.window.length_ms <= self.early_ms and not self.has_event_time
            if by_count or by_time:
                raise ConfigError(
                    f"{who}: early is {shown(bolt.early)}, and {self.window!r} ends before an early result would come; give less than the "
                    "window's length, or None"
                )
        if not self.accumulating and not is_tumbling:
            raise ConfigError(
                f"{who}: accumulating = False is for tumbling windows and sessions, and the window is {self.window!r}"
            )
        if self.keep_expired and self.aggregate is not None:
            raise ConfigError(f"{who}: keep_expired is set, but a bolt with an aggregate keeps no tuples")


def name_or_none(value: object, what: str, wanted: str) -> str | None:
    """Return a name that a setting has, which may be None.

    Args:
        value: The value of the setting.
        what: The setting, for the message.
        wanted: The correct value in words, for the message.

    Raises:
        ConfigError: It is neither a name nor None.
    """
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigError(f"{what} is {value!r}; give {wanted}, or None")


def _size(conf: Mapping[str, Any], count_key: str, ms_key: str) -> int | timedelta | None:
    """Return a size from the conf; a count goes before a duration, as in Storm."""
    count, ms = conf.get(count_key), conf.get(ms_key)
    return count if count is not None else None if ms is None else milliseconds(ms)
