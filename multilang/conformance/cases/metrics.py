"""Metrics that are registered on the Java side and updated by the component."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multilang.conformance.case import MEASURED, Section
from multilang.conformance.world import METRIC

if TYPE_CHECKING:
    from multilang.conformance.conversation import Conversation

section = Section(
    "common/metrics", "Metrics", f"Storm's ShellBolt and ShellSpout, handleMetrics; {MEASURED} (metrics_unknown)"
)


def sent(t: Conversation, params: Any) -> None:
    """Check that a metric arrives with these params."""
    [out] = t.perform([["metric", METRIC, params]])
    came = [[message.value.get("name"), message.value.get("params")] for message in out.of("metrics")]
    t.same(came, [[METRIC, params]], "one metrics message with name and params is due")


@section.must("a number", 'A metric is {"command": "metrics", "name": …, "params": …}.', steps="metric")
def _(t: Conversation) -> None:
    sent(t, 1)


@section.must(
    "a map",
    "params is whatever the metric on the Java side takes.",
    steps="metric",
    after=(
        "common/unicode/1",
        "common/numbers/3",
        "common/json/11",
    ),
)
def _(t: Conversation) -> None:
    sent(t, {"é": [1, None, "x"], "b": {"c": 2.5}})


section.watch(
    "MUST",
    "metrics.name",
    "a metric names one that exists",
    "An empty name or one that nobody registered halts the worker.",
)


@section.must(
    "params that many languages take for nothing",
    'params is any value: 0, "", false, an empty list and an empty map are sent as what they are.',
    steps="metric",
    after=("common/metrics/1", "common/json/10", "common/json/12"),
)
def _(t: Conversation) -> None:
    nothing: list[Any] = [0, "", False, [], {}]
    [out] = t.perform([["metric", METRIC, params] for params in nothing])
    came = [message.value.get("params", "none") for message in out.of("metrics")]
    t.same(came, nothing, "params are others")
