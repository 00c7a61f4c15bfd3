"""Topologies that can't answer, or answer with more than a message can carry."""

from __future__ import annotations

from multilang import BasicBolt, Bolt
from multilang.drpc import LinearDRPCTopologyBuilder


def topology(bolt, function="f"):
    builder = LinearDRPCTopologyBuilder(function)
    builder.add_bolt(bolt)
    return builder.build()


class NotToday(BasicBolt):
    output_fields = ["id", "result"]

    def initialize(self, conf, context):
        raise ValueError("the database is not there")


class Silent(Bolt):
    """Keeps what it gets."""

    output_fields = ["id", "result"]

    def process(self, tup):
        pass


class Grows(BasicBolt):
    """Answers with as many characters as it is asked for."""

    output_fields = ["id", "result"]

    def process(self, tup):
        number, character = tup[1].split()
        self.emit([tup[0], character * int(number)])


grows = topology(Grows)
not_today, silent = topology(NotToday), topology(Silent)
