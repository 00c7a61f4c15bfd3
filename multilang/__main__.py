"""``python -m multilang``: the command ``multilang``, where its script is not on the PATH."""

import sys

from multilang.cli import main

if __name__ == "__main__":
    sys.exit(main())
