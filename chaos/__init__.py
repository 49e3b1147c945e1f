"""`make chaos`: the product under load while a nemesis breaks its processes.

The words are Jepsen's. The generator draws operations from a seed, agents and people
perform them, the nemesis injects faults, the history keeps what happened, and checkers
say whether anything was lost, doubled or done without authority. Nothing here ships.
"""
