"""Correct components of unusual habits: `python legal.py NAME`."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "conformance"))

import plain

SLOW = 1.5  # seconds


class NullsInsteadOfNothing:
    """Each key is there, and null without a value."""

    def send(self, message):
        if message.get("command") == "emit":
            message = {"stream": None, "task": None, "anchors": None, "id": None, **message}
        super().send(message)


class NullsBolt(NullsInsteadOfNothing, plain.Bolt):
    pass


class NullsSpout(NullsInsteadOfNothing, plain.Spout):
    pass


class SignsOfLifeBolt(plain.Bolt):
    """Syncs twice a second whether a heartbeat came or not, and is slow with ticks."""

    def shake_hands(self):
        super().shake_hands()
        self.lock = threading.Lock()
        threading.Thread(target=self.beat, daemon=True).start()

    def write(self, data):
        if hasattr(self, "lock"):
            with self.lock:
                super().write(data)
        else:
            super().write(data)

    def beat(self):
        while True:
            time.sleep(0.5)
            self.send({"command": "sync"})

    def process(self, tup):
        if tup["stream"] == "__tick":
            time.sleep(SLOW / 2)
        super().process(tup)


class SignsOfLifeAloneBolt(SignsOfLifeBolt):
    """Its timer is all the answer that heartbeats get."""

    def handle(self, message):
        if message.get("stream") != "__heartbeat":
            super().handle(message)


class InASessionOfItsOwnBolt(plain.Bolt):
    """Started by a program that waits for it."""

    def run(self):
        if os.fork():
            os.wait()
        else:
            os.setsid()
            super().run()


class AllElseIsATupleBolt(plain.Bolt):
    """A bolt that takes all messages but heartbeats and task ids for tuples, which is right for Storm's messages."""

    def handle(self, message):
        super().handle({"stream": "default", "tuple": [], **message})


class SyncsToAnythingSpout(plain.Spout):
    """Whatever comes is answered by a sync."""

    def obey(self, message):
        super().obey({"command": "unknown", **message})


class KnowsWhatItEmittedSpout(plain.Spout):
    """An ack or fail of what it has not under way is a KeyError."""

    def shake_hands(self):
        super().shake_hands()
        self.pending = {}

    def emit(self, values, options, message):
        if "id" in message:
            self.pending[message["id"]] = values
        super().emit(values, options, message)

    def obey(self, message):
        if message["command"] in ("ack", "fail"):
            del self.pending[message["id"]]
        super().obey(message)


class SlowBehindAHeartbeatBolt(plain.Bolt):
    """Slow to start; answers heartbeats at once, and works on tuples when it gets to it."""

    def shake_hands(self):
        time.sleep(SLOW)
        super().shake_hands()

    def process(self, tup):
        late = self.read_message()
        self.handle(late) if isinstance(late, dict) else self.take_ids(late)
        time.sleep(SLOW)
        super().process(tup)


class AnswersBehindTheAckBolt(plain.Bolt):
    """Acks first, and logs what it knows then."""

    def do_contract(self):
        self.do_ack()
        time.sleep(SLOW)
        self.send({"command": "emit", "tuple": [["conformance", 1, self.knows]], "anchors": []})


class AnswersLateBolt(SignsOfLifeBolt):
    """Answers heartbeats at once, and the question long behind them."""

    def shake_hands(self):
        super().shake_hands()
        self.messages = queue.Queue()
        threading.Thread(target=self.read_all, daemon=True).start()

    def read_all(self):
        while True:
            message = super().read_message()
            if isinstance(message, dict) and message.get("stream") == "__heartbeat":
                self.send({"command": "sync"})
            else:
                self.messages.put(message)

    def read_message(self):
        return self.messages.get() if hasattr(self, "messages") else super().read_message()

    def do_contract(self):
        time.sleep(4 * SLOW)
        super().do_contract()


class ThreadsBolt(SignsOfLifeBolt):
    """A bolt without the contract, with a thread for each tuple, which takes a while."""

    times = 1

    def beat(self):
        pass

    def process(self, tup):
        threading.Thread(target=self.work, args=(tup,), daemon=True).start()

    def work(self, tup):
        time.sleep(SLOW / 3)
        self.send({"command": "emit", "tuple": tup["tuple"], "anchors": [tup["id"]]})
        self.write(b'{"command": "ack", "id": "%s"}\nend\n' % tup["id"].encode() * self.times)


