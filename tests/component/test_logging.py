"""Python's logging, Storm's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from multilang.protocol.messages import Log

if TYPE_CHECKING:
    from tests.component.harness import Child, Starter

FORKS = True


def run(start: Starter, source: str, conf: dict[str, object] | None = None) -> Child:
    child = start(source, conf)
    child.give("x")
    child.until(lambda: child.acked or child.failed)
    assert child.errors == []
    child.close_input()
    child.ended(0)
    return child


def test_levels_of_logging_become_storms(start: Starter) -> None:
    child = run(start, """
        import logging
        class Part(BasicBolt):
            def process(self, tup):
                for level in (1, 5, 10, 15, 20, 30, 35, 40, 50):
                    logging.getLogger("shop").log(level, "at %d", level)
        """, {"multilang.log.level": "trace"})  # fmt: skip
    expected = {5: 0, 10: 1, 15: 1, 20: 2, 30: 3, 35: 3, 40: 4, 50: 4}
    assert child.all(Log) == [Log(f"shop: at {python}", storm) for python, storm in expected.items()]


@pytest.mark.parametrize(
    ("level", "least"), [(None, 2), ("trace", 1), ("debug", 1), ("info", 2), ("WARN", 3), ("warning", 3), ("error", 4)]
)
def test_the_conf_sets_the_least_level_that_is_sent(start: Starter, level: str | None, least: int) -> None:
    child = run(start, """
        import logging
        class Part(BasicBolt):
            def process(self, tup):
                for level in (10, 20, 30, 40):
                    logging.log(level, "x")
        """, {} if level is None else {"multilang.log.level": level})  # fmt: skip
    assert [log.level for log in child.all(Log)] == list(range(least, 5))


def test_the_component_has_a_logger_of_its_name(start: Starter) -> None:
    child = run(start, """
        class Part(BasicBolt):
            def initialize(self, conf, context):
                self.logger.info("starting")
            def process(self, tup):
                self.logger.warning("tuple %s", tup.id)
                self.logger.debug("not shown")
        """)  # fmt: skip
    assert child.all(Log) == [Log("part: starting", 2), Log("part: tuple t1", 3)]


@pytest.mark.parametrize("place", ["import", "initialize", "process", "a module imported late"])
def test_logging_arrives_from_its_first_record_on_wherever_it_is_imported(start: Starter, place: str) -> None:
    (start.folder / "late.py").write_text("import logging\nlogging.getLogger('late').info('first')\n")
    code = "import logging; logging.getLogger('late').info('first')"
    if place == "a module imported late":
        code, place = "import late", "initialize"

    def at(where: str) -> str:
        return code if where == place else "pass"

    child = run(start, f"""
        {at("import")}
        class Part(BasicBolt):
            def initialize(self, conf, context):
                {at("initialize")}
            def process(self, tup):
                {at("process")}
        """)  # fmt: skip
    assert child.all(Log) == [Log("late: first", 2)]


def test_logging_that_a_script_imported_before_run_arrives(start: Starter) -> None:
    child = start(
        """
        import logging
        class Part(BasicBolt):
            def process(self, tup):
                logging.getLogger("script").info("hello")
        Part().run()
        """,
        script=True,
    )
    child.give("x")
    child.until(lambda: child.acked)
    assert child.all(Log) == [Log("script: hello", 2)]


def test_basic_config_in_user_code_shows_no_record_twice(start: Starter) -> None:
    child = run(start, """
        import logging
        logging.basicConfig()
        class Part(BasicBolt):
            def process(self, tup):
                logging.warning("once")
        """)  # fmt: skip
    assert child.all(Log) == [Log("root: once", 3)]


def test_an_exception_is_logged_with_its_traceback(start: Starter) -> None:
    child = run(start, """
        class Part(BasicBolt):
            def process(self, tup):
                try:
                    1 / 0
                except ZeroDivisionError:
                    self.logger.exception("went wrong")
        """)  # fmt: skip
    (log,) = child.all(Log)
    assert log.level == 4
    assert log.message.startswith("part: went wrong\nTraceback")


def test_a_record_that_cannot_be_formatted_breaks_nothing(start: Starter) -> None:
    child = run(start, """
        import logging
        class Part(BasicBolt):
            def process(self, tup):
                logging.warning("%d", "no number")
                logging.warning("\\ud800")
        """)  # fmt: skip
    assert "no number" in child.log_text
    assert any("ud800" in line for line in child.logged(3))


def test_warnings_are_logged(start: Starter) -> None:
    child = run(start, """
        import logging, warnings
        class Part(BasicBolt):
            def process(self, tup):
                warnings.warn("old ways")
        """)  # fmt: skip
    assert any("UserWarning: old ways" in line for line in child.logged(3))


def test_a_warning_without_logging_is_shown_too(start: Starter) -> None:
    child = run(start, """
        import warnings
        class Part(BasicBolt):
            def process(self, tup):
                warnings.warn("old ways")
        """)  # fmt: skip
    assert any("UserWarning: old ways" in line for line in child.logged(3))


def test_log_and_report_error_go_straight_to_storm(start: Starter) -> None:
    child = start("""
        class Part(BasicBolt):
            def process(self, tup):
                self.log("plain")
                for level in ("trace", "debug", "info", "warn", "error", 0, 4):
                    self.log({"any": "object"}, level=level)
                self.report_error("seen in the UI")
                try:
                    self.log("x", level="loud")
                except ValueError as error:
                    self.log(error)
        """)
    child.give("x")
    child.until(lambda: child.acked)
    assert [log.level for log in child.all(Log)[:-1]] == [2, 0, 1, 2, 3, 4, 0, 4]
    assert child.logged()[1] == "{'any': 'object'}"
    assert child.errors == ["seen in the UI"]
    assert "log level 'loud': use one of trace, debug" in child.logged()[-1]


def test_logging_from_a_thread_goes_out_while_the_process_is_idle(start: Starter) -> None:
    child = start("""
        import logging, threading
        class Part(BasicBolt):
            def process(self, tup):
                self.go = threading.Event()
                def later():
                    while not os.path.exists("go"):
                        time.sleep(0.01)
                    logging.info("from a thread")
                threading.Thread(target=later, daemon=True).start()
        """)
    child.give("x")
    child.until(lambda: child.acked)
    (start.folder / "go").touch()
    child.until(lambda: "root: from a thread" in child.logged())
