"""Descriptions of topologies, drawn by hypothesis: plain JSON, so that a failing one can be written down and run again.

What a description can't have is what would give different answers on a correct engine, too: a batch whose tuples share their
fate, with something behind it that fails one of them; a count of failures where tuples may overtake each other; a join
whose halves are replayed one by one.
"""

from __future__ import annotations

from itertools import count, islice
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SETTLED = ("fields", "all", "global", "direct", "custom")  # groupings that say which task gets a tuple
MOST = 200  # tuples that a component gets, about
FORGET = [None] * 28 + ["late", "stuck"]

Shape = dict[str, Any]


def is_settled(part: Shape) -> bool:
    """Return whether the same task gets a tuple, wherever the topology runs."""
    return part["tasks"] == 1 or all(each["grouping"] in SETTLED for each in part.get("inputs", ()))


class _Drawing:
    """A description that grows. ``open``: streams to subscribe to; ``size``: how many tuples a component emits, about."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any], *, stateful: bool | None, shell: bool) -> None:
        self.choose = choose
        self.shell = shell
        self.parts: list[Shape] = []
        self.stateful = choose([False] * 4 + [True]) if stateful is None else stateful
        self.forget = None if self.stateful else choose(FORGET)
        self.size: dict[str, int] = {}

    def one_of(self, *choices: Any) -> Any:
        return self.choose(choices)

    def shape(self) -> Shape:
        for number in range(self.one_of(1, 1, 1, 2)):
            self.spout(number)
        for _ in range(self.one_of(1, 2, 3, 4, 5)):
            self.bolt()
        if self.stateful and not any("counts" in part["kind"] for part in self.parts):
            self.counts("counts")
        if self.forget and not any(part["kind"] == "forgets" for part in self.parts):
            self.plain_bolt("forgets", fails=9 if self.forget == "stuck" else 1, every=1)
        self.separate()
        ackers = 1 if self.forget or self.stateful else self.one_of(1, 1, 1, 2, 0)
        return {"ackers": ackers, "stateful": self.stateful, "forget": self.forget, "components": self.parts}

    def separate(self) -> None:
        """Let no batch share its fate where something behind it fails."""
        failing = {part["id"] for part in self.parts if part.get("fails")}
        behind: dict[str, set[str]] = {
            part["id"]: {
                other["id"] for other in self.parts if any(i["from"] == part["id"] for i in other.get("inputs", ()))
            }
            for part in self.parts
        }
        for part in self.parts:
            if part.get("how") == "group" and part["kind"] == "batches":
                seen, left = set(), [part["id"]]
                while left:
                    new = behind[left.pop()] - seen
                    seen |= new
                    left.extend(new)
                if seen & failing:
                    part["how"] = "each"

    # ---- components ----

    def add(self, part: Shape, size: int) -> None:
        self.parts.append(part)
        self.size[part["id"]] = size

    def out(self) -> str:
        return self.one_of("default", "default", "default", "parity", "both", "direct")  # type: ignore[no-any-return]

    def spout(self, number: int) -> None:
        kinds = ["replays", "replays", "reliable", "plain"]
        if self.forget:
            kinds = ["replays"]
        elif self.stateful:
            kinds = ["replays", "reliable"]
        elif self.shell:
            kinds.append("shell spout")
        kind = self.one_of(*kinds)
        values = self.one_of(1, 2, 3, 4, 5)
        part = {
            "id": f"s{number}",
            "kind": kind,
            "number": number,
            "tasks": self.one_of(1, 1, 2),
            "values": values,
            "burst": self.one_of(1, 2),
            "tells": kind in ("reliable", "replays") or self.one_of(True, False),
            "out": self.out(),
        }
        if not self.stateful and not self.forget:
            part["pending"] = self.one_of(None, None, 1, 3)
        self.add(part, values * part["tasks"] * (1 + (part["out"] == "both")))

    def bolt(self) -> None:
        kinds = ["basic", "basic", "raw", "fails", "batches", "single", "holds", "says", "shell", "joins"]
        kinds += ["counts", "raw counts"] if self.stateful else ["loops", "coordinated"]
        kind = self.one_of(*kinds)
        if kind == "joins":
            self.join()
        elif kind == "coordinated":
            self.coordinated()
        elif "counts" in kind:
            self.counts(kind)
        elif kind == "loops":
            self.loop()
        elif kind == "fails":
            self.failing()
        elif kind == "raw":
            ways = ["each", "asks", "calls back"] + ([] if self.stateful else ["none", "late"])
            self.plain_bolt(kind, how=self.one_of(*ways))
        elif kind == "batches":
            how = self.one_of(*["group", "each"], *([] if self.stateful else ["none"]))
            more = {"size": self.one_of(None, None, 2, 3), "grouped": self.one_of(True, False), "ticks": True}
            self.plain_bolt(kind, how=how, **more, **self.failures())
        elif kind == "single":
            self.plain_bolt(kind, how=self.one_of(*["group"], *([] if self.stateful else ["none"])))
        elif kind == "holds":
            self.plain_bolt(kind, how=self.one_of(*["each"], *([] if self.stateful else ["none"])), ticks=True)
        elif kind == "says":
            self.plain_bolt(kind, how=self.one_of(*["tick"], *([] if self.stateful else ["none"])), ticks=True)
        elif kind == "shell":
            if not self.shell:
                kind = "basic"
            self.plain_bolt(kind, how=self.one_of(*["each"], *([] if self.stateful else ["none"])), **self.failures())
        else:
            self.plain_bolt(kind)

    def failures(self) -> Shape:
        if self.forget or self.one_of(True, True, False):
            return {}
        return {"fails": self.one_of(1, 2), "every": self.one_of(1, 2)}

    def plain_bolt(self, kind: str, **more: Any) -> Shape:
        part = {"id": f"b{len(self.parts)}", "kind": kind, "tasks": self.one_of(1, 1, 2), **more, "out": self.out()}
        size = self.subscribe(part)
        if kind in ("basic", "shell", "says") and size < MOST / 4:
            part["fan"] = self.one_of(1, 1, 1, 2, 0)
        self.add(part, size * part.get("fan", 1) * (1 + (part["out"] == "both")))
        return part

    def failing(self) -> None:
        if self.forget:
            return
        part = self.plain_bolt("fails", fails=self.one_of(1, 2), every=self.one_of(1, 2))
        spouts = {each["id"] for each in self.parts if each["kind"] == "reliable"}
        for each in part["inputs"]:
            if each["from"] in spouts and is_settled(part):
                part["of"] = each["from"]

    def counts(self, kind: str) -> None:
        part = {"id": f"b{len(self.parts)}", "kind": kind, "tasks": self.one_of(1, 2)}
        self.add(part, self.subscribe(part, SETTLED))

    def join(self) -> None:
        sources = [part for part in self.parts if part.get("out") == "both" and "inputs" in part]
        if not sources:
            return
        source = self.one_of(*[part["id"] for part in sources])
        part = {"id": f"b{len(self.parts)}", "kind": "joins", "tasks": self.one_of(1, 2), "out": self.out()}
        part["inputs"] = [
            {"from": source, "stream": stream, "grouping": "fields", "fields": ["id", "key", "n"]}
            for stream in ("default", "side")
        ]
        self.add(part, self.size[source])

    def loop(self) -> None:
        part = {"id": f"b{len(self.parts)}", "kind": "loops", "tasks": self.one_of(1, 2), "loops": self.one_of(1, 2, 3)}
        size = self.subscribe(part, ("shuffle", "fields", "global", "custom"))
        grouping = self.one_of(*self.groupings(1, ("shuffle", "fields", "global", "all"), size << part["loops"]))
        self.add(part, size)
        if self.one_of(True, False):
            part["inputs"].append({"from": part["id"], "stream": "again", **grouping})
            return
        back = {"id": f"b{len(self.parts)}", "kind": "basic", "tasks": self.one_of(1, 2)}
        back["inputs"] = [{"from": part["id"], "stream": "again", "grouping": "shuffle"}]
        part["inputs"].append({"from": back["id"], "stream": "default", **grouping})
        self.add(back, size)

    def coordinated(self) -> None:
        sources = [
            (part["id"], stream)
            for part in self.parts
            if part["kind"] in ("replays", "plain", "shell spout")
            for stream in streams_of(part)
            if stream != "direct"
        ]
        if not sources:
            return
        source, stream = self.one_of(*sources)
        first, second = (f"b{len(self.parts) + i}" for i in range(2))
        grouping = self.one_of(*self.groupings(1, ("shuffle", "fields", "global"), 0))
        inputs = [{"from": source, "stream": stream, **grouping}]
        self.add({"id": first, "kind": "spreads", "tasks": self.one_of(1, 2), "inputs": inputs}, self.size[source])
        grouping = self.one_of(*self.groupings(1, ("fields", "global", "all", "custom"), 0))
        inputs = [{"from": first, "stream": "default", **grouping}]
        self.add({"id": second, "kind": "sums", "tasks": self.one_of(1, 2), "inputs": inputs}, 2 * self.size[source])

    # ---- subscriptions ----

    def subscribe(self, part: Shape, groupings: tuple[str, ...] = ()) -> int:
        """Let it have one or two inputs; how many tuples come of them, about."""
        streams = [(each["id"], stream) for each in self.parts for stream in streams_of(each)]
        if groupings and "direct" not in groupings:
            streams = [each for each in streams if each[1] != "direct"]
        newest = streams[-3:]
        if not newest:
            newest = streams = [(self.parts[0]["id"], "default")]  # its stream is another one: nothing comes
        chosen = {self.one_of(*newest)}
        if self.one_of(True, False, False):
            chosen.add(self.one_of(*streams))
        part["inputs"], total = [], 0
        for source, stream in sorted(chosen):
            if stream == "direct":
                grouping = {"grouping": "direct"}
            else:
                allowed = groupings or (*SETTLED, "shuffle", "none", "local_or_shuffle", "partial_key")
                grouping = self.one_of(*self.groupings(part["tasks"], allowed, total + self.size[source]))
            part["inputs"].append({"from": source, "stream": stream, **grouping})
            total += self.size[source] * (part["tasks"] if grouping["grouping"] == "all" else 1)
        return total

    def groupings(self, tasks: int, allowed: tuple[str, ...], size: int) -> list[Shape]:
        found: list[Shape] = []
        for grouping in allowed:
            if grouping == "fields":
                found += [{"grouping": grouping, "fields": fields} for fields in (["n"], ["key"], ["id", "key"])]
            elif grouping == "partial_key":
                found.append({"grouping": grouping, "fields": ["id"]})
            elif grouping != "direct" and (grouping != "all" or size * tasks < MOST):
                found.append({"grouping": grouping})
        return found


def streams_of(part: Shape) -> list[str]:
    """The streams that something comes on."""
    return {"parity": ["default", "side"], "both": ["default", "side"], "direct": ["direct"]}.get(
        part.get("out", "default"), ["default"]
    )


@st.composite
def shapes(draw: Any, *, stateful: bool | None = None, shell: bool = True) -> Shape:
    """A description, which hypothesis makes smaller when it fails.

    ``stateful``: whether it is, None for either; ``shell``: whether programs take part.
    """
    return _Drawing(lambda choices: draw(st.sampled_from(choices)), stateful=stateful, shell=shell).shape()


def shape_of(seed: int, *, stateful: bool | None = None, shell: bool = True) -> Shape:
    """The description of this number: unlike hypothesis's, each is drawn for itself."""
    return _Drawing(Random(seed).choice, stateful=stateful, shell=shell).shape()


def sample(number: int, start: int, accept: Callable[[Shape], object] | None = None, **how: Any) -> list[Shape]:
    """So many descriptions of three components and more that ``accept`` takes, from the number ``start`` on."""
    drawn = (shape_of(seed, **how) for seed in count(start))
    fitting = (each for each in drawn if len(each["components"]) > 2 and (accept is None or accept(each)))
    return list(islice(fitting, number))
