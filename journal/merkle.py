"""The tree of RFC 6962, section 2.1, of leaf hashes that are added one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

EMPTY_ROOT = hashlib.sha256(b"").hexdigest()
Frontier = Sequence[tuple[int, str]]


@dataclass(slots=True)
class MerkleTree:
    """It keeps the roots of its complete subtrees, the largest first."""

    _roots: list[tuple[int, bytes]] = field(default_factory=list)

    @classmethod
    def from_frontier(cls, frontier: Frontier) -> MerkleTree:
        """The tree that `list_frontier` described. Every proof about a later leaf can
        be made with it, without the leaves before."""
        return cls([(size, bytes.fromhex(root)) for size, root in frontier])

    def list_frontier(self) -> list[tuple[int, str]]:
        """The size and the root of each complete subtree, the largest first."""
        return [(size, root.hex()) for size, root in self._roots]

    def add(self, leaf_hash: bytes) -> None:
        """Add the next leaf's hash."""
        size, root = 1, leaf_hash
        while self._roots and self._roots[-1][0] == size:
            root = _hash_node(self._roots.pop()[1], root)
            size *= 2
        self._roots.append((size, root))

    def compute_root(self) -> str:
        """The root hash of all leaves so far, in hexadecimal."""
        if not self._roots:
            return EMPTY_ROOT
        *others, (_, root) = self._roots
        for _, left in reversed(others):
            root = _hash_node(left, root)
        return root.hex()


def hash_leaf(content: bytes) -> bytes:
    """The hash of a leaf: SHA-256(0x00 || leaf)."""
    return hashlib.sha256(b"\x00" + content).digest()


def _hash_node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()
