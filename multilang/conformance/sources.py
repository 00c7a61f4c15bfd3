"""Links from a requirement's source to the sentence of the page that it comes from.

A case names its source in words, such as ``Multi-Lang Protocol 1.1.0, Spouts: sync; measured on Storm 2.8.3``. Each of
its parts may have a link. Browsers scroll to a sentence of a page by its first and last words (a text fragment); one that
does not know this shows the page from its top.
"""

from __future__ import annotations

from urllib.parse import quote

from multilang.conformance.case import PAGE

PROTOCOL = "https://storm.apache.org/releases/1.1.0/Multilang-protocol.html"
_RFC = "https://www.rfc-editor.org/rfc/rfc8259"

# The first and the last words of the sentence that stands for a place of the page, in one section of the cases ("path place")
# or in all ("place").
SENTENCES = {
    "The Protocol": ("Both ends of this protocol", "append them to your output"),
    "The Protocol: Notes": ("All JSON inputs and outputs", 'a single line containing "end"'),
    "The Protocol: lines end with 'end', wherever a read does": (
        "Both ends of this protocol",
        "append them to your output",
    ),
    "The Protocol (no limit is given)": ("All data exchanged", "is encoded in JSON"),
    "messages are objects, whose other keys nobody forbids": ("All data exchanged", "is encoded in JSON"),
    "common/json The Protocol: Notes": ("All data exchanged", "is encoded in JSON"),
    "Initial Handshake": ("Setup info.", "and a topology context"),
    "Initial Handshake: context": ("the context sent by Storm to shell components", "available to JVM components"),
    "common/pid Initial Handshake": ("Your script should create", "named with its PID in this directory"),
    "Spouts": ("Either a next, ack,", "or fail command"),
    "Spouts and Bolts: log": ('A "log" will log', "in the worker log"),
    "Spouts: an emit": ("The results of your spout", "a sequence of emits and logs"),
    "Spouts: id": ("The id for the tuple.", "be a string or a number"),
    "Spouts: sleep": ("if you have no tuples", "a small amount of time before syncing"),
    "Spouts: sync": ('a "sync" command ends', "the sequence of emits and logs"),
    "Spouts: task": ("If doing an emit direct,", "the task to send the tuple to"),
    "Spouts: task ids": ("you will immediately receive", "on STDIN as a JSON array"),
    "Bolts": ("The shell bolt protocol", "is asynchronous"),
    "Bolts: a tuple": ("A tuple!", "a JSON encoded structure"),
    "Bolts: ack": ("An ack, fail, emit,", "or log"),
    "Bolts: anchors": ("The ids of the tuples", "should be anchored to"),
    "Bolts: at any time": ("You will receive tuples on STDIN", "at any time by writing to STDOUT"),
    "Bolts: emits": ("An ack, fail, emit,", "or log"),
    "Bolts: fail": ("An ack, fail, emit,", "or log"),
    "Bolts: log": ('A "log" will log', "in the worker log"),
    "Bolts: task": ("If doing an emit direct,", "the task to send the tuple to"),
    "Bolts: task ids": ("You will receive the task id lists", "as their corresponding emits"),
    "Bolts: the id is a string": ("The tuple's id - this is a string", "lacking 64-bit precision"),
    "Handling Heartbeats": ("Any libraries for interfacing", "actions regarding hearbeats"),
    "Handling Heartbeats: Bolt": ("When subprocess receives heartbeat tuple", "a sync command back to ShellBolt"),
}


def parts(path: str, source: str) -> list[tuple[str, str | None]]:
    """Return the parts of a case's source, each with its link or None.

    Args:
        path: The case's path.
        source: Its source in words.
    """
    found: list[tuple[str, str | None]] = []
    section = path.rpartition("/")[0]
    for text in source.split("; "):
        link = None
        if text.startswith(PAGE):
            place = text.removeprefix(PAGE).strip(",: ")
            sentence = SENTENCES.get(f"{section} {place}", SENTENCES.get(place))
            link = PROTOCOL if sentence is None else f"{PROTOCOL}#:~:text={','.join(map(_fragment, sentence))}"
        elif text.startswith("RFC 8259"):
            number = text.partition("section ")[2]
            link = f"{_RFC}#section-{number}" if number else _RFC
        found.append((text, link))
    return found


def _fragment(text: str) -> str:
    return quote(text, safe="").replace("-", "%2D")  # a hyphen alone has a meaning there
