"""Petrel's names, on this library's engine: ``from petrel import storm``, ``from petrel.emitter import BasicBolt, Spout``.

A function ``create(builder)`` of Petrel's is a topology for whatever loads topologies: ``multilang run create.py``.
"""
