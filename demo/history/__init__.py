"""Thirty days of the store's life before the demo begins, through the operations that
agents and people use, while the database's clock is set back.

It is written once, into a database without proposals. What the agents did happened in
the store, too: its ledger has the same effects, at the same times.
"""
