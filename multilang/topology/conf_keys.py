"""The keys that a topology's conf may have, so that a misspelt key is reported instead of being ignored."""

from __future__ import annotations

from functools import cache

from multilang.component import near
from multilang.topology import importing
from multilang.topology.errors import TopologyError
from multilang.topology.storm_keys import STORM_KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# From Storm 2.8.3's org.apache.storm.Config and DaemonConfig, each after "topology.".
_STORMS = """
acker.cpu.pcore.percent acker.executors acker.resources.offheap.memory.mb acker.resources.onheap.memory.mb
auto-credentials auto.task.hooks backpressure.check.millis backpressure.enable backpressure.wait.park.microsec
backpressure.wait.progressive.level1.count backpressure.wait.progressive.level2.count
backpressure.wait.progressive.level3.sleep.millis backpressure.wait.strategy batch.flush.interval.millis
blobstore.map bolt.wait.park.microsec bolt.wait.progressive.level1.count bolt.wait.progressive.level2.count
bolt.wait.progressive.level3.sleep.millis bolt.wait.strategy bolts.late.tuple.stream bolts.message.id.field.name
bolts.tuple.timestamp.max.lag.ms bolts.watermark.event.interval.ms bolts.window.length.count
bolts.window.length.duration.ms bolts.window.sliding.interval.count bolts.window.sliding.interval.duration.ms
builtin.metrics.bucket.size.secs classpath classpath.beginning component.cpu.pcore.percent component.resources.map
component.resources.offheap.memory.mb component.resources.onheap.memory.mb debug disable.loadaware.messaging
enable.message.timeouts enable.send.iconnection.metrics enable.v2.metrics.tick environment
error.throttle.interval.secs event.logger.register eventlogger.executors executor.overflow.limit
executor.receive.buffer.size fall.back.on.java.serialization groups isolate.machines kryo.decorators kryo.factory
kryo.register localityaware.higher.bound localityaware.lower.bound logging.config logging.sensitivity
max.error.report.per.interval max.replication.wait.time.sec max.spout.pending max.task.parallelism
message.timeout.secs metrics.consumer.cpu.pcore.percent metrics.consumer.register
metrics.consumer.resources.offheap.memory.mb metrics.consumer.resources.onheap.memory.mb metrics.reporters
min.replication.count multilang.log.handler multilang.serializer name priority producer.batch.size
ras.acker.executors.per.worker ras.constraint.max.state.search ras.constraint.max.time.secs ras.constraints
ras.one.component.per.worker ras.one.executor.per.worker ras.order.executors.by.proximity.needs readonly.groups
readonly.users scheduler.favored.nodes scheduler.strategy scheduler.unfavored.nodes serialized.message.size.metrics
shellbolt.max.pending skip.missing.kryo.registrations sleep.spout.wait.strategy.time.ms spout.recvq.skips
spout.wait.park.microsec spout.wait.progressive.level1.count spout.wait.progressive.level2.count
spout.wait.progressive.level3.sleep.millis spout.wait.strategy spread.components state.checkpoint.interval.ms
state.kryo.register state.provider state.provider.config state.synchronization.timeout.secs stats.sample.rate
submitter.principal submitter.user subprocess.timeout.secs tasks testing.always.try.serialize tick.tuple.freq.secs
transactional.id transfer.batch.size transfer.buffer.size trident.batch.emit.interval.millis
trident.windowing.cache.tuple.limit tuple.serializer users v2.metrics.tick.interval.seconds version worker.childopts
worker.gc.childopts worker.logwriter.childopts worker.max.heap.size.mb worker.metrics
worker.nimbus.thrift.client.use.tls worker.receiver.thread.count worker.shared.thread.pool.size worker.timeout.secs
workers
"""
# docs/configuration.md describes them; a test compares the two lists.
_OURS = """
batch buffer.max.bytes compat.mild deployment direct.task.plain drpc.service exchange exchange.edges exchange.tuples input.files kafka.options log.level max.replays metrics.interval.secs metrics.prometheus.host
metrics.prometheus.port metrics.registered middleware parent positions process.timeout.secs record redis.access source source.group
source.secret.file source.store state.alignment state.cache.keys state.name state.trace store transactional.sqlite.path
transactional.store transactional.trace
"""
# Storm's page on guaranteed processing still has these; since 0.9 they have had other names.
_FORMER = {"topology.ackers": "topology.acker.executors"}
KNOWN = frozenset(
    [
        *_FORMER,
        *(f"topology.{key}" for key in _STORMS.split()),
        *(f"multilang.{key}" for key in _OURS.split()),
        *STORM_KEYS,
    ]
)
# Settings that ``build`` reads, because components and streams depend on them, each with its default.
_AT_BUILD = {"multilang.state.alignment": "at-least-once"}
_NEAR = 0.85  # the part of two keys' letters that must be the same
_VERY_NEAR = 0.9  # for any other key, which may be a user's own


def check_keys(keys: Iterable[str], what: str) -> None:
    """Raise TopologyError for a key that is almost a known one; ``what`` says in the message whose key it is."""
    for key in keys:
        if key not in KNOWN:
            meant = nearest(key)
            if meant is not None:
                raise TopologyError(f"{what}: {key!r} is read by nobody; did you mean {meant!r}?")


def check_built(built: Mapping[str, Any], conf: Mapping[str, Any]) -> None:
    """Raise TopologyError if ``conf`` changes what a topology was built with and can't have otherwise any more."""
    for key, default in _AT_BUILD.items():
        before = built.get(key, default)
        wanted = conf.get(key, before)
        if (default if wanted is None else wanted) != before:
            raise TopologyError(
                f"{key} is {wanted!r}, and the topology was built for {before!r}: it can't change after build, so give it "
                f"there: build(conf={{{key!r}: {wanted!r}}})"
            )


def renamed(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return a conf with each key under its current name in Storm, and warn about keys with an old one.

    Raises:
        TopologyError: A key is there under both names, with different values.
    """
    if not any(key in conf for key in _FORMER):
        return dict(conf)
    found = {_FORMER.get(key, key): value for key, value in conf.items()}
    for old, new in _FORMER.items():
        if old in conf and conf.get(new, conf[old]) != conf[old]:
            raise TopologyError(
                f"conf {old!r}: {conf[old]!r} and {new!r}: {conf[new]!r} are the same setting; keep the second, which has its "
                "name of today"
            )
        if old in conf and not importing.by_task:  # warn once when it is submitted, not in each task's log
            from logging import getLogger

            getLogger(__name__).warning("%s is old Storm's name of %s; it is taken as that", old, new)
    return found


def nearest(key: str) -> str | None:
    """Return the known key that an unknown one probably stands for: misspelt, or without its first word."""
    known = _by_plain()
    plain = _plain(key)
    if plain in known:
        return known[plain]
    whole = f"topology.{plain}"
    if whole in known and plain.count(".") > 1:
        return whole
    cutoff = _NEAR if plain.startswith(("topology.", "multilang.")) else _VERY_NEAR
    found = near.nearest(plain, known, cutoff)
    return None if found is None or plain.startswith(f"{found}.") else known[found]


@cache
def _by_plain() -> dict[str, str]:
    return {_plain(each): each for each in KNOWN}


def _plain(key: str) -> str:
    return key.lower().replace("_", ".").replace("-", ".")
