"""Chains: bolts that run in one process, one behind the other, since their subscription lets tuples stay where they are.

``plan.chains`` says which bolts are joined, and why others are not; ``transform.by_chains`` changes a topology before it is
submitted; ``child`` runs the members in their process, so that their code sees nothing of it. See docs/chains.md.
"""

from __future__ import annotations
