"""Components that lack the method that is called for every tuple."""

from __future__ import annotations

from multilang.component import Bolt, Spout


class Numbers(Spout):
    output_fields = ["n"]

    def next_tuple(self):
        self.emit([1], tup_id=1)


class Nothing(Bolt):
    output_fields = ["n"]


class Silent(Spout):
    output_fields = ["n"]
