"""Names and modules of Python 2 that Python 3 lacks, in files that are valid in both."""

from __future__ import annotations

import ast

from multilang.migrate.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MODULES = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "Cookie": "http.cookies",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SimpleHTTPServer": "http.server",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "__builtin__": "builtins",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "htmlentitydefs": "html.entities",
    "httplib": "http.client",
    "robotparser": "urllib.robotparser",
    "thread": "_thread",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "xmlrpclib": "xmlrpc.client",
}
_NAMES = {
    "apply": "FUNCTION(*ARGUMENTS)",
    "basestring": "str",
    "buffer": "memoryview",
    "execfile": "exec(open(FILE).read())",
    "intern": "sys.intern",
    "long": "int",
    "raw_input": "input",
    "reduce": "functools.reduce",
    "reload": "",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}
_BY_HAND = {
    "cmp": "(a > b) - (a < b); to sort, key=functools.cmp_to_key(...)",
    "file": "open",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase",
    "string.join": "SEPARATOR.join(WORDS)",
    "string.maketrans": "str.maketrans",
    "time.clock": "time.perf_counter",
}
_ATTRIBUTES = {
    "itertools.ifilter": "filter",
    "itertools.imap": "map",
    "itertools.izip": "zip",
    "os.getcwdu": "os.getcwd",
    "sys.maxint": "sys.maxsize",
    "urllib.quote": "urllib.parse.quote",
    "urllib.quote_plus": "urllib.parse.quote_plus",
    "urllib.unquote": "urllib.parse.unquote",
    "urllib.unquote_plus": "urllib.parse.unquote_plus",
    "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
}
_METHODS = {"has_key": "in", "iteritems": "items", "iterkeys": "keys", "itervalues": "values"}
_CAUGHT = {"ImportError", "ModuleNotFoundError", "NameError", "AttributeError", "Exception"}
_VERSIONS = {"PY2", "PY3", "version_info", "hexversion"}


def removed_names(path: str, tree: ast.AST, bound: set[str]) -> Iterator[Finding]:
    """Return the modules, names, attributes and methods of a file's that only Python 2 has.

    Args:
        path: The file.
        tree: Its syntax tree.
        bound: The names that the file gives a meaning of its own.
    """
    forgiven = _for_both(tree)
    modules = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    for node in ast.walk(tree):
        if node in forgiven:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _of_module(path, node, alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from _of_module(path, node, node.module or "")
            for alias in node.names:
                yield from _of(path, node, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
            yield from _of(path, node, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield from _of(path, node, f"{node.value.id}.{node.attr}")
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in _METHODS:
            assert isinstance(node, ast.Call)
            if bool(node.args) is (function.attr == "has_key"):  # not six.iteritems(dictionary)
                what = f"Python 3's dicts have no {function.attr}"
                yield Finding(path, function.lineno, what, f"write {_METHODS[function.attr]}; --fix does")


def _of_module(path: str, node: ast.stmt, name: str) -> Iterator[Finding]:
    top = name.partition(".")[0]
    if top in _MODULES:
        yield Finding(path, node.lineno, f"Python 3 has no module {top}", f"import {_MODULES[top]}; --fix does")


def _of(path: str, node: ast.expr | ast.stmt, name: str) -> Iterator[Finding]:
    if name in _BY_HAND:
        yield Finding(path, node.lineno, f"Python 3 has no {name}", f"write {_BY_HAND[name]}")
    elif name in _NAMES or name in _ATTRIBUTES:
        write = _NAMES.get(name, _ATTRIBUTES.get(name))
        fix = f"write {write}" if write else "leave it out, since Python 3 needs no sys.setdefaultencoding"
        yield Finding(path, node.lineno, f"Python 3 has no {name}", f"{fix}; --fix does")


def _for_both(tree: ast.AST) -> set[ast.AST]:
    """Return the nodes that are for one version of Python only: what is tried, or under a question for the version."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            caught = {
                each.id for one in node.handlers for each in ast.walk(one.type or one) if isinstance(each, ast.Name)
            }
            if caught & _CAUGHT or any(one.type is None for one in node.handlers):
                asks = (each.value if isinstance(each, ast.Expr) else each for each in node.body)
                if any(isinstance(each, ast.Import | ast.ImportFrom | ast.Name) for each in asks):
                    found.update(ast.walk(node))
        elif isinstance(node, ast.If | ast.IfExp):
            asked = {
                each.attr if isinstance(each, ast.Attribute) else each.id
                for each in ast.walk(node.test)
                if isinstance(each, ast.Attribute | ast.Name)
            }
            if asked & _VERSIONS:
                found.update(ast.walk(node))
    return found


def divisions(path: str, tree: ast.AST) -> Iterator[Finding]:
    """Return the divisions of a file that was Python 2, where those of integers have no fraction.

    Args:
        path: The file.
        tree: Its syntax tree, as Python 3.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp | ast.AugAssign) or not isinstance(node.op, ast.Div):
            continue
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        if any(_is_fraction(side) for side in sides):
            continue
        what = f"the division {ast.unparse(node)!r} drops the fraction in Python 2 if both sides are integers"
        yield Finding(path, node.lineno, what, "write // if both are integers and nothing needs the fraction", False)


def _is_fraction(side: ast.expr) -> bool:
    """Return whether a number is one with a fraction, as far as the text shows, so that both Pythons divide alike."""
    if isinstance(side, ast.Constant):
        return not isinstance(side.value, int)
    if isinstance(side, ast.Call):
        name = ast.unparse(side.func)
        return name in ("float", "math.sqrt", "sqrt", "time.time", "time")
    if isinstance(side, ast.BinOp):
        return any(_is_fraction(each) for each in (side.left, side.right))
    return isinstance(side, ast.UnaryOp) and _is_fraction(side.operand)
