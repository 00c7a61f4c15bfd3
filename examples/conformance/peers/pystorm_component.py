"""The conformance component on pystorm: `python pystorm_component.py bolt`."""

import sys

import pystorm
from pystorm_steps import components

if __name__ == "__main__":
    components(pystorm)[sys.argv[1]]().run()
