"""Storm's command for every Python task of a topology jar: ``python3 run_topology.py``.

It is beside the topology in the jar's resources folder, with a manifest that says where the topology is and what the
jar was made for. Storm shows in its log and its UI what this program writes to standard error before the handshake. The
code runs on the oldest Python, so that it can report that this Python is too old.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST = (3, 10)  # the oldest Python that the components' code is written for
LEAST_UJSON = (5, 12)  # older ones leak memory on long integers


def refuse(problem):
    sys.stderr.write("multilang: %s\n" % problem)
    sys.stderr.flush()
    os._exit(1)


def manifest_of(loads):
    try:
        with open(os.path.join(HERE, "manifest.json"), "rb") as file:
            return loads(file.read().decode("utf-8"))
    except (IOError, OSError, ValueError) as error:
        refuse("the manifest beside %s can't be read: %s; make the jar again" % (__file__, error))


def worker():
    import platform

    python = "%d.%d" % sys.version_info[:2]
    return "this worker runs Python %s (%s) on %s-%s" % (python, sys.executable, sys.platform, platform.machine())


def advice(manifest):
    return "this jar was made for Python %s, %s, and %s; make it with --python %d.%d and the workers' --platform" % (
        manifest["python"],
        manifest["platform"],
        worker(),
        sys.version_info[0],
        sys.version_info[1],
    )


def check():
    """Return the manifest, after checking that the jar's code runs on this Python."""
    if sys.version_info < LEAST:
        refuse(
            "Python %d.%d or newer is needed, and %s; name another with --interpreter" % (LEAST[0], LEAST[1], worker())
        )
    try:
        import ujson
    except ImportError as error:
        import json

        refuse("ujson can't be imported (%s): %s" % (error, advice(manifest_of(json.loads))))
    manifest = manifest_of(ujson.loads)
    if not getattr(ujson, "__file__", "").startswith(HERE):  # the one that is installed on the worker
        version = tuple(int(part) for part in ujson.__version__.split(".")[:2])
        if version < LEAST_UJSON:
            refuse("the worker's own ujson %s is too old: %s" % (ujson.__version__, advice(manifest)))
    if manifest["compiled"] and manifest["python"] != "%d.%d" % sys.version_info[:2]:
        refuse("%s is compiled code: %s" % (", ".join(manifest["compiled"][:3]), advice(manifest)))
    return manifest


def make_again(manifest):
    """Restore what a jar does not keep: permissions to run files, and empty folders."""
    for name in manifest["folders"]:
        try:
            os.makedirs(os.path.join(HERE, name))
        except OSError:
            pass  # another task's process was faster
    for name in manifest["executable"]:
        path = os.path.join(HERE, name)
        if not os.access(path, os.X_OK):
            try:
                os.chmod(path, os.stat(path).st_mode | 0o500)
            except OSError:
                pass  # we may not change it; starting it will report the missing permission


def main():
    if HERE not in sys.path:
        sys.path.insert(0, HERE)
    manifest = check()
    make_again(manifest)
    target = manifest["topology"]
    if target.partition(":")[0].endswith(".py"):
        target = os.path.join(HERE, target)

    from multilang.child.process import run_process

    def find(context):
        from multilang.child.find import find_component

        return find_component(target, context, manifest["submitted"], HERE)

    run_process(find)


if __name__ == "__main__":
    main()
