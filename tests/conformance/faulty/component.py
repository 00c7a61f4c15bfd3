"""A component with a switch for each fault: `python component.py PROGRAM FAULT`.

PROGRAM is "contract-bolt", "contract-spout", "ordinary-bolt" or "ordinary-spout"; FAULT is a name in ``faults.py``, or "none".
It was written from the protocol's page and the contract in docs/conformance.md, with Python alone.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unicodedata

PROGRAM, FAULT = sys.argv[1:3]
STYLE, KIND = PROGRAM.split("-")
PLAIN_TASK = 2**32
HELD_BACK = bytearray()  # what a program writes that never flushes, up to its end
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def has(*names):
    return FAULT in names


def altered(value):
    """Return a value as a careless copy leaves it."""
    if has("texts_are_normalised") and isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if has("long_integers_are_doubles") and type(value) is int and abs(value) > 10**11:
        return float(value)
    if has("dates_are_read") and isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value):
        return value.replace("Z", ".000Z")
    if has("all_numbers_are_texts") and type(value) in (int, float):
        return str(value)
    if has("texts_are_trimmed") and isinstance(value, str):
        return value.strip(" ")
    if has("line_ends_are_unified") and isinstance(value, str):
        return value.replace("\r\n", "\n")
    if has("blanks_are_joined") and isinstance(value, str):
        return re.sub("  +", " ", value)
    if has("what_is_false_is_null") and not value and not isinstance(value, dict | list):
        return None
    if has("number_texts_are_numbers") and isinstance(value, str) and value.isdigit():
        return int(value)
    if has("maps_are_texts") and isinstance(value, dict):
        return str(value)
    if isinstance(value, list):
        return [altered(each) for each in value]
    if isinstance(value, dict):
        if has("loses_keys_of_the_language"):
            value = {key: each for key, each in value.items() if not key.startswith("__")}
        if has("nulls_are_left_out"):
            value = {key: each for key, each in value.items() if each is not None}
        if has("keys_in_small_letters"):
            value = {key.lower(): each for key, each in value.items()}
        return {key: altered(each) for key, each in value.items()}
    return value


class Input:
    def __init__(self):
        self.held = b""

    def read(self):
        if has("reads_before_it_looks") and self.held:
            self.held += os.read(0, 65536) or self.ended()
        while True:
            at = self.held.find(b"\nend\n")
            if at >= 0:
                body, self.held = self.held[:at], self.held[at + 5 :]
                if has("drops_what_a_read_has_more"):
                    self.held = b""
                return self.parse(body)
            data = os.read(0, 65536)
            if not data:
                self.ended()
            if has("expects_a_message_in_a_read") and not (data.endswith(b"\nend\n")):
                sys.exit("half a message")
            if has("splits_letters"):
                data = data.decode("utf-8", "replace").encode()
            self.held += data
            if has("small_buffer") and len(self.held) > 60_000 and b"\nend\n" not in self.held:
                sys.exit("the message is too long")

    def ended(self):
        os.write(1, HELD_BACK)
        if has("outlives_its_input"):
            while True:
                time.sleep(60)
        if has("spins_at_its_end"):
            while True:
                pass
        if has("ends_with_status_1"):
            os._exit(1)
        os._exit(0)

    def parse(self, body):
        if has("one_line_a_message") and b"\n" in body:
            sys.exit("more than a line")
        if has("wants_no_blanks") and b'": ' in body:
            sys.exit("a blank")
        text = body.decode(
            "latin-1" if has("reads_latin1") else "utf-8", "ignore" if has("drops_letters") else "strict"
        )
        if has("drops_letters"):
            text = text.encode("ascii", "ignore").decode()
        if has("dies_of_escapes") and "\\u" in text:
            sys.exit("an escape")
        if has("no_other_letters"):
            text.encode("ascii")
        if has("splits_lines_anywhere") and any(line == "end" for line in text.splitlines()):
            sys.exit("an empty message")
        if has("ends_at_end_anywhere") and '"end"' in text:
            sys.exit("half a message")
        value = json.loads(text)
        if has("numbers_are_doubles"):
            value = json.loads(text, parse_int=lambda digits: int(float(digits)))
        if has("numbers_are_texts") and "pidDir" not in value:
            value = json.loads(text, parse_float=str)
        if has("nulls_are_empty") and isinstance(value, dict) and "tuple" in value:
            value["tuple"] = json.loads(json.dumps(value["tuple"]).replace("null", '""'))
        if has("refuses_unknown_keys") and isinstance(value, dict):
            known = {"conf", "context", "pidDir", "id", "comp", "stream", "task", "tuple", "command"}
            if "pidDir" not in value and set(value) - known:
                sys.exit("an unknown key")
        if has("wants_the_usual_order") and isinstance(value, dict):
            keys = list(value)
            if "tuple" in keys and "comp" in keys and keys.index("tuple") < keys.index("comp"):
                sys.exit("another order")
            if "command" in keys and "id" in keys and keys.index("command") < keys.index("id"):
                sys.exit("another order")
        return value


class Component:
    knows = ["emit", "ids", "direct", "log", "error", "metric", "conf", "context", "print", "throw", "sleep"]

    def __init__(self):
        self.input = Input()
        self.lock = threading.Lock()
        self.queue = []
        self.due = []
        self.inputs = 0

    # ---- output ----

    def write(self, data):
        if has("holds_output_back"):
            HELD_BACK.extend(data)
            return
        if has("cuts_messages") and len(data) > 65536:
            data = data[:65531] + b"\nend\n"
        if has("crlf"):
            data = data.replace(b"\n", b"\r\n")
        if has("blank_behind_end") and self.inputs:
            data = data.replace(b"\nend\n", b"\nend \n")
        if has("no_line_feed_behind_end"):
            data = data.replace(b"\nend\n", b"\nend")
        if has("no_end"):
            data = data.replace(b"\nend\n", b"\n")
        if has("end_in_capitals"):
            data = data.replace(b"\nend\n", b"\nEND\n")
        if has("byte_order_mark"):
            data = b"\xef\xbb\xbf" + data
        if has("empty_lines"):
            data = b"\n" + data
        while data:
            data = data[os.write(1, data) :]

    def send(self, **message):
        if has("raw_control") and message.get("command") in ("emit", "sync"):
            message["note"] = "a@b"
        if has("nested_deep") and message.get("command") in ("ack", "sync"):
            message["more"] = json.loads("[" * 450 + "]" * 450)
        if has("python_literals") and self.inputs:
            data = repr(message).encode()
        elif has("writes_latin1"):
            text = json.dumps(message, ensure_ascii=False)
            data = text.encode("latin-1" if max(text) <= "\xff" else "utf-8", "replace")
        elif has("writes_ascii"):
            data = json.dumps(message, ensure_ascii=False).encode("ascii", "replace")
        elif has("refused_emit_shifts"):
            data = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
        else:
            data = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace").replace(b"\x7f", b"\\u007f")
        if has("raw_control"):
            data = data.replace(b"a@b", b"a\tb")
        if has("key_twice") and message.get("command") in ("ack", "sync"):
            data = data.replace(b"{", b'{"command": "x", ', 1)
        if has("command_is_op") and "command" in message:
            data = data.replace(b'"command"', b'"op"', 1)
        with self.lock:
            if has("second_object_in_a_message") and message.get("command") in ("ack", "sync"):
                self.write(b'{"command": "log", "msg": "next"}\n')
            self.write(data + b"\nend\n")

    # ---- handshake ----

    def shake_hands(self):
        if has("banner"):
            self.write(b"MyComponent 2.0\n")
        setup = self.input.read()
        if has("wants_pid_dir_first") and next(iter(setup)) != "pidDir":
            sys.exit("no pidDir")
        if has("small_conf") and len(setup["conf"]) > 250:
            sys.exit("the conf is too large")
        if has("strict_setup") and set(setup) != {"pidDir", "conf", "context"}:
            sys.exit("not the setup")
        self.conf, self.context = setup["conf"], setup["context"]
        if has("conf_in_small_letters"):
            self.conf = {key.lower(): value for key, value in self.conf.items()}
        if has("conf_as_texts"):
            self.conf = {key: str(value) if key.startswith("a.") else value for key, value in self.conf.items()}
        if has("context_renamed"):
            self.context = {
                **self.context,
                "task->component": {"t" + k: v for k, v in self.context["task->component"].items()},
            }
        tasks = self.context["task->component"]
        if has("wants_component_id"):
            self.context["componentid"]
        if has("small_tasks"):
            [1, 2, 3][0] if self.context["taskid"] < 100_000 else sys.exit("no such task")
        if has("no_system_tasks") and any(int(task) < 0 for task in tasks):
            sys.exit("no such task")
        if has("few_tasks") and len(tasks) > 1000:
            sys.exit("too many tasks")
        if has("wants_an_output") and not self.context.get("streams", ["default"]):
            sys.exit("no output")
        if has("grouping_has_fields"):
            for targets in self.context.get("stream->target->grouping", {}).values():
                for grouping in targets.values():
                    grouping.get("fields", [1])[0]
        pid = os.getppid() if has("pid_of_the_parent") else os.getpid()
        name = {"pid_file_suffix": f"{pid}.pid", "pid_file_of_0": "0"}.get(FAULT, str(pid))
        self.file = os.path.join(setup["pidDir"], name)
        if has("ascii_pid_dir"):
            self.file.encode("ascii")
        if not has("no_pid_file"):
            with open(self.file, "w") as file:
                file.write("1" if has("pid_file_has_text") else "")
        if has("another_file_in_pid_dir"):
            open(os.path.join(setup["pidDir"], "component.log"), "w").close()
        if has("log_before_the_pid"):
            self.send(command="log", msg="starting")
        if has("no_pid"):
            self.send(ready=True)
        elif has("pid_as_text"):
            self.send(pid=str(pid))
        elif has("pid_in_an_array"):
            self.send(pid=[pid])
        else:
            self.send(pid=pid)
        if has("pid_twice"):
            self.send(pid=pid)
        if has("helper_at_start"):
            subprocess.Popen(["sleep", "900"], start_new_session=True, **QUIET)
        if has("helper_in_its_group"):
            subprocess.Popen(["sleep", "900"], **QUIET)
        if has("timer_tears"):
            threading.Thread(target=self.tear, daemon=True).start()

    def tear(self):
        while True:
            time.sleep(0.4)
            self.write(b'{"command": "sync"}\nend\n')

    # ---- every input ----

    def begin_input(self):
        self.inputs += 1
        if has("prints"):
            self.write(b"working\n")
        if has("prints_a_number"):
            self.write(b"42\nend\n")
        if has("empty_message"):
            self.write(b"end\n")
        if has("array_message"):
            self.write(b'["working"]\nend\n')
        if has("prints_garbage"):
            self.write(b"working\nend\n")
        if has("log_is_an_object"):
            self.send(command="log", msg={"text": "working"})
        if has("log_is_a_number"):
            self.send(command="log", msg=self.inputs)
        if has("log_without_text"):
            self.send(command="log")
        if has("level_in_words"):
            self.send(command="log", msg="working", level="info")
        if has("error_is_an_object"):
            self.send(command="error", msg={"text": "working"})
        if has("error_without_text"):
            self.send(command="error")
        if has("metric_without_name"):
            self.send(command="metrics", name="", params=1)
        if has("no_command"):
            self.send(working=True)
        if has("command_is_a_number"):
            self.send(command=7)
        if has("unknown_command"):
            self.send(command="progress", msg="working")
        if has("pid_file_goes") and os.path.exists(self.file):
            os.unlink(self.file)
        if has("pid_file_goes_later") and self.inputs == 3:
            os.unlink(self.file)
        if has("silent_after_3000") and self.inputs > 3000:
            time.sleep(3600)
        if has("dies_after_2000") and self.inputs > 2000:
            os._exit(1)
        if has("helper_at_work") and self.inputs == 2:
            subprocess.Popen(["sleep", "900"], start_new_session=True, **QUIET)
        if has("breaks_off") and self.inputs == 4:
            self.write(b'{"command": "lo')
            os._exit(0)

    # ---- task ids ----

    def take_ids(self, ids):
        if has("dies_of_task_ids"):
            sys.exit("an array")
        if has("hangs_at_task_ids"):
            time.sleep(3600)
        if has("syncs_to_task_ids"):
            self.send(command="sync")
        if has("reads_ids_of_reliable_emits") and not self.due:
            sys.exit("no command")
        if has("wants_a_task") and not ids:
            return
        if self.due:
            slot = self.due.pop(-1 if has("last_ids_first") else 0)
            slot.append(ids[:1] if has("one_task_id") else ids)

    def await_ids(self, slot):
        while not slot:
            message = self.input.read()
            if isinstance(message, list):
                self.take_ids(message)
            else:
                self.meanwhile(message)
        return slot[0]

    def next_input(self):
        while True:
            message = self.queue.pop(0) if self.queue else self.input.read()
            if not isinstance(message, list):
                return message
            self.take_ids(message)

    def put(self, values, options, **message):
        if has("doubles_of_6_digits"):
            values = [float(f"{each:.6g}") if isinstance(each, float) else each for each in values]
        if has("drops_empty_texts"):
            values = [each for each in values if each != ""]
        if "stream" in options and not has("one_stream"):
            message["stream"] = options["stream"]
        if has("empty_stream") and "stream" not in options:
            message["stream"] = ""
        if has("stream_is_a_number"):
            message["stream"] = 1
        if has("another_stream"):
            message["stream"] = "mine"
        if "task" in options:
            message["task"] = options["task"] + PLAIN_TASK
            if has("task_as_text"):
                message["task"] = str(options["task"])
            if has("small_task"):
                message["task"] = options["task"]
            if has("another_task"):
                message["task"] = PLAIN_TASK + 17 - options["task"]
            if has("no_task"):
                del message["task"]
        elif has("task_that_is_not_there") and not options.get("ids"):
            message["task"] = -1
        ids = options.get("ids")
        waits = ids or (has("waits_for_ids_it_declined") and "task" not in options)
        if has("waits_for_every_20th_it_declined") and "task" not in options and not ids:
            self.declined = getattr(self, "declined", 0) + 1
            waits = self.declined % 20 == 0
        waits = waits or (has("waits_for_ids_of_direct_emits") and "task" in options)
        waits = waits or (has("reads_ids_of_reliable_emits") and "id" in message)
        slot = []
        if waits and not has("no_ids_for_emits"):
            self.due.append(slot)
        if not ids and "task" not in options and (STYLE == "contract" or has("waits_for_ids_it_declined")):
            message["need_task_ids"] = False
        if has("asks_and_forgets", "last_ids_first") and message.pop("need_task_ids", None) is False:
            self.due.append([])
        if has("need_is_text") and "need_task_ids" in message:
            message["need_task_ids"] = "false"
        if has("tuple_is_text"):
            values = str(values)
        if has("tuple_is_an_object"):
            values = dict(enumerate(values))
        if has("tuple_is_null"):
            values = None
        if has("one_value_more"):
            values = [*values, None]
        if has("nan") and values:
            values = [float("nan"), *values[1:]]
        if has("cuts_texts"):
            values = [value[:70_000] if isinstance(value, str) else value for value in values]
        if has("booleans_are_numbers"):
            values = [[int(x) if isinstance(x, bool) else x for x in v] if isinstance(v, list) else v for v in values]
        values = altered(values)
        if has("equal_emits_are_one"):
            seen, self.last_emit = getattr(self, "last_emit", None), json.dumps(values)
            if seen == self.last_emit:
                return
        message = {"command": "emit", "tuple": values, **message}
        if has("emit_without_values"):
            del message["tuple"]
        self.send(**message)
        if has("emits_twice"):
            self.send(**{**message, "need_task_ids": False})
        if waits:
            got = self.await_ids(slot)
            if ids:
                self.put([["ids", got]], {}, **self.of_ids())

    def of_ids(self):
        return {}

    # ---- steps ----

    def step(self, step):
        getattr(self, "do_" + step[0])(*step[1:])

    def do_contract(self):
        self.step(["emit", [["conformance", 1, self.knows]]])

    def do_conf(self, key):
        self.step(["emit", [self.conf.get(key)]])

    def do_context(self, key):
        self.step(["emit", [self.context.get(key)]])

    def do_log(self, text, level=2):
        if has("logs_a_line"):
            text = text.split("\n")[0]
        if has("short_logs"):
            text = text[:10_000]
        if has("logs_are_formats"):
            text = text.replace("%%", "%").replace("%s", "None").replace("%d", "0")
        if has("no_empty_logs") and not text:
            self.send(command="log", level=level)
            return
        self.send(command="log", msg=text, level=2 if has("one_level") else level)

    def do_error(self, text):
        self.send(command="error", msg=text.split("\n")[0] if has("errors_are_a_line") else text)
        if has("dies_of_an_error"):
            os._exit(1)

    def do_metric(self, name, params):
        self.send(command="metrics", name=name, params=str(params) if has("metrics_are_texts") else params)

    def do_print(self, text):
        if has("prints_to_stdout"):
            self.write(text.encode() + b"\n")
        print(text, file=sys.stderr)

    def do_throw(self, text):
        raise RuntimeError(text)

    def do_sleep(self, seconds):
        time.sleep(seconds)


class Bolt(Component):
    knows = [*Component.knows, "ack", "fail", "keep", "tuple"]

    def run(self):
        self.kept, self.previous, self.beats, self.tuples = {}, None, 0, 0
        self.held_emits = []
        self.seen = None
        self.this = None
        self.quiet_until = 0
        self.shake_hands()
        if has("torn_by_heartbeats"):
            self.beside()
        while True:
            self.handle(self.next_input())

    def beside(self):
        """Read in a thread, which answers heartbeats without a lock."""
        read, there, came = self.input.read, threading.Semaphore(0), []

        def reader():
            while True:
                message = read()
                if isinstance(message, dict) and message["stream"] == "__heartbeat":
                    self.write(b'{"command": "sync"}\nend\n')
                else:
                    came.append(message)
                    there.release()

        def next_one():
            there.acquire()
            return came.pop(0)

        self.input.read = next_one
        threading.Thread(target=reader, daemon=True).start()

    def handle(self, message):
        stream = message["stream"]
        if has("heartbeats_have_a_component") and stream == "__heartbeat" and not message["comp"]:
            return self.tuple_came(message)
        if has("heartbeats_have_no_component") and stream == "__heartbeat" and message["comp"]:
            return None
        if has("negative_tasks_are_heartbeats") and message["task"] == -1:
            return self.send(command="sync")
        if stream == "__heartbeat":
            return self.heartbeat(message)
        self.begin_input()
        if stream == "__tick":
            return self.tick(message)
        return self.tuple_came(message)

    def heartbeat(self, message):
        self.beats += 1
        if has("no_sync") or (has("every_other_heartbeat") and self.beats % 2 == 0):
            return
        if has("few_heartbeats") and self.beats > 60:
            return
        if has("one_sync_a_second"):
            if time.monotonic() < self.quiet_until:
                return
            self.quiet_until = time.monotonic() + 1
        if has("no_sync_behind_a_tuple") and self.tuples:
            return
        if has("no_sync_with_a_tuple_in_hand") and self.kept:
            return
        self.send(command="sync")
        if has("acks_heartbeats"):
            self.send(command="ack", id=message["id"])
        if has("two_syncs"):
            self.send(command="sync")
        if has("logs_heartbeats"):
            self.send(command="log", msg="alive")

    def tick(self, tup):
        if has("dies_of_a_tick"):
            tup["tuple"][0].split()
        if has("hangs_at_a_tick"):
            time.sleep(3600)
        if has("never_acks_a_tick"):
            return
        if has("acks_a_tick_twice"):
            self.send(command="ack", id=tup["id"])
        self.send(command="ack", id=tup["id"])

    def tuple_came(self, tup):
        self.tuples += 1
        if has("ids_are_doubles") and tup["id"].lstrip("-").isdigit():
            tup["id"] = str(int(float(tup["id"])))
        self.this, self.open = tup, True
        if has("dies_of_a_tuple"):
            os._exit(3)
        if has("hangs_at_a_tuple"):
            time.sleep(3600)
        if has("dies_of_the_30th_tuple") and self.tuples == 30:
            os._exit(3)
        if has("loses_the_7th_tuple") and self.tuples == 7:
            return
        if has("acks_first"):
            self.finish("ack", "this")
            self.open = True
        self.work(tup)
        if has("acks_first"):
            self.open = False
        if self.open:
            self.finish("ack", "this")
        self.previous = tup

    def work(self, tup):
        if STYLE == "ordinary":
            for word in tup["tuple"][0].split():
                self.do_emit([word])
            return
        steps = tup["tuple"][0] if tup["tuple"] else []
        if has("equal_tuples_are_one") and steps:
            seen = json.dumps(steps)
            if seen == self.seen:
                return
            self.seen = seen
        try:
            for step in steps if isinstance(steps, list) else []:
                self.step(step)
        except Exception as error:  # noqa: BLE001 - any exception of a step fails its tuple
            if has("swallows_exceptions"):
                self.open = False
                return
            self.send(command="error", msg=repr(error))
            if has("acks_what_threw"):
                return
            if self.open or has("fails_what_it_acked"):
                self.open = True
                self.finish("fail", "this")

    def of_ids(self):
        return {"anchors": [self.this["id"]]}

    def meanwhile(self, message):
        if message["stream"] == "__heartbeat":
            if not has("loses_heartbeats_while_waiting"):
                self.heartbeat(message)
        elif has("works_within_a_wait"):
            this, is_open = self.this, self.open
            self.handle(message)
            self.this, self.open = this, is_open
        elif len(self.queue) >= {
            "loses_tuples_while_waiting": 0,
            "keeps_60_while_waiting": 60,
            "keeps_140_while_waiting": 140,
        }.get(FAULT, 10**9):
            pass  # it is lost
        elif has("last_first_while_waiting"):
            self.queue.insert(0, message)
        else:
            self.queue.append(message)

    def do_emit(self, values, options=None):
        options = options or {}
        names = options.get("anchors", ["this"])
        tuples = [self.this if name == "this" else self.kept[name] for name in names]
        anchors = [tup["id"] for tup in tuples]
        if has("no_anchors"):
            anchors = []
        if has("always_anchors"):
            anchors = anchors or [self.this["id"]]
        if has("no_anchors_on_streams") and "stream" in options and "task" not in options:
            anchors = []
        if has("one_anchor"):
            anchors = anchors[:1]
        if has("anchors_of_the_previous") and self.previous:
            anchors = [self.previous["id"]]
        if has("anchors_are_numbers"):
            anchors = [int(anchor) for anchor in anchors]
        if has("anchor_without_a_list") and len(anchors) == 1:
            anchors = anchors[0]
        if has("anchor_twice"):
            anchors = anchors * 2
        if has("anchors_are_indexes"):
            anchors = [str(number) for number in range(len(anchors))]
        if has("anchors_are_tuples"):
            anchors = [{"id": anchor} for anchor in anchors]
        self.put(values, options, anchors=anchors)

    def finish(self, word, name):
        tup = self.this if name == "this" else self.kept.pop(name)
        if name == "this":
            self.open = False
        id = tup["id"]
        if has("acks_are_fails"):
            word = "fail"
        if has("fails_are_acks"):
            word = "ack"
        if has("never_acks"):
            return
        if has("acks_numbers"):
            id = int(id)
        if has("acks_the_newest") and self.queue:
            id = self.queue[-1]["id"]
        if has("acks_without_id"):
            self.send(command=word)
            return
        self.send(command=word, id=id)
        if has("acks_twice"):
            self.send(command=word, id=id)
        if has("acks_and_fails"):
            self.send(command="fail", id=id)
        if has("acks_the_unknown"):
            self.send(command="ack", id="17")
        if has("emits_behind_the_ack"):
            self.put(["late"], {}, anchors=[id])

    def do_ack(self, name="this"):
        self.finish("ack", name)

    def do_fail(self, name="this"):
        self.finish("fail", name)

    def do_keep(self, name):
        if has("keeps_the_last_50") and len(self.kept) == 50:
            del self.kept[next(iter(self.kept))]
        self.kept[name] = self.this
        self.open = has("acks_what_is_kept")

    def do_tuple(self):
        tup = self.this
        comp = None if has("no_component") else tup["comp"]
        stream = "default" if has("every_stream_is_default") else tup["stream"]
        self.step(["emit", [[tup["id"], comp, stream, tup["task"], tup["tuple"][1:]]]])


class Spout(Component):
    knows = [*Component.knows, "heard"]

    def run(self):
        self.pending, self.number, self.active, self.acks, self.nexts = {}, 0, False, 0, 0
        self.shake_hands()
        self.script = self.conf.get("conformance.script", [])
        self.on = self.conf.get("conformance.on", {})
        while True:
            self.obey(self.next_input())

    def meanwhile(self, message):
        if has("keeps_acks_while_waiting"):
            self.queue.append(message)
        elif has("loses_acks_while_waiting") and message["command"] != "next":
            self.sync()
        else:
            self.obey(message)

    def sync(self):
        self.send(command="sync")

    def obey(self, message):
        command = message["command"]
        if has("acks_are_fails") and command == "ack":
            command = "fail"
        if has("acks_with_numbers_as_texts") and "id" in message:
            message["id"] = str(message["id"])
        self.begin_input()
        if command == "next":
            self.nexts += 1
        if command in ("activate", "deactivate"):
            self.active = command == "activate"
        if has("hears_nothing_while_inactive") and not self.active and command in ("ack", "fail"):
            self.sync()
            return
        if has("begins_anew_when_activated") and command == "activate":
            self.script = list(self.conf.get("conformance.script", []))
        if has("sync_first"):
            self.sync()
        if has("stderr_of_100_KB") or (has("stderr_of_100_KB_on_ack") and command == "ack"):
            os.write(2, b"e" * 100_000)
        if has(f"dies_on_{command}"):
            os._exit(3)
        if has("dies_on_a_third_ack") and command == "ack":
            self.acks += 1
            if self.acks == 3:
                os._exit(3)
        if has("dies_on_the_70th_next") and self.nexts == 70:
            os._exit(3)
        if has("acks_back") and command == "ack":
            self.send(command="ack", id=message["id"])
        self.heard = [command, message.get("id")]
        if STYLE == "contract":
            steps = self.on.get(command, [])
            if command == "next":
                steps = self.script.pop(0) if self.script else [["sleep", 0 if has("never_sleeps") else 0.002]]
            try:
                for step in steps:
                    self.step(step)
            except RuntimeError as error:
                if not has("silent_behind_an_exception"):
                    raise
                self.send(command="error", msg=str(error))
                return
        else:
            getattr(self, "on_" + command)(message.get("id"))
        if has(f"silent_on_{command}") or has("sync_first"):
            return
        if has("silent_while_inactive") and not self.active and command in ("ack", "fail"):
            return
        if has("silent_when_idle") and command == "next" and self.idle:
            return
        self.sync()
        if has("two_syncs") or has(f"two_syncs_on_{command}") or (has("two_syncs_sometimes") and self.inputs % 5 == 0):
            self.sync()
        if has("late_second_sync") and command == "ack":
            time.sleep(0.03)
            self.sync()
        if has("emits_behind_the_sync") and command == "next" and self.nexts % 3 == 0:
            self.send(command="emit", tuple=["late"], need_task_ids=False)
        if has("emits_from_a_timer") and self.nexts == 3 and command == "next":
            threading.Timer(0.05, lambda: self.send(command="emit", tuple=["late"], need_task_ids=False)).start()

    idle = False

    def on_next(self, _id):
        self.idle = self.number >= 60
        if self.idle:
            time.sleep(0 if has("never_sleeps") else 0.002)
            return
        self.number += 1
        if has("reads_ids_of_reliable_emits") and self.number % 3 == 0:
            self.put(["unreliable"], {})
            return
        self.emit_one(f"m{self.number}")

    def emit_one(self, id):
        self.pending[id] = True
        if has("knows_the_last_ten") and len(self.pending) > 10:
            del self.pending[next(iter(self.pending))]
        if has("id_is_an_object"):
            id = {"n": id}
        self.put([f"sentence {id}"], {}, id=id)

    def on_ack(self, id):
        key = id["n"] if isinstance(id, dict) else id
        if has("ack_of_an_integer"):
            key = int(key)
        if has("acks_come_in_order") and key != next(iter(self.pending)):
            sys.exit("another ack is due")
        del self.pending[key]

    def on_fail(self, id):
        key = id["n"] if isinstance(id, dict) else id
        if has("forgets_on_fail"):
            self.pending.clear()
        del self.pending[key]
        self.emit_one(key)

    def on_activate(self, _id):
        pass

    def on_deactivate(self, _id):
        pass

    def do_emit(self, values, options=None):
        options = options or {}
        message = {"id": options["id"]} if "id" in options else {}
        if has("no_ids_that_are_false") and not message.get("id"):
            message = {}
        if has("ids_have_a_prefix") and "id" in message:
            message["id"] = f"id {message['id']}"
        if has("ids_are_texts") and "id" in message:
            message["id"] = str(message["id"])
        if has("ids_are_integers") and isinstance(message.get("id"), float):
            message["id"] = int(message["id"])
        if has("never_reliable") or (has("direct_is_unreliable") and "task" in options):
            message = {}
        if has("other_streams_are_unreliable") and "stream" in options:
            message = {}
        if has("always_reliable"):
            message = {"id": 1, **message}
        self.put(values, options, **message)

    def do_heard(self):
        self.step(["emit", [self.heard]])


if __name__ == "__main__":
    if has("ignores_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if has("writes_much_first"):
        os.write(2, b"e" * 200_000)
    {"bolt": Bolt, "spout": Spout}[KIND]().run()
