"""Names and modules of Python 2 that Python 3 lacks, in files that are valid in both."""

from __future__ import annotations

import ast
import os

from multilang.migrate.finding import Finding
from multilang.migrate.python2 import ABSTRACT
from multilang.migrate.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MODULES = {
    "BaseHTTPServer": "http.server",
    "CGIHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "Cookie": "http.cookies",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SimpleHTTPServer": "http.server",
    "SimpleXMLRPCServer": "xmlrpc.server",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "UserList": "collections",
    "UserString": "collections",
    "__builtin__": "builtins",
    "anydbm": "dbm",
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
_MODULES_BY_HAND = {
    "UserDict": "write collections.UserDict, or a subclass of dict",
    "exceptions": "leave it out, since its names are built in",
    "md5": "import hashlib, and write hashlib.md5(BYTES)",
    "new": "import types",
    "popen2": "import subprocess",
    "rfc822": "import email.utils",
    "sets": "write set and frozenset, which are built in",
    "sha": "import hashlib, and write hashlib.sha1(BYTES)",
}
_NAMES = {
    "StandardError": "Exception",
    "apply": "FUNCTION(*ARGUMENTS)",
    "basestring": "str",
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
_OF_TEXTS = (
    *("capitalize", "center", "count", "expandtabs", "find", "index", "ljust", "lower", "lstrip", "replace", "rfind"),
    *("rindex", "rjust", "rsplit", "rstrip", "split", "strip", "swapcase", "translate", "upper", "zfill"),
)
_BY_HAND = {
    "buffer": "memoryview",
    "cmp": "(a > b) - (a < b); to sort, key=functools.cmp_to_key(...)",
    "coerce": "the types by name",
    "file": "open",
    "string.atof": "float",
    "string.atoi": "int",
    "string.atol": "int",
    "string.join": "SEPARATOR.join(WORDS)",
    "string.joinfields": "SEPARATOR.join(WORDS)",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.maketrans": "str.maketrans",
    "string.splitfields": "TEXT.split(SEPARATOR)",
    "string.uppercase": "string.ascii_uppercase",
    **{f"string.{name}": f"TEXT.{name}(...)" for name in _OF_TEXTS},
}
_TYPES = {
    "BooleanType": "bool",
    "DictType": "dict",
    "DictionaryType": "dict",
    "FloatType": "float",
    "IntType": "int",
    "ListType": "list",
    "LongType": "int",
    "StringType": "str",
    "StringTypes": "(str,)",
    "TupleType": "tuple",
    "UnicodeType": "str",
}
_ATTRIBUTES = {
    **{f"types.{name}": write for name, write in _TYPES.items()},
    "itertools.ifilterfalse": "itertools.filterfalse",
    "itertools.izip_longest": "itertools.zip_longest",
    "itertools.ifilter": "filter",
    "itertools.imap": "map",
    "itertools.izip": "zip",
    "operator.isCallable": "callable",
    "os.getcwdu": "os.getcwd",
    "sys.exc_traceback": "sys.exc_info()[2]",
    "sys.exc_type": "sys.exc_info()[0]",
    "sys.exc_value": "sys.exc_info()[1]",
    "sys.maxint": "sys.maxsize",
    "urllib.quote": "urllib.parse.quote",
    "urllib.quote_plus": "urllib.parse.quote_plus",
    "urllib.unquote": "urllib.parse.unquote",
    "urllib.unquote_plus": "urllib.parse.unquote_plus",
    "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
}
_METHODS = {
    "has_key": "in",
    "iteritems": "items",
    "iterkeys": "keys",
    "itervalues": "values",
    "viewitems": "items",
    "viewkeys": "keys",
    "viewvalues": "values",
}
_OF_FUNCTIONS = {
    "func_code": "__code__",
    "func_defaults": "__defaults__",
    "func_doc": "__doc__",
    "func_globals": "__globals__",
    "func_name": "__name__",
    "im_class": "__self__.__class__",
    "im_func": "__func__",
    "im_self": "__self__",
}
_SINCE = {  # removed by a later version of Python 3
    "inspect.getargspec": "inspect.getfullargspec",
    "time.clock": "time.perf_counter",
    **{f"collections.{name}": f"collections.abc.{name}" for name in ABSTRACT},
}


def removed_names(source: Source) -> Iterator[Finding]:
    """Return the modules, names, attributes and methods of a file's that only Python 2 has.

    Args:
        source: The file.
    """
    path = source.path
    modules = {each.name for node in source.nodes if isinstance(node, ast.Import) for each in node.names}
    for node in source.nodes:
        if node in source.for_one_version:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _of_module(path, node, alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from _of_module(path, node, node.module or "")
            for alias in node.names if node.module != "collections" else ():
                yield from _of(path, node, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in source.bound:
            yield from _of(path, node, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield from _of(path, node, f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Attribute) and node.attr in _OF_FUNCTIONS and isinstance(node.ctx, ast.Load):
            what = f"Python 3's functions have no {node.attr}"
            yield Finding(path, node.lineno, what, f"write {_OF_FUNCTIONS[node.attr]}; --fix does", python2=True)
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in _METHODS:
            assert isinstance(node, ast.Call)
            if bool(node.args) is (function.attr == "has_key"):  # not six.iteritems(dictionary)
                what = f"Python 3's dicts have no {function.attr}"
                yield Finding(path, function.lineno, what, f"write {_METHODS[function.attr]}; --fix does", python2=True)


def _of_module(path: str, node: ast.stmt, name: str) -> Iterator[Finding]:
    top = name.partition(".")[0]
    fix = f"import {_MODULES[top]}; --fix does" if top in _MODULES else _MODULES_BY_HAND.get(top)
    if fix is not None and not _is_own(path, top):
        yield Finding(path, node.lineno, f"Python 3 has no module {top}", fix, python2=True)


def _is_own(path: str, name: str) -> bool:
    """Return whether a module may be one of the project's: it is beside the file, or in the folder above."""
    folder = os.path.dirname(os.path.abspath(path))
    places = (os.path.join(each, name) for each in (folder, os.path.dirname(folder)))
    return any(os.path.isfile(f"{each}.py") or os.path.isdir(each) for each in places)


def _of(path: str, node: ast.expr | ast.stmt, name: str) -> Iterator[Finding]:
    fix = _SINCE.get(name) or _BY_HAND.get(name)
    if fix is not None:
        yield Finding(path, node.lineno, f"Python 3 has no {name}", f"write {fix}", python2=name not in _SINCE)
    elif name in _NAMES or name in _ATTRIBUTES:
        write = _NAMES.get(name, _ATTRIBUTES.get(name))
        fix = f"write {write}" if write else "leave it out, since Python 3 needs no sys.setdefaultencoding"
        yield Finding(path, node.lineno, f"Python 3 has no {name}", f"{fix}; --fix does", python2=True)
