"""Storm's command for a component in another language whose command line has not exactly two words.

Storm's ShellComponent takes exactly two words, and a jar keeps no file's permission to be run. The jar's resources
have a copy of this file for each such component, and for those whose files need permissions or empty folders. The
manifest beside it has the command of each copy, by its name.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


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
    with open(os.path.join(HERE, "manifest.json"), "rb") as file:
        manifest = json.loads(file.read().decode("utf-8"))
    words = manifest["commands"][os.path.basename(__file__)]
    os.chdir(HERE)
    make_again(manifest)
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.stderr.write("multilang: %s can't be started: %s\n" % (words[0], error))
        sys.exit(127)


if __name__ == "__main__":
    main()
