"""Text that user code writes to standard output and error is logged, and can't break the protocol."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.soak import combined

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

ABUSE = {
    "print": 'print("stray")',
    "print without a newline": 'print("stray", end="")',
    "sys.stdout.write": 'sys.stdout.write("stray\\n")',
    "sys.__stdout__": 'print("stray", file=sys.__stdout__)',
    "os.write": 'os.write(1, b"stray\\n")',
    "os.write of a message": """os.write(1, b'{"command":"ack","id":"stray"}\\nend\\n')""",
    "end alone": 'os.write(1, b"end\\nstray\\n")',
    "C's printf": 'import ctypes; c = ctypes.CDLL(None); c.printf(b"stray\\n"); c.fflush(None)',
    "C's write": 'import ctypes; ctypes.CDLL(None).write(1, b"stray\\n", 6)',
    "os.system": 'os.system("echo stray")',
    "a grandchild": 'import subprocess; subprocess.run([sys.executable, "-c", "print(\\"stray\\")"], check=True)',
    "a grandchild's stderr": 'import subprocess; subprocess.run("echo stray >&2", shell=True)',
    "/dev/stdout": 'open("/dev/stdout", "w").write("stray\\n")',
    "stderr": 'print("stray", file=sys.stderr)',
    "os.write to stderr": 'os.write(2, b"stray")',
    "a fork": 'pid = os.fork() or (os.write(1, b"stray\\n"), os._exit(0)); os.waitpid(pid, 0)',
    "an open of descriptor 1": 'open(1, "w", closefd=False).write("stray\\n")',
}


@pytest.mark.parametrize(("how", "place"), combined(list(ABUSE), ["process", "initialize", "import"]))
def test_text_on_a_standard_stream_is_logged_and_breaks_nothing(start: Starter, how: str, place: str) -> None:
    def at(where: str) -> str:
        return ABUSE[how] if where == place else "pass"

    child = start(f"""
        import multiprocessing
        {at("import")}
        class Part(BasicBolt):
            output_fields = ["value"]
            def initialize(self, conf, context):
                {at("initialize")}
            def process(self, tup):
                {at("process")}
                self.emit([tup[0]])
        """)
    id = child.give("x")
    child.until(lambda: child.acked)
    child.close_input()
    child.ended(0)
    assert (child.acked, child.emitted, child.errors, child.stderr) == ([id], [["x"]], [], b"")
    level = 3 if "stderr" in how else 2
    assert any("stray" in line and line.startswith(("stdout: ", "stderr: ")) for line in child.logged(level))


ECHO = """
class Part(BasicBolt):
    output_fields = ["value"]
    def process(self, tup):
        {}
        self.emit([tup[0]])
"""


def still_works(child: Child) -> None:
    child.give("and on")
    child.until(lambda: ["and on"] in child.emitted)
    child.close_input()
    child.ended(0)
    assert child.errors == []


@pytest.mark.parametrize("fd", [1, 2])
def test_ten_megabytes_are_all_logged(start: Starter, fd: int) -> None:
    child = start(
        ECHO.format(f'os.write({fd}, b"start\\n"); [os.write({fd}, b"y" * 9999 + b"\\n") for _ in range(1000)]')
    )
    child.give("x")
    child.until(lambda: len(child.messages) > 2000)  # each line is logged as two; counted once, as that takes long
    child.until(lambda: sum(line.count("y") for line in child.logged()) == 9999 * 1000)
    still_works(child)


def test_binary_output_is_logged_with_escapes(start: Starter) -> None:
    child = start(ECHO.format("os.write(2, bytes(range(256)) * 100)"))
    child.give("x")
    child.until(lambda: child.acked and child.log_text.count("\\xff") == 100)
    still_works(child)


def test_a_hundred_kilobytes_without_a_newline_are_logged_in_pieces(start: Starter) -> None:
    child = start(ECHO.format('os.write(1, b"z" * 100_000)'))
    child.give("x")
    child.until(lambda: sum(line.count("z") for line in child.logged()) == 100_000)
    assert max(map(len, child.logged())) < 10_000
    still_works(child)


def test_a_line_without_its_end_appears_soon_while_user_code_goes_on(start: Starter) -> None:
    child = start(ECHO.format('print("working...", end="", flush=True); time.sleep(3600)'))
    child.give("x")
    child.until(lambda: "stdout: working..." in child.logged())
    assert child.acked == []


def test_a_grandchild_that_outlives_the_process_breaks_nothing_and_holds_nothing(start: Starter) -> None:
    child = start("""
        import subprocess
        class Part(BasicBolt):
            def process(self, tup):
                script = "import time; print('I live', flush=True); time.sleep(60)"
                self.emit_pid = subprocess.Popen([sys.executable, "-c", script]).pid
                self.log(f"pid {self.emit_pid}")
        """)
    child.give("x")
    child.until(lambda: "stdout: I live" in child.logged())
    child.close_input()
    child.ended(0, limit=30)  # the end of its output, too, though the grandchild lives
    (pid,) = (int(line.split()[1]) for line in child.logged() if line.startswith("pid "))
    import os

    os.kill(pid, signal.SIGKILL)


@pytest.mark.usefixtures("unmeasured")
def test_a_forked_worker_that_outlives_the_process_does_not_hold_its_output(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                pid = os.fork()
                if not pid:
                    time.sleep(60)
                    os._exit(0)
                self.log(f"pid {pid}")
        """)
    child.give("x")
    child.until(lambda: child.acked)
    child.process.kill()
    child.ended(-9, limit=30)
    import os

    os.kill(int(child.logged()[0].split()[1]), signal.SIGKILL)


