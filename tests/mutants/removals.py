"""What takes the place of a guarded statement when its guard is removed.

Each kind finds its part of the statement by syntax and raises Misplaced unless exactly
the expected part is there, so that no mutation is silently another one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tests.mutants.markers import Misplaced

Node = TypeVar("Node", bound=ast.AST)
Found = TypeVar("Found")


class Removal(Protocol):
    """How a statement reads without its guard."""

    def change(self, statement: ast.stmt) -> None:
        """Raises Misplaced."""


@dataclass(frozen=True)
class Condition:
    """The condition of the `if` becomes this expression."""

    expression: str

    def change(self, statement: ast.stmt) -> None:
        _the(ast.If, statement).test = _expression(self.expression)


NEVER = Condition("False")
ALWAYS = Condition("True")


@dataclass(frozen=True)
class Value:
    """What is returned, assigned or called becomes this expression."""

    expression: str

    def change(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Return | ast.Assign | ast.Expr):
            raise Misplaced(f"{ast.unparse(statement)!r} has no value")
        statement.value = _expression(self.expression)


# What was called for its effect is not called.
NOTHING = Value("None")


@dataclass(frozen=True)
class Unheeded:
    """The condition of the `if` is evaluated, with its effects, and nothing follows."""

    def change(self, statement: ast.stmt) -> None:
        _the(ast.If, statement).body = [ast.Pass()]


UNHEEDED = Unheeded()


@dataclass(frozen=True)
class WithoutOperand:
    """An `and` or `or` loses the operand that reads like this."""

    operand: str

    def change(self, statement: ast.stmt) -> None:
        same = ast.dump(_expression(self.operand))
        found = [
            (node, operand)
            for node in _within(ast.BoolOp, statement)
            for operand in node.values
            if ast.dump(operand) == same
        ]
        node, operand = _one(found, self.operand)
        node.values.remove(operand)


@dataclass(frozen=True)
class WithoutKeyword:
    """A call loses the argument of this name."""

    keyword: str

    def change(self, statement: ast.stmt) -> None:
        found = [
            (call, keyword)
            for call in _within(ast.Call, statement)
            for keyword in call.keywords
            if keyword.arg == self.keyword
        ]
        call, keyword = _one(found, self.keyword)
        call.keywords.remove(keyword)


@dataclass(frozen=True)
class WithKeyword:
    """The outermost call of a value gets one more argument: `name=value`."""

    keyword: str

    def change(self, statement: ast.stmt) -> None:
        call = getattr(statement, "value", None)
        more = _the(ast.Call, _expression(f"f({self.keyword})")).keywords
        _the(ast.Call, call).keywords += more


@dataclass(frozen=True)
class WithoutMethod:
    """A chain of calls loses the calls of this method, as many as are named here."""

    method: str
    times: int = 1

    def change(self, statement: ast.stmt) -> None:
        changed = _Dropping(self.method)
        changed.visit(statement)
        if changed.dropped != self.times:
            raise Misplaced(f"{self.method} is called {changed.dropped} times")


@dataclass(frozen=True)
class InText:
    """In a text, such as a query, one piece becomes another."""

    piece: str
    other: str

    def change(self, statement: ast.stmt) -> None:
        found = [
            node
            for node in _within(ast.Constant, statement)
            if isinstance(node.value, str) and self.piece in node.value
        ]
        node = _one(found, self.piece)
        if str(node.value).count(self.piece) != 1:
            raise Misplaced(f"{self.piece!r} is there more than once")
        node.value = str(node.value).replace(self.piece, self.other)


class _Dropping(ast.NodeTransformer):
    """Replaces `chain.method(...)` with `chain`."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.dropped = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == self.method:
            self.dropped += 1
            return node.func.value
        return node


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _the(kind: type[Node], node: ast.AST | None) -> Node:
    if not isinstance(node, kind):
        raise Misplaced(f"there is no {kind.__name__}: {node and ast.unparse(node)}")
    return node


def _within(kind: type[Node], statement: ast.stmt) -> Iterator[Node]:
    return (node for node in ast.walk(statement) if isinstance(node, kind))


def _one(found: list[Found], what: str) -> Found:
    if len(found) != 1:
        raise Misplaced(f"{what!r} is there {len(found)} times")
    return found[0]
