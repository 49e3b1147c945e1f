"""Chance that follows from a seed: the same for everybody who has it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """Numbers that follow from a seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._thrown = 0

    def throw(self, sides: int) -> int:
        """A number from 0 below `sides`."""
        self._thrown += 1
        block = hashlib.sha256(self._seed + self._thrown.to_bytes(4)).digest()
        return int.from_bytes(block[:8]) % sides

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.throw(len(items))]

    def mixed(self, items: Sequence[Item]) -> list[Item]:
        """The items in an order of chance."""
        left = list(items)
        return [left.pop(self.throw(len(left))) for _ in items]