@pytest.mark.usefixtures("unmeasured")
def test_a_pool_of_forked_processes_works_logs_and_ends(start: Starter) -> None:
    child = start("""
        import logging
        import multiprocessing
        log = logging.getLogger("pool")
        def double(n):
            print(f"printed {n}", flush=True)
            log.warning("doubling %d", n)
            return 2 * n
        class Part(BasicBolt):
            output_fields = ["value"]
            def initialize(self, conf, context):
                self.pool = multiprocessing.get_context("fork").Pool(2)
            def process(self, tup):
                self.emit([self.pool.map(double, range(4))])
            def close(self):
                self.pool.terminate()
        """)
    child.give("x")
    child.until(lambda: all(f"printed {n}" in child.log_text and f"doubling {n}" in child.log_text for n in range(4)))
    child.close_input()
    child.ended(0)
    assert child.emitted == [[[0, 2, 4, 6]]]
    assert child.errors == []


@pytest.mark.usefixtures("unmeasured")
def test_an_emit_in_a_forked_process_is_refused_and_does_not_reach_the_wire(start: Starter) -> None:
    child = start("""
        class Part(Bolt):
            output_fields = ["value"]
            def process(self, tup):
                pid = os.fork()
                if not pid:
                    try:
                        self.emit(["forked"])
                        self.ack(tup)
                    except Exception as error:
                        print(f"refused: {error}", flush=True)
                    os._exit(0)
                os.waitpid(pid, 0)
                self.emit(["mine"], anchors=[tup])
                self.ack(tup)
        """)
    child.give("x")
    child.until(lambda: child.acked and "refused" in child.log_text)
    assert child.emitted == [["mine"]]


def test_user_code_that_reads_standard_input_gets_its_end(start: Starter) -> None:
    child = start(ECHO.format("self.log(repr([sys.stdin.read(), os.read(0, 10)]))"))
    child.give("x")
    child.until(lambda: child.acked)
    assert child.logged() == ["['', b'']"]
    still_works(child)


def test_a_grandchild_that_reads_standard_input_takes_nothing_of_the_protocol(start: Starter) -> None:
    child = start(ECHO.format('os.system("cat")'))
    ids = [child.give(n) for n in range(5)]
    child.until(lambda: len(child.acked) == 5)
    assert child.acked == ids
    still_works(child)


@pytest.mark.parametrize(
    "closing", ["os.close(1)", "sys.stdout.close()", "os.close(2)", "os.close(0)", "sys.stdin.close()"]
)
def test_a_standard_stream_that_user_code_closes_breaks_nothing(start: Starter, closing: str) -> None:
    child = start(ECHO.format(f"tup[0] == 'x' and {closing}"))
    child.give("x")
    child.until(lambda: child.acked)
    child.give("y")
    still_works(child)


def test_text_of_a_script_before_run_and_after_it_is_logged(start: Starter) -> None:
    child = start(
        """
        import atexit
        print("before run")
        atexit.register(print, "at exit 1")
        class Part(BasicBolt):
            def process(self, tup):
                atexit.register(print, "at exit 2")
            def close(self):
                print("in close")
        Part().run()
        print("after run")
        """,
        script=True,
    )
    child.give("x")
    child.until(lambda: child.acked)
    child.close_input()
    child.ended(0)
    everything = child.log_text + child.stderr.decode()
    for text in ("before run", "in close", "after run", "at exit 1", "at exit 2"):
        assert text in everything
    assert "stdout: in close" in child.logged()
    assert "stdout: before run" in child.logged()


def test_text_at_the_end_does_not_block_it(start: Starter) -> None:
    child = start("""
        import atexit
        atexit.register(lambda: os.write(1, b"x" * 300_000))
        class Part(BasicBolt):
            def close(self):
                print("y" * 300_000)
        """).started()
    child.close_input()
    child.ended(0, limit=30)
    assert child.log_text.count("y") >= 300_000


def test_output_that_nobody_reads_does_not_block_user_code_and_its_loss_is_said(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                for _ in range(400):
                    os.write(1, b"x" * 99_999 + b"\\n")
                open("done", "w").close()
        """).started()
    child.reading.clear()
    child.give("x")
    child.until((start.folder / "done").exists)
    child.reading.set()
    child.until(lambda: child.acked)
    child.close_input()
    child.ended(0)
    shown = sum(line.count("x") for line in child.logged())
    left_out = sum(int(line.split()[1]) for line in child.logged(3) if "left out" in line)
    assert left_out > 0
    assert abs(shown + left_out - 40_000_000) < 10_000  # newlines are counted with what is left out


@pytest.mark.parametrize("variable", ["PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"])
def test_settings_of_the_interpreter_change_nothing(start: Starter, variable: str) -> None:
    child = start(ECHO.format('print("a", end=""); print("b"); sys.stderr.write("c\\n")'), env={variable: "1"})
    for n in range(100):
        child.give(n)
    child.until(lambda: len(child.acked) == 100 and child.log_text.count("c") >= 100)
    child.close_input()
    child.ended(0)
    lines = child.logged()
    assert lines.count("stderr: c") == 100
    assert "".join(line.removeprefix("stdout: ") for line in lines if line.startswith("stdout: ")) == "ab" * 100
    assert child.emitted == [[n] for n in range(100)]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_grandchild_inherits_none_of_the_protocols_descriptors(start: Starter) -> None:
    child = start(ECHO.format('tup[0] == "x" and os.system("ls -l /proc/self/fd")'))
    child.give("x")
    child.until(lambda: child.acked)
    still_works(child)
    fds = [line for line in child.logged() if "->" in line]
    assert len(fds) == 4, fds  # its three standard streams, and the folder that ls reads
