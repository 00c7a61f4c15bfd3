"""Components whose code finds much by its name. Each case of test_names.py is this file, with a topology behind it."""

import enum
import functools
import heapq
import json
import logging
import os
import re
import socket
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from types import SimpleNamespace

import named_beside
import ujson
from named_beside import LIMIT, STARTED, plus_one

from multilang import BasicBolt, Spout, TopologyBuilder

IS_MAIN = __name__ == "__main__"
FACTOR = 1
_HIDDEN = 1
TABLE = {"a": 1}
NAMES = ["a"]
NESTED = {"a": [1]}
START = time.time()
HOME = os.environ["HOME"]
COUNT = 0
SEEN = []
MEMO = {0: 0}
RECORDS = defaultdict(list)
STATS = Counter()
LOG = logging.getLogger(__name__)
LOCK = threading.Lock()
PATTERN = re.compile("a+")
CONFIG = SimpleNamespace(factor=1)


def helper(x):
    return x * FACTOR


def memo(n):
    if n not in MEMO:
        MEMO[n] = n + 1
    return MEMO[n]


def counted():
    global COUNT
    COUNT += 1
    return COUNT


@functools.lru_cache
def cached(n):
    return n


def logged(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


@logged
def wrapped(x):
    return x


def counting():
    number = 0

    def count():
        nonlocal number
        number += 1
        return number

    return count, lambda: number


def put(table, key):
    table[key] = key


def read(table):
    return table["a"]


def aliases():
    rules, (first, *_) = RULES, ROWS
    kept = KEPT
    kept["b"] = 1
    for row in ROWS:
        row.append(first)
    inner = KEPT["a"]
    inner[3] = PAIR[0].append(4)
    for each in GIVEN.values():
        each.append(5)
    return rules["a"]


def hashed(kind):
    """Give a class a method as attrs makes it: the hash of a text, another one in each process, is in its code."""
    made = {}
    exec(f"def __hash__(self): return {hash(kind.__qualname__)}", made)
    kind.__hash__ = made["__hash__"]
    return kind


def lookup(table):
    return lambda v: table[v]


def remembering():
    known = {}

    def first(x):
        known[x] = x
        return second

    def second(x):
        return first

    return first


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Rule:
    """An object that fills much when somebody looks."""

    def __init__(self, factor):
        self._factor = factor
        self._text = self._pattern = None
        self.parts, self.known = [], {}

    def __repr__(self):
        if self._text is None:
            self._text = f"Rule({self._factor})"
        return self._text

    def __hash__(self):
        object.__setattr__(self, "_hash", 5)
        return 5

    def __eq__(self, other):
        return self is other

    @property
    def twice(self):
        self._twice = 2 * self._factor
        return self._twice

    @functools.cached_property
    def thrice(self):
        return 3 * self._factor

    def matches(self, text):
        if self._pattern is None:
            self._pattern = re.compile("a")
        return self._pattern.match(text)

    def look(self, key):
        if key not in self.known:
            self.known[key] = 1
        return self.known[key]

    def times(self, n):
        self._factor = n
        return self

    def add(self, n):
        self.parts.append(n)
        return self


class Total:
    def __init__(self):
        self.n, self.all = 0, []

    def add(self, x):
        self.n += x
        self.all.append(x)


@dataclass
class Data:
    factor: int
    names: set = field(default_factory=set)

    def twice(self):
        return 2 * self.factor


class Client:
    """An object of this process alone."""

    def __init__(self):
        self.started = time.time()
        self.lock = threading.Lock()

    def send(self, x):
        return x


class Settings:
    factor = 1
    used = 0
    latest = None


class Unbound:
    """An object that fails whoever looks, as a proxy of what is not there yet."""

    __dict__ = __class__ = property(lambda self: 1 / 0)

    def __getattr__(self, name):
        raise RuntimeError(name)


@hashed
class Node:
    """Objects that their class remembers."""

    made = []
    by_name = {}

    def __init__(self, name):
        self.made.append(name)
        Node.by_name[name] = self


count, counted_so_far = counting()
HEAP, PASSED, PLAIN = [], {}, {"a": 1}
RULES, KEPT = {"a": 1}, {"a": {}}
ROWS, PAIR, GIVEN = [[0], [1]], ([], {}), {"a": []}
UNBOUND = Unbound()
NODE = Node("first")
SYNONYMS = type("Synonyms", (dict,), {"__module__": ujson.__name__})()
SYNONYMS.made = object.__hash__(SYNONYMS)
CLIENT = Client()
HANDLERS = {"a": cached}
TOTAL = Total()
DATA = Data(1)
AROUND = []
AROUND.append(AROUND)


class Numbers(Spout):
    output_fields = ("n",)


class Base(BasicBolt):
    base = 1

    def more(self):
        return self.base


class Plus(Base):
    output_fields = ("n",)
    _scale = 1
    rules = {"a": 1}
    rule = Rule(1)
    kept = []
    started = time.time()
    made = 0

    def __init__(self, by=1, function=None):
        self.by, self.function = by, function
        self._private, self.listed, self.now = 1, [1], time.time()
        Plus.made += 1

    def __deepcopy__(self, memo):
        return Plus(self.by, self.function)

    def process(self, tup):
        x = tup["n"] * FACTOR * _HIDDEN + START + STARTED + counted() + len(HOME)
        SEEN.append(x)
        self.kept.append(x)
        RECORDS["a"].append(x)
        STATS["x"] += 1
        TOTAL.add(x)
        LOG.info("%s", x)
        factor, rate = LIMIT, TABLE["a"]
        with LOCK:
            memo(3)
            MEMO[rate] = TABLE["b"]
        for name in NAMES:
            x += plus_one(1) + named_beside.DEEP + named_beside.change(2) + CONFIG.factor + self.rules[name]
        x += DATA.factor + DATA.twice() + wrapped(factor) + cached(4) + sum(i * LIMIT for i in NESTED["a"])
        x += CLIENT.send(Settings.factor) + HANDLERS["a"](1)
        heapq.heappush(HEAP, factor)
        put(PASSED, factor)
        Settings.used += 1
        Settings.latest = named_beside.LATEST = factor
        named_beside.USED += 1
        x += count() + counted_so_far() + read(PLAIN) + aliases() + (UNBOUND is NODE) + len(SYNONYMS)
        if __name__ in ("__main__", "__mp_main__"):
            print(len("abc"), Node(str(x)))
        where = named_beside.back.named_beside.DEEP, socket.gethostname(), time.time(), json.dumps(x)
        self.emit([helper(x), where, PATTERN.match("a"), Colour.RED, self._scale, self.rule])


def build(plus, **conf):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers)
    builder.set_bolt("plus", plus, conf=conf).shuffle_grouping("numbers")
    return builder.build("plus")
