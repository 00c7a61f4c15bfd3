"""Components whose fault shows late or seldom: `python soaked.py NAME`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "conformance"))

import plain

LATE = 150  # tuples


class AcksTwiceLateBolt(plain.Bolt):
    """Acks one of its tuples twice, when it has had many."""

    done = 0

    def finish(self, command, name):
        super().finish(command, name)
        self.done += 1
        if self.done == LATE:
            self.send({"command": command, "id": self.this["id"]})


class WritesAstralLettersWrongBolt(plain.Bolt):
    """Writes a question mark for letters that UTF-16 needs two units for."""

    def write(self, data):
        text = data.decode("utf-8")
        super().write("".join("?" if letter > "\uffff" else letter for letter in text).encode())


class ForgetsAnIdSpout(plain.Spout):
    """Gives another id to user code for every fifth ack."""

    acks = 0

    def obey(self, message):
        if message["command"] == "ack":
            self.acks += 1
            if self.acks % 5 == 0:
                message = {**message, "id": "another"}
        super().obey(message)


if __name__ == "__main__":
    globals()[sys.argv[1]]().run()
