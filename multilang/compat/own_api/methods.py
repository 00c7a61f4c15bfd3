"""The methods of a component class: every use of ``self``, and every call of the library's functions, is judged and written over."""

from __future__ import annotations

import ast

from multilang.compat.own_api.calls import Emits
from multilang.compat.own_api.libraries import function_of, is_library
from multilang.compat.own_api.tuples import Tuples
from multilang.compat.own_api.work import Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from multilang.compat.own_api.classes import Found, Project
    from multilang.compat.own_api.declarations import Declarations

_READ = {
    "component_name": "context.component",
    "debug": 'conf.get("topology.debug", False)',
    "storm_conf": "conf",
    "task_id": "context.task",
    "topology_name": 'conf.get("topology.name", "")',
}
_LEVELS = {"logTrace": "trace", "logDebug": "debug", "logInfo": "info", "logWarn": "warn", "logError": "error"}
_KNOWN_LEVELS = {"trace", "debug", "info", "warn", "warning", "error", "critical"}
_NUMBERS = range(5)
_THREADS = {
    *(
        "Process",
        "Thread",
        "ThreadPoolExecutor",
        "Timer",
        "asyncio",
        "concurrent",
        "eventlet",
        "gevent",
        "multiprocessing",
    ),
    *("signal", "thread", "threading"),
}
_UNSEEN = {"eval", "exec", "globals", "locals", "setattr", "vars"}
_INHERITED = {"activate", "ack", "deactivate", "fail", "initialize", "next_tuple", "process", "process_tick"}
_OWN_VALUES = {"conf": 0, "context": 1}  # attributes that a component has here anyway: the arguments of initialize()


