"""The figures of the source that may only get better: `make check` runs this module.

Each figure has a limit. A figure above its limit fails the check. A figure below it is
printed, so that the limit can follow it down.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.guards import ROOT
from tests.sources import PACKAGES, Source, product, templates

# Functions and classes whose names a framework prescribes.
PRESCRIBED = {"handle", "ready", "save", "delete", "clean", "get", "post", "dispatch"}
COLUMNS = 120

LINES = {
    "journal": 5723,
    "policies": 11621,
    "reviews": 37190,
    "agents": 8858,
    "notifications": 3076,
    "assurance": 3332,
    "stats": 3286,
    "desk": 37973,
    "hitl": 12690,
}
# Words that say nothing of what they name.
VAGUE_NAMES = {"found", "kept", "mine", "no", "one", "said", "told"}
# A limit is only ever lowered. Whoever needs more for a new capability says so in the
# commit that raises it.
LIMITS = {
    "modules of reviews": 175,
    "flat modules of reviews": 14,
    "median lines of a module of reviews, below 130 or above 220": 0,
    "lines of the largest module": 555,
    "lines of the largest function": 60,
    "one-word names, per thousand functions": 181,
    "vague names, per thousand variables": 0,
    "public classes that share a name in a package": 0,
    "template lines over 120 columns, per thousand": 3,
    "bytes of README.md": 8000,
    "bytes of CHANGELOG.md": 8192,
    **{f"lines of {package}": lines for package, lines in LINES.items()},
    "lines of the Django packages": sum(LINES.values()),
    "lines of tests, per thousand of the product": 1136,
}
PUBLIC_PATHS = {"reviews/executors.py", "reviews/verifier_rules.py"}


def measure() -> dict[str, int]:
    """Every figure of `LIMITS`, by its name."""
    modules = list(reviews_modules())
    flat = [s for s in modules if s.path.count("/") == 1]
    median = statistics.median(count_lines(source) for source in modules)
    lines = dict.fromkeys(LINES, 0)
    for source in product():
        lines[source.path.partition("/")[0]] += count_lines(source)
    values = (
        len(modules),
        len([s for s in flat if s.path not in PUBLIC_PATHS]),
        0 if 130 <= median <= 220 else round(median),
        max(map(count_lines, product())),
        max(function_lengths()),
        per_thousand(is_one_word(name) for name in function_names()),
        per_thousand(name in VAGUE_NAMES for name in variable_names()),
        len(list(shared_class_names())),
        per_thousand(len(line) > COLUMNS for line in template_lines()),
        len((ROOT / "README.md").read_bytes()),
        len((ROOT / "CHANGELOG.md").read_bytes()),
        *lines.values(),
        sum(lines.values()),
        round(1000 * count_test_lines() / sum(lines.values())),
    )
    return dict(zip(LIMITS, values, strict=True))


def count_lines(source: Source) -> int:
    return source.text.count("\n")


def count_test_lines() -> int:
    paths = (ROOT / "tests").rglob("*.py")
    return sum(path.read_text().count("\n") for path in paths)


def function_lengths() -> Iterator[int]:
    for source in product():
        for function in source.functions():
            if function.end_lineno:
                yield function.end_lineno - function.lineno + 1


def variable_names() -> Iterator[str]:
    """Every name that the product binds: variables, parameters and fields."""
    for source in product():
        for node in ast.walk(source.tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    yield name


def reviews_modules() -> Iterator[Source]:
    """The modules of `reviews` but for empty `__init__` files and commands."""
    for source in product():
        path = Path(source.path)
        counts = path.parts[0] == "reviews" and "management" not in path.parts
        if counts and not (path.name == "__init__.py" and not source.text.strip()):
            yield source


def function_names() -> Iterator[str]:
    """Functions and methods of the packages, nested ones included.

    Special methods are left out, as are the hooks of `PRESCRIBED`: their names are not
    ours to choose.
    """
    for source in product():
        for node in ast.walk(source.tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if not is_prescribed(name):
                        yield name


def is_prescribed(name: str) -> bool:
    return name.startswith("__") or name in PRESCRIBED


def is_one_word(name: str) -> bool:
    return "_" not in name.strip("_")


def shared_class_names() -> Iterator[tuple[str, str]]:
    """Package and name of each public class that has a namesake in its package."""
    names = Counter(
        (source.path.partition("/")[0], node.name)
        for source in product()
        if "management" not in source.path
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return (key for key, count in names.items() if count > 1)


def template_lines() -> Iterator[str]:
    for path, text in templates():
        if path.endswith(".html") and path.split("/")[0] in {"templates", *PACKAGES}:
            yield from text.splitlines()


def per_thousand(truths: Iterable[bool]) -> int:
    values = list(truths)
    return round(1000 * sum(values) / len(values))


def main() -> int:
    failed = False
    for name, value in measure().items():
        limit = LIMITS[name]
        failed |= value > limit
        note = "" if value == limit else "  too many" if value > limit else "  better"
        sys.stdout.write(f"{value:6} of {limit:<6} {name}{note}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
