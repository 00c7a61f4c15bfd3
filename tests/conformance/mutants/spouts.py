"""Faults of spouts."""

from __future__ import annotations

from .registry import Spout, mutant


@mutant("spout", "spout/direct/2")
class DirectEmitsAreUnreliable(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, {} if "task" in options else message)


@mutant("spout", "spout/commands/1")
class SpoutWithoutSync(Spout):
    def send(self, message):
        if message.get("command") != "sync":
            super().send(message)


@mutant("spout", "spout/sync/2")
class SyncTwice(Spout):
    def send(self, message):
        super().send(message)
        if message.get("command") == "sync":
            super().send(message)


@mutant("spout", "spout/sync/1")
class SyncFirst(Spout):
    def obey(self, message):
        self.early = True
        self.send({"command": "sync"})
        self.early = False
        super().obey(message)

    def send(self, message):
        if message.get("command") != "sync" or self.early:
            super().send(message)


@mutant("spout", "spout/sync/6")
class EmitsAfterTheSync(Spout):
    def obey(self, message):
        super().obey(message)
        if message["command"] == "deactivate":
            self.send({"command": "emit", "tuple": ["late"], "need_task_ids": False})


@mutant("spout", "spout/commands/4")
class DoesNotKnowActivate(Spout):
    def obey(self, message):
        if message["command"] in ("next", "ack", "fail"):
            super().obey(message)


@mutant("spout", "spout/commands/13")
class SpoutThatAcks(Spout):
    def obey(self, message):
        if message["command"] == "ack":
            self.send({"command": "ack", "id": message["id"]})
        super().obey(message)


@mutant("spout", "spout/commands/9")
class MessageIdsAreTexts(Spout):
    def obey(self, message):
        if "id" in message:
            message["id"] = str(message["id"])
        super().obey(message)


@mutant("spout", "spout/commands/10")
class AckIsFail(Spout):
    def obey(self, message):
        if message["command"] == "fail":
            message["command"] = "ack"
        super().obey(message)


@mutant("spout", "spout/emit/1")
class AlwaysReliable(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, {"id": "0", **message})


@mutant("spout", "spout/emit/2")
class NeverReliable(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, {})


@mutant("spout", "spout/emit/3")
class IdsBecomeTexts(Spout):
    def emit(self, values, options, message):
        if "id" in message:
            message["id"] = str(message["id"])
        super().emit(values, options, message)


@mutant("spout", "spout/task_ids/5")
class BlocksForTaskIds(Spout):
    """As storm.py: an ack that comes before the task ids waits for them, and Storm for the ack's sync."""

    def came_meanwhile(self, message):
        self.waiting.append(message)


@mutant("spout", "spout/sync/7")
class NeverSleeps(Spout):
    def do_sleep(self, seconds):
        pass


@mutant("spout", "spout/emit/14")
class NoIdsThatAreFalse(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, message if options.get("id") else {})


@mutant("spout", "spout/emit/14")
class IdsAreWholeNumbers(Spout):
    def emit(self, values, options, message):
        if isinstance(message.get("id"), float):
            message["id"] = int(message["id"])
        super().emit(values, options, message)


@mutant("spout", "spout/emit/16")
class EqualEmitsAreOne(Spout):
    before = None

    def emit(self, values, options, message):
        if values != self.before:
            self.before = values
            super().emit(values, options, message)


@mutant("spout", "spout/direct/7")
class EmitsToATaskThatIsNotThere(Spout):
    def send(self, message):
        if message.get("command") == "emit":
            message["task"] = -1
        super().send(message)


@mutant("spout", "spout/emit/19")
class OtherStreamsAreUnreliable(Spout):
    def emit(self, values, options, message):
        super().emit(values, options, {} if "stream" in options else message)


@mutant("spout", "spout/emit/18")
class IdsStick(Spout):
    last = None

    def emit(self, values, options, message):
        self.last = options.get("id", self.last)
        super().emit(values, options, message if self.last is None else {"id": self.last})


@mutant("spout", "spout/commands/17")
class EmitsTheNextAtAnAck(Spout):
    def obey(self, message):
        if message["command"] == "ack" and self.script:
            message = {"command": "next"}
        super().obey(message)


class NoSyncAtAnException(Spout):
    command = ""

    def obey(self, message):
        try:
            super().obey(message)
        except RuntimeError as error:
            self.send({"command": "error", "msg": str(error)})
            if message["command"] != self.command:
                self.send({"command": "sync"})


@mutant("spout", "spout/commands/18")
class NoSyncAtAnExceptionOfAck(NoSyncAtAnException):
    command = "ack"


@mutant("spout", "spout/commands/19")
class ForgetsItsNextAtAnExceptionOfFail(NoSyncAtAnException):
    def obey(self, message):
        before = len(self.script)
        super().obey(message)
        if message["command"] == "fail" and before:
            self.script.popleft()


@mutant("spout", "spout/commands/20")
class ForgetsItsScriptAtAnActivateThatFails(NoSyncAtAnException):
    def obey(self, message):
        super().obey(message)
        if message["command"] == "activate" and self.on.get("activate"):
            self.script.clear()


@mutant("spout", "spout/commands/21")
class NoSyncAtAnExceptionOfDeactivate(NoSyncAtAnException):
    command = "deactivate"


@mutant("spout", "spout/task_ids/13")
class TakesTaskIdsOfAnyEmit(Spout):
    def send(self, message):
        message.pop("need_task_ids", None)  # so each emit is answered, and what comes is taken for what is awaited
        super().send(message)

    def take_ids(self, ids):
        if self.ids_due:
            super().take_ids(ids)


@mutant("spout", "spout/commands/22")
class LogsNothingOnAnAck(Spout):
    def do_log(self, text, level=2):
        if self.heard[0] != "ack":
            super().do_log(text, level)


@mutant("spout", "spout/commands/23")
class ForgetsWhatIsUnderWayAtAnActivate(Spout):
    under_way = frozenset()

    def obey(self, message):
        if message["command"] == "activate":
            self.under_way = set()
        if message["command"] in ("ack", "fail") and message["id"] not in self.under_way:
            self.send({"command": "sync"})
            return
        super().obey(message)

    def emit(self, values, options, message):
        self.under_way.add(message.get("id"))
        super().emit(values, options, message)


@mutant("spout", "spout/emit/19")
class LeavesOutEmptyEmits(Spout):
    def emit(self, values, options, message):
        if values:
            super().emit(values, options, message)
