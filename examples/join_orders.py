"""Joins two streams: a tuple that is made of two is anchored to both, and both are acked together.

An order waits for its payment or the payment for its order. If the joined tuple, or anything made from it, fails later,
both spouts replay theirs. A half whose other half never comes is not acked: it times out and is replayed, so that the
join loses nothing.

    multilang run examples/join_orders.py --until-drained
"""

from __future__ import annotations

from typing import Any

from multilang import Bolt, Context, ReliableSpout, TopologyBuilder, Tuple

ORDERS = 2000


class Orders(ReliableSpout):
    """Orders of known customers, one per call."""

    output_fields = ["order", "customer"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        super().initialize(conf, context)
        self.left = list(range(ORDERS, 0, -1))

    def next_tuple(self) -> None:
        if self.left:
            order = self.left.pop()
            self.emit([order, f"customer-{order % 97}"], tup_id=order)

    def exhausted(self) -> bool:
        return not self.left


class Payments(Orders):
    """A payment for each order, in another order than theirs; amounts in cents."""

    output_fields = ["order", "cents"]

    def next_tuple(self) -> None:
        if self.left:
            order = self.left.pop(len(self.left) * 7919 % len(self.left[-50:]))
            self.emit([order, 100 + order * 37 % 9900], tup_id=order)


class Join(Bolt):
    """Holds a half until the other one comes; the fields grouping brings both to the same task."""

    output_fields = ["order", "customer", "cents"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.orders: dict[int, Tuple] = {}
        self.payments: dict[int, Tuple] = {}

    def process(self, tup: Tuple) -> None:
        number = tup["order"]
        mine, others = (self.orders, self.payments) if tup.component == "orders" else (self.payments, self.orders)
        if number in mine:
            self.fail(mine[number])  # it timed out, and this is its replay: an ack of the older one has no effect
        mine[number] = tup
        if number in others:
            order, payment = self.orders.pop(number), self.payments.pop(number)
            self.emit([number, order["customer"], payment["cents"]], anchors=[order, payment])
            self.ack(order)
            self.ack(payment)


class Turnover(Bolt):
    """Adds up the turnover of each customer, in cents."""

    output_fields = ["customer", "cents"]

    def initialize(self, conf: dict[str, Any], context: Context) -> None:
        self.cents: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        customer = tup["customer"]
        total = self.cents[customer] = self.cents.get(customer, 0) + tup["cents"]
        self.emit([customer, total], anchors=[tup])
        self.ack(tup)


builder = TopologyBuilder()
builder.set_spout("orders", Orders)
builder.set_spout("payments", Payments)
builder.set_bolt("join", Join, parallelism=2).fields_grouping("orders", "order").fields_grouping("payments", "order")
builder.set_bolt("turnover", Turnover).fields_grouping("join", "customer")
topology = builder.build("join-orders")
