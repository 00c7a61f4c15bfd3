"""Storm's command for a component in another language whose command line is more or less than two words.

Storm's ShellComponent has room for exactly two, and a jar keeps no file's permission to be run. This file stands in the
jar's resources once for each such component; the manifest beside it has the command of each copy, by its name.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    with open(os.path.join(HERE, "manifest.json"), "rb") as file:
        words = json.loads(file.read().decode("utf-8"))["commands"][os.path.basename(__file__)]
    os.chdir(HERE)
    if os.path.isfile(words[0]) and "/" in words[0]:
        try:
            os.chmod(words[0], os.stat(words[0]).st_mode | 0o500)
        except OSError:
            pass  # not ours to change: then it has the permission, or exec says that it has not
    try:
        os.execvp(words[0], words)
    except OSError as error:
        sys.stderr.write("multilang: %s can't be started: %s\n" % (words[0], error))
        sys.exit(127)


if __name__ == "__main__":
    main()