class Methods(Work):
    """The methods of a class; ``write`` judges them and notes the changes."""

    def __init__(self, found: Found, declared: Declarations, project: Project) -> None:
        super().__init__(found, declared)
        self.project = project
        self.kind = found.kind
        self.selves: dict[ast.AST, str] = {}
        self.users = {name for each in found.line for name in [*each.functions(), *each.assigned()]}
        self.stored = {
            node.attr
            for each in found.line
            for node in ast.walk(each.node)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        }
        self.emits = Emits(found, declared)
        self.tuples = Tuples(found, declared, self.emits.calls)
        self._calls: dict[str, Callable[[ast.Call], None]] = {
            "ack": self._settle,
            "emit": lambda call: self.emits.own(call, "emit"),
            "emit_many": lambda call: self.emits.own(call, "emit_many"),
            "fail": self._settle,
            "is_tick": self._is_tick,
            "log": self._log,
            "report_metric": self._report_metric,
        }

    def write(self) -> None:
        """Judge the methods, and note the changes."""
        found, functions = self.found, self.found.functions()
        for name, function in functions.items():
            self._signature(name, function)
        for name, function in functions.items():
            own_name = self.self_of(function)
            for node in ast.walk(function):
                self._node(node, own_name, name)
        self.tuples.write()
        self._starts(functions)
        if not self.kind.is_pystorms:
            self._storms_names(functions)
        if self.kind.library == "streamparse" and self.emits.any and self.declared.streams is None:
            found.keep(found.node, f"{found.name} emits, and declares no outputs")

    def _signature(self, name: str, function: ast.FunctionDef) -> None:
        found, kind = self.found, self.kind
        if name in kind.methods:
            wanted = _ARGUMENTS.get(name, 1)
            args = function.args
            plain = not (args.vararg or args.kwarg or args.kwonlyargs or args.defaults)
            if function.decorator_list and name in _ARGUMENTS:
                found.keep(function, f"{name} has a decorator")
            elif name in _ARGUMENTS and (not plain or len(args.posonlyargs + args.args) != wanted):
                found.keep(function, f"{name} does not take {wanted - 1} plain arguments")
            elif any(isinstance(each, ast.Yield | ast.YieldFrom | ast.Await) for each in ast.walk(function)):
                found.keep(function, f"{name} is a generator or a coroutine")
        elif name == "__init__":
            if kind.is_pystorms or len(function.args.args) != 1:
                found.keep(function, "it has an __init__; move what it does to initialize")
        elif name in kind.theirs | kind.ours:
            found.keep(
                function, f"its method {name} has the name of a method of the library, or of multilang's components"
            )
        elif name.startswith("__"):
            found.keep(function, f"Python may call its method {name} at places that the text does not show")

    def _node(self, node: ast.AST, own_name: str | None, method: str) -> None:
        found = self.found
        if isinstance(node, ast.Name):
            if node.id == own_name:
                self._own(node, method)
            elif node.id in _THREADS:
                found.keep(node, f"it uses {node.id}, so that it may emit or ack in another thread or process")
            elif node.id in _UNSEEN or (node.id in ("getattr", "hasattr") and self._is_about_self(node, own_name)):
                found.keep(node, f"it uses {node.id}, by which it may use names that the text does not show")
        if isinstance(node, ast.Name | ast.Attribute) and node not in found.used:
            self._library(node, own_name)
        if isinstance(node, ast.JoinedStr):
            self._formatted(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            self._super(node)

    def _formatted(self, text: ast.JoinedStr) -> None:
        """Keep a class with a change inside of an f-string, whose quotes and places differ from version to version of Python."""
        for node in ast.walk(text):
            changes = isinstance(node, ast.Attribute) and (
                node.attr == "values" or node.attr in _READ or node.attr == "is_tick"
            )
            if changes or (isinstance(node, ast.Name) and is_library(self.found.source.dotted(node))):
                self.found.keep(
                    text, "a value that must be rewritten is in an f-string; give the value a name in the line before"
                )

    def _is_about_self(self, node: ast.Name, own_name: str | None) -> bool:
        call = self.parents.get(node)
        first = call.args[0] if isinstance(call, ast.Call) and call.args else None
        return not isinstance(first, ast.Name) or first.id == own_name or first.id in self.tuples.names_of(node)

    def _super(self, call: ast.Call) -> None:
        parent = self.parents[call]
        if not isinstance(parent, ast.Attribute) or parent.attr not in (*_INHERITED, "__init__"):
            self.found.keep(call, "it calls a method of the library by super()")

    def _own(self, node: ast.Name, method: str) -> None:
        """Judge one use of self."""
        found, parent = self.found, self.parents[node]
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "super":
            return
        if not isinstance(parent, ast.Attribute):
            if not isinstance(parent, ast.arguments | ast.arg):
                found.keep(node, f"{found.name} hands self to something else, which may use the library's names")
            return
        name = parent.attr
        if name.startswith("__"):
            if name not in ("__class__", "__doc__"):
                found.keep(node, f"it uses self.{name}, which may mean something else in multilang")
        elif isinstance(parent.ctx, ast.Store | ast.Del):
            self._store(parent, name, method)
        else:
            self._load(parent, name)

    def _store(self, node: ast.Attribute, name: str, method: str) -> None:
        found, kind, parent = self.found, self.kind, self.parents[node]
        if name in _OWN_VALUES and method == "initialize" and isinstance(parent, ast.Assign):
            arguments = [each.arg for each in found.functions()["initialize"].args.args[1:]]
            if isinstance(parent.value, ast.Name) and arguments[_OWN_VALUES[name] :][:1] == [parent.value.id]:
                return  # as it is here anyway
        if name == "logger" and kind.is_pystorms:
            return
        if name in kind.ours:
            found.keep(node, f"it sets self.{name}, a name that multilang's components use themselves")
        elif name in kind.theirs and name not in (*_READ, "pid"):
            found.keep(node, f"it sets self.{name}, a name of the library")

    def _load(self, node: ast.Attribute, name: str) -> None:
        found, kind, parent = self.found, self.kind, self.parents[node]
        if name in self.users or (name in self.stored and name not in kind.theirs):
            if name == "nextTuple" and kind.is_spout and not kind.is_pystorms:
                self._rename(node, "next_tuple")
            return
        if name in self.stored and name in (*_READ, "pid"):
            return
        if not kind.is_pystorms:
            if name in kind.theirs - {"initialize", "process", "ack", "fail", "activate", "deactivate"}:
                found.keep(node, f"it uses self.{name}, which multilang's components don't have")
            return
        if name in _READ:
            self._rename(node, _READ[name])
        elif name in self._calls:
            if isinstance(parent, ast.Call) and parent.func is node:
                self._calls[name](parent)
            else:
                found.keep(node, f"it hands self.{name} on, and the text does not show how it is called")
        elif name not in ("logger", "context") and name in kind.theirs:
            found.keep(
                node, f"it uses self.{name}, which multilang's components don't have, or have with another meaning"
            )

    def _settle(self, call: ast.Call) -> None:
        if self.kind.is_spout or len(call.args) != 1 or call.keywords:
            self.found.keep(call, "it acks or fails with other arguments than the tuple")

    def _report_metric(self, call: ast.Call) -> None:
        if len(call.args) != 2 or call.keywords:
            self.found.keep(call, "it calls self.report_metric with named arguments; write them by position")

    def _is_tick(self, call: ast.Call) -> None:
        if len(call.args) == 1 and isinstance(call.args[0], ast.Name):
            self.found.edits.replace(call, f"{call.args[0].id}.is_tick")
            self.tuples.fine.add(call.args[0])
        else:
            self.found.keep(call, "the argument of self.is_tick is not a simple name")

    def _rename(self, node: ast.Attribute, name: str) -> None:
        source = self.found.source
        end = source.end(node)
        self.found.edits.cut(end - len(node.attr), end, name)

    def _log(self, call: ast.Call) -> None:
        found = self.found
        level = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "level"), None)
        known = level is None or (isinstance(level, ast.Constant) and level.value in (*_KNOWN_LEVELS, None))
        if not known or any(each.arg not in ("message", "level") for each in call.keywords) or len(call.args) > 2:
            found.keep(call, "it calls self.log with a level that multilang does not have")
        elif isinstance(level, ast.Constant) and level.value is None:
            found.edits.replace(level, '"info"')

    # ---- the library's functions ----

    def _library(self, node: ast.Name | ast.Attribute, own_name: str | None) -> None:
        """Judge one use of a name of the library's."""
        parent = self.parents.get(node)
        if isinstance(parent, ast.Attribute):
            return  # judged as a whole
        found = self.found
        dotted = found.source.dotted(node)
        if not is_library(dotted):
            return
        if isinstance(parent, ast.arg) and dotted is not None and dotted.endswith(".Tuple"):
            found.edits.replace(node, "\0Tuple")
            found.needs.add("Tuple")
            found.used.update(ast.walk(node))
            return
        function = function_of(dotted)
        is_call = isinstance(parent, ast.Call) and parent.func is node
        if function is None or not is_call or own_name is None:
            found.keep(node, f"it uses {dotted}, which multilang does not have")
            return
        call: ast.Call = parent  # type: ignore[assignment]
        if function.startswith("emit"):
            self.emits.function(call, function, own_name)
        elif function in ("ack", "fail", "reportError", "rpcMetrics"):
            number = 2 if function == "rpcMetrics" else 1
            new = {"reportError": "report_error", "rpcMetrics": "report_metric"}.get(function, function)
            if self.kind.is_spout and function in ("ack", "fail"):
                found.keep(call, f"it calls storm.{function}, which only bolts of multilang have")
            elif len(call.args) != number or call.keywords:
                found.keep(call, f"it calls storm.{function} with other arguments than multilang's method takes")
            else:
                found.edits.replace(call.func, f"{own_name}.{new}")
        elif function == "log":
            self._log_function(call, own_name)
        elif function in _LEVELS and len(call.args) == 1 and not call.keywords:
            found.edits.replace(call.func, f"{own_name}.log")
            found.edits.insert(found.source.end(call.args[0]), f', "{_LEVELS[function]}"')
        else:
            found.keep(call, f"it calls storm.{function}, which multilang does not have")
            return
        found.used.update(ast.walk(call.func))

    def _log_function(self, call: ast.Call, own_name: str) -> None:
        found = self.found
        level = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "level"), None)
        known = level is None or (isinstance(level, ast.Constant) and level.value in _NUMBERS)
        if not known or not call.args or any(each.arg != "level" for each in call.keywords):
            found.keep(call, "the level in its call of storm.log is not written as a number from 0 to 4")
        else:
            found.edits.replace(call.func, f"{own_name}.log")

    def _storms_names(self, functions: dict[str, ast.FunctionDef]) -> None:
        """Write over what storm.py's components are called by."""
        found, source = self.found, self.found.source
        for name, new in (("nextTuple", "next_tuple"), ("process", None)):
            if name not in functions or name not in self.kind.methods:
                continue
            function = functions[name]
            if new is not None:
                at = source.text.index(name, source.start(function))
                found.edits.cut(at, at + len(name), new)
                continue
            indent = source.text[source.line_start(function.lineno) : source.start(function)]
            end = source.line_end(function.end_lineno)  # type: ignore[arg-type]
            newline = source.newline
            start = "" if source.text[:end].endswith(("\n", "\r")) else newline
            found.edits.insert(
                end,
                f"{start}{newline}{indent}process_tick = process  # ticks come to it, too, if the conf asks for them{newline}",
            )

    def _starts(self, functions: dict[str, ast.FunctionDef]) -> None:
        """Keep a spout that emits before it is asked to: the layer keeps such tuples until then."""
        if not self.kind.is_spout:
            return
        reached, new = set(), {"initialize", "__init__"}
        while new:
            name = new.pop()
            reached.add(name)
            for each in self.found.line:
                for node in ast.walk(each.functions().get(name, ast.Pass())):
                    if isinstance(node, ast.Attribute) and node.attr in each.functions() and node.attr not in reached:
                        new.add(node.attr)
        for name in sorted(reached & functions.keys()):
            for node in ast.walk(functions[name]):
                if node in self.emits.calls:
                    self.found.keep(
                        node,
                        "it emits in initialize, before Storm listens; the layer sends such tuples later, and multilang refuses them",
                    )


_ARGUMENTS = {
    "initialize": 3,
    "process": 2,
    "process_tick": 2,
    "next_tuple": 1,
    "nextTuple": 1,
    "ack": 2,
    "fail": 2,
    "activate": 1,
    "deactivate": 1,
}
