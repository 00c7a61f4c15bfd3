"""The conformance component on streamparse: `python streamparse_component.py bolt`."""

import sys

import streamparse
from pystorm_steps import components

if __name__ == "__main__":
    components(streamparse)[sys.argv[1]]().run()
