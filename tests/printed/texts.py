"""Every text in the product's source that somebody may read: the strings of its Python
and TypeScript, its docstrings and its templates. A value that a text fills in stands as
`{expression}`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.guards import ROOT
from tests.sources import PACKAGES

PYTHON = (*PACKAGES, "counterseal", "demo", "client")
TYPESCRIPT = ROOT / "client" / "typescript" / "src"
TEMPLATES = ROOT / "templates"
_PLUS = re.compile(r"\s*\+\s*")
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
_MARKUP = re.compile(r"<!--.*?-->|\{#.*?#\}|<[^>]*>", re.S)


@dataclass(frozen=True)
class Text:
    """One text, and the file and line where it begins. `printed`: it is no docstring,
    which only developers read."""

    path: str
    line: int
    text: str
    printed: bool = True

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@cache
def list_texts() -> tuple[Text, ...]:
    """All of them, in the order of the files."""
    python = [path for name in PYTHON for path in sorted((ROOT / name).rglob("*.py"))]
    parts = [
        *(_read_python(path) for path in python if _is_own(path)),
        *(_read_typescript(path) for path in sorted(TYPESCRIPT.rglob("*.ts"))),
        *(_read_template(path) for path in sorted(TEMPLATES.rglob("*.*"))),
    ]
    return tuple(text for part in parts for text in part)


def _is_own(path: Path) -> bool:
    return not {"migrations", "node_modules"} & set(path.parts)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _read_python(path: Path) -> Iterator[Text]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    inner = {
        id(part)
        for node in nodes
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in inner:
            continue
        if text := _write(node):
            yield Text(_name(path), node.lineno, text, id(node) not in alone)


def _write(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_write, node.values))
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    value = node.value if isinstance(node, ast.Constant) else ""
    return value if isinstance(value, str) else ""


def _read_typescript(path: Path) -> Iterator[Text]:
    """Literals that a plus joins are one text."""
    source = path.read_text()
    line, text, end = 0, "", 0
    for found in _QUOTED.finditer(source):
        if text and not _PLUS.fullmatch(source, end, found.start()):
            yield Text(_name(path), line, text)
            text = ""
        if not text:
            line = source.count("\n", 0, found.start()) + 1
        text += (found[1] or found[2] or "").replace("${", "{").replace("\\`", "`")
        end = found.end()
    if text:
        yield Text(_name(path), line, text)


def _read_template(path: Path) -> Iterator[Text]:
    yield Text(_name(path), 1, _MARKUP.sub("", path.read_text()))