class ThreadsThatAckTwiceBolt(ThreadsBolt):
    times = 2


class ItsFileComesLaterBolt(plain.Bolt):
    """Sends its pid, and makes the file a moment later, which is no MUST."""

    def shake_hands(self):
        setup = self.read_message()
        self.conf, self.context = setup["conf"], setup["context"]
        self.send({"pid": os.getpid()})
        path = Path(setup["pidDir"], str(os.getpid()))
        threading.Timer(SLOW / 3, path.touch).start()


class NeedsLongForALongScriptSpout(plain.Spout):
    """Takes a handshake of a megabyte for ever, which is no slow start of what has a short one."""

    def read_message(self):
        message = super().read_message()
        if len(str(message)) > 1_000_000:
            time.sleep(3600)
        return message


class LogsAllItSaysSpout(plain.Spout):
    """Logs what it writes, before and after it, as a library at its most talkative level does."""

    def send(self, message):
        if message.get("command") in ("emit", "error"):
            super().send({"command": "log", "msg": "about to write", "level": 0})
            super().send(message)
            super().send({"command": "log", "msg": "written", "level": 0})
        else:
            super().send(message)


class RemovesItsFileBolt(plain.Bolt):
    """Removes its pid file, and continues, or ends, which takes it until its input is closed."""

    def do_forgets(self):
        os.unlink(os.path.join(self.folder, str(os.getpid())))

    def do_ends(self):
        self.do_forgets()
        while os.read(0, 65536):
            pass
        os._exit(0)

    def read_message(self):
        message = super().read_message()
        if "pidDir" in message:
            self.folder = message["pidDir"]
        return message


class PassesOverWhatItCantReadBolt(plain.Bolt):
    """Its JSON has no NaN: it passes over such a message, which is no MUST."""

    def read_message(self):
        lines = []
        for line in sys.stdin.buffer:
            lines.append(line)
            if line == b"end\n":
                try:
                    return json.loads(b"".join(lines[:-1]), parse_constant=self.refuse)
                except ValueError:
                    lines = []
        sys.exit(0)

    def refuse(self, name):
        raise ValueError(name)


class CantReadHalfLettersSpout(plain.Spout):
    """Its JSON has no half of a surrogate pair, also not in the conf."""

    def read_message(self):
        message = super().read_message()
        json.dumps(message, ensure_ascii=False).encode()
        return message


class NumbersAreTextsBolt(plain.Bolt):
    """Not legal, but it keeps the contract otherwise, and is no other version of it."""

    def send(self, message):
        if "tuple" in message:
            message = {**message, "tuple": texts(message["tuple"])}
        super().send(message)


def texts(value):
    return list(map(texts, value)) if isinstance(value, list) else str(value)


class ComplainsAtItsEndSpout(plain.Spout):
    """Not legal, but nothing else is wrong with it: it writes text of its own when its input has ended."""

    def read_message(self):
        try:
            return super().read_message()
        except SystemExit:
            self.write(b"the worker has ended\nend\n")
            raise


class EndsBehindAnExceptionSpout(plain.Spout):
    """Reports what user code raised, sends the sync, and ends, as pystorm does."""

    def do_throw(self, text):
        self.send({"command": "error", "msg": text})
        self.send({"command": "sync"})
        sys.exit(1)


class LateOnceBolt(plain.Bolt):
    """Takes more than a second for each answer, which is within its limit."""

    def handle(self, message):
        time.sleep(1.3)
        super().handle(message)


class HangsOnceBolt(plain.Bolt):
    """The first process that is given a tuple hangs, as on a machine that is too busy."""

    def process(self, tup):
        try:
            os.mkdir(os.path.join(sys.argv[2], "hung"))
        except FileExistsError:
            self.send({"command": "emit", "tuple": tup["tuple"], "anchors": [tup["id"]], "need_task_ids": False})
            self.send({"command": "ack", "id": tup["id"]})
        else:
            time.sleep(3600)


if __name__ == "__main__":
    globals()[sys.argv[1]]().run()
