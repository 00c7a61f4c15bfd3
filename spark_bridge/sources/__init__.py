"""Partition sources: rows that a spout can read again by partition and offset.

A source is *live* (``live``, ``serve``: an RDD in the Spark driver), *served* (``served``: the same, seen from another
process) or *published* (``publish``, ``published``: files). Only ``live``, ``serve`` and ``publish`` work with Spark; a
spout's process imports none of them.
"""
