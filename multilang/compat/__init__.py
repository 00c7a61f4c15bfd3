"""Programs written for other libraries, which run as they are: pystorm, streamparse and storm.py.

Each subpackage has the names of one library, and turns its components into ordinary components of this library, which
run on every engine. ``multilang.compat.names`` makes them importable by the names that programs write.
"""
