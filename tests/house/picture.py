"""The picture of docs/architecture.md, drawn from the imports and the import contracts.

    .venv/bin/python -m tests.house.picture

writes docs/architecture.svg. `tests/test_docs.py` fails while the file differs from
what this module draws.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.guards import ROOT
from tests.sources import Source, product

PICTURE = ROOT / "docs" / "architecture.svg"
# The packages from the top down; the subjects of two are drawn, by their contracts.
PACKAGES = (
    ("hitl",),
    ("desk",),
    ("stats",),
    ("agents", "assurance", "notifications"),
    ("reviews",),
    ("policies",),
    ("journal",),
)
DRAWN = {"desk": "Inside desk", "reviews": "Inside reviews"}
# Aliases that keep a published path, and modules that only hold text for the admin.
LEFT_OUT = {"reviews.executors", "reviews.apps", "reviews.management"}

WIDTH = 1180
MARGIN, GAP, WIDEST_GAP = 16, 10, 60
BOX_HEIGHT, ROW_STEP = 26, 58
CHARACTER, PADDING = 6.9, 16

STYLE = """
  svg { color-scheme: light dark; background: light-dark(#fff, #14171c) }
  text { font: 12px ui-monospace, monospace; text-anchor: middle;
    fill: light-dark(#14171c, #e8eaed) }
  rect { stroke: light-dark(#5b6472, #98a1b0); fill: light-dark(#eceef1, #30353d) }
  rect.desk { fill: light-dark(#dbe7ff, #1f3358) }
  rect.reviews { fill: light-dark(#dcf2e1, #1d3d2a) }
  path { fill: none; stroke: light-dark(#8a93a1, #707987) }
"""

Edge = tuple[str, str]


@dataclass(frozen=True)
class Box:
    """One subject on the picture: its name, and its place in pixels."""

    name: str
    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def kind(self) -> str:
        package, _, subject = self.name.partition(".")
        return package if subject else "package"

    @property
    def label(self) -> str:
        return self.name.removeprefix("reviews.")


def read_rows() -> list[list[str]]:
    """The subjects of each layer from the top down, as the contract orders them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = config["tool"]["importlinter"]["contracts"]
    layers = {contract["name"]: contract.get("layers", ()) for contract in contracts}
    rows = []
    for packages in PACKAGES:
        (package, *others) = packages
        if package not in DRAWN:
            rows.append([package, *others])
        for layer in layers.get(DRAWN.get(package, ""), ()):
            rows.append(sorted(f"{package}.{name}" for name in layer.split(" | ")))
    return rows


def subject_of(module: str, subjects: set[str]) -> str | None:
    """The subject that a dotted module belongs to, or None outside the picture."""
    parts = module.split(".")
    names = {parts[0], ".".join(parts[:2])} - LEFT_OUT
    return next(iter(names & subjects), None)


def imported_modules(source: Source) -> Iterator[str]:
    """Dotted names of what a module imports, each imported name appended."""
    package = source.path.split("/")[:-1]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def collect_edges(subjects: set[str]) -> set[Edge]:
    """Which subject imports which, without a subject's imports of itself."""
    edges = set()
    for source in product():
        module = source.path.removesuffix(".py").replace("/", ".")
        importer = subject_of(module, subjects)
        for name in imported_modules(source) if importer else ():
            imported = subject_of(name, subjects)
            if importer and imported and imported != importer:
                edges.add((importer, imported))
    return edges


def drop_implied(edges: set[Edge]) -> set[Edge]:
    """The edges that no longer path implies: the transitive reduction of the graph."""
    targets: dict[str, set[str]] = defaultdict(set)
    for importer, imported in edges:
        targets[importer].add(imported)

    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        stack = [start]
        while stack:
            new = targets[stack.pop()] - found
            found |= new
            stack.extend(new)
        return found

    reach = {name: reachable(name) for name in list(targets)}
    return {
        (importer, imported)
        for importer, imported in edges
        if not any(
            imported in reach.get(other, ()) for other in targets[importer] - {imported}
        )
    }


def place_boxes(rows: list[list[str]]) -> dict[str, Box]:
    """Each row centred; a row that is too wide goes on in the next line."""
    boxes: dict[str, Box] = {}
    y = MARGIN
    for row in rows:
        for line in break_row(row):
            widths = [measure_box(name) for name in line]
            free = WIDTH - 2 * MARGIN - sum(widths)
            gap = min(free / len(line), WIDEST_GAP)
            x = (WIDTH - sum(widths) - gap * (len(line) - 1)) / 2
            for name, width in zip(line, widths, strict=True):
                boxes[name] = Box(name, round(x, 1), y, round(width, 1))
                x += width + gap
            y += ROW_STEP
    return boxes


def break_row(row: list[str]) -> Iterator[list[str]]:
    line: list[str] = []
    used = 0.0
    for name in row:
        width = measure_box(name) + GAP
        if used + width > WIDTH - 2 * MARGIN:
            yield line
            line, used = [], 0.0
        line.append(name)
        used += width
    yield line


def measure_box(name: str) -> float:
    return CHARACTER * len(name.removeprefix("reviews.")) + PADDING


def draw() -> str:
    """The picture as SVG."""
    rows = read_rows()
    boxes = place_boxes(rows)
    edges = drop_implied(collect_edges(set(boxes)))
    height = max(box.y for box in boxes.values()) + BOX_HEIGHT + MARGIN
    lines = [draw_edge(boxes[a], boxes[b]) for a, b in sorted(edges)]
    shapes = [draw_box(box) for box in boxes.values()]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-label="Which subject imports which">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *lines, *shapes, "</svg>", ""])


def draw_edge(importer: Box, imported: Box) -> str:
    top, bottom = importer.y + BOX_HEIGHT, imported.y
    bend = min((bottom - top) / 2, 60)
    return (
        f'<path d="M{importer.middle:.0f} {top:.0f}'
        f" C{importer.middle:.0f} {top + bend:.0f}"
        f" {imported.middle:.0f} {bottom - bend:.0f}"
        f' {imported.middle:.0f} {bottom:.0f}"/>'
    )


def draw_box(box: Box) -> str:
    text = escape(box.label)
    return (
        f'<rect class="{box.kind}" x="{box.x}" y="{box.y}" width="{box.width}"'
        f' height="{BOX_HEIGHT}" rx="4"/>'
        f'<text x="{box.middle:.0f}" y="{box.y + 17}">{text}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw())
