"""The product's own source, parsed, for the tests of how it is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.guards import ROOT

PACKAGES = (
    "journal",
    "policies",
    "reviews",
    "agents",
    "notifications",
    "assurance",
    "stats",
    "desk",
    "hitl",
)


@dataclass(frozen=True)
class Source:
    """One module: its path from the root, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Every call by the last name of what is called: `update`, `atomic`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield last_name(node.func), node

    def functions(self) -> Iterator[ast.FunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                yield node


def last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@cache
def product() -> tuple[Source, ...]:
    """Every module of the packages but their migrations."""
    paths = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    return tuple(
        _read(path) for path in sorted(paths) if "migrations" not in path.parts
    )


def templates() -> Iterator[tuple[str, str]]:
    """Every template of the product and the demo, by its path from the root."""
    for folder in ("templates", "demo"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".html", ".txt"}:
                yield str(path.relative_to(ROOT)), path.read_text()


def _read(path: Path) -> Source:
    text = path.read_text()
    return Source(str(path.relative_to(ROOT)), text, ast.parse(text))
