"""Where a guard stands in the product: its marker `# guard: short-name`, and the
statement that the marker is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MARKER = re.compile(r"#\s*guard:\s*(?P<name>.*?)\s*$", re.IGNORECASE)
# Folders with Python files that are not the product's.
OUTSIDE = {"tests", "bench", "chaos", "docs", "var", "world"}


class Misplaced(AssertionError):
    """A marker is missing or doubled, or its function is gone."""


def statement(text: str, tree: ast.Module, function: str, marker: str) -> ast.stmt:
    """The statement of this text's tree that the marker is for: the innermost one on
    whose first lines (those before its body) the marker stands, or else the next one
    below the marker.

    `function` is a qualified name, "" for the module. Raises Misplaced.
    """
    scope = _scope(tree, function)
    lines = [at for at, name in names(text) if name == marker]
    if len(lines) != 1:
        raise Misplaced(f"`# guard: {marker}` stands there {len(lines)} times")
    line = _with_code(text, lines[0])
    nodes = [node for node in ast.walk(scope) if isinstance(node, ast.stmt)]
    found = [node for node in nodes if line in _head(node)]
    if not found:
        raise Misplaced(f"`# guard: {marker}` is not inside {function or 'the module'}")
    return max(found, key=lambda node: node.lineno)


def names(text: str) -> Iterator[tuple[int, str]]:
    """The number of each line that has a marker, and the marker's name."""
    for at, line in enumerate(text.splitlines(), start=1):
        if found := MARKER.search(line):
            yield at, found["name"]


def in_product(root: Path) -> Iterator[tuple[str, str]]:
    """The file and name of every marker in the product."""
    for file in sorted(root.rglob("*.py")):
        inside = file.relative_to(root)
        if inside.parts[0] in OUTSIDE or inside.parts[0].startswith("."):
            continue
        for _, name in names(file.read_text()):
            yield str(inside), name


def _scope(tree: ast.Module, function: str) -> ast.AST:
    scope: ast.AST = tree
    for name in function.split(".") if function else []:
        inside = [node for node in ast.iter_child_nodes(scope) if _is_named(node, name)]
        if len(inside) != 1:
            raise Misplaced(f"{function} is there {len(inside)} times")
        scope = inside[0]
    return scope


def _is_named(node: ast.AST, name: str) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(node, kinds) and node.name == name


def _with_code(text: str, line: int) -> int:
    """This line, or the next one that is not only a comment."""
    lines = text.splitlines()
    while line < len(lines) and lines[line - 1].lstrip().startswith("#"):
        line += 1
    return line


def _head(node: ast.stmt) -> range:
    """The lines of a statement without those of the statements inside it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    inside: list[ast.stmt] = getattr(node, "body", [])
    begin = min([node.lineno, *(one.lineno for one in decorators)])
    end = inside[0].lineno if inside else (node.end_lineno or node.lineno) + 1
    return range(begin, max(end, node.lineno + 1))
