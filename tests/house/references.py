"""References that the tree makes to its own files, modules and numbered claims.

A reader follows a reference, so it has to name something that git knows. Read are the
comments, docstrings and messages of Python, and the whole text of other files. Strings
of tests are data and are not read.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import normpath

from bench.report import GOALS
from counterseal_client.command_line.frameworks import FRAMEWORKS
from tests.guards import ROOT
from tests.prove import PROOFS

# Files of users, of installations, of a run, of others; and one variable of a template.
ELSEWHERE = (
    *("policy.yaml", "agent.py", "worker.py", "notes.py", "notes.json", "target.json"),
    *("credit.py", "entry_points.txt"),
    *(
        ".claude/settings.json",
        "settings.json",
        "counterseal/settings.json",
        "counterseal/gate.json",
    ),
    *("var/*", "demo.json", "report.json"),
    *("../shared/data/*", "vectors/*", "libraries/python/tests/test_webhooks.py"),
    *("page.py", "views.py"),  # of any page
    "mcp.json",  # of Cursor
    "counterseal_client/examples/*",  # of the client's wheel
    *("refund.py", "ai-agent.json"),
    *(row.file for row in FRAMEWORKS.values()),  # that `counterseal init` writes
    "policy.schema.json",  # beside the page that names it
    "page.html",
)
# The folders from which templates and pages name files.
FOLDERS = (".", "templates", "static")
PROSE = {"", ".css", ".html", ".js", ".md", ".mjs", ".sh", ".toml", ".ts", ".yaml"}
ENDINGS = "css|html|js|json|md|mjs|py|sh|sql|svg|toml|ts|txt|yaml|yml"
FILE = re.compile(
    r"(?<![\w@/.{}*<>%$~:-])((?:[\w.-]+/)*[\w-][\w.-]*"
    rf"\.(?:{ENDINGS}))(?![\w/(-]|\.\w)"
)
FOLDER = re.compile(
    r"`((?:agents|assurance|bench|chaos|client|demo|desk|docs|hitl|journal"
    r"|notifications|policies|reviews|stats|templates|tests|world)/(?:[\w-]+/)*[\w-]*)`"
)
# Without `desk`: its parameters in a policy are written alike.
MODULE = re.compile(
    r"`((?:agents|assurance|hitl|journal|notifications|policies|reviews|stats)"
    r"(?:\.\w+)+)`"
)
CLAIM = re.compile(r"(?<![\w#./&-])([GIT][1-9]\d?)(?![\w%-]|\.\d)")
BARE_INVARIANT = re.compile(r"(?<![\w#./&-])(I[1-9]\d?)(?![\w%-]|\.\d)")
CITED_INVARIANT = re.compile(r"docs/invariants\.md\s+I\d+(?:(?:,\s|\sand\s)I\d+)*")
LINK_TEXT = re.compile(r"\[[^\]\n]*\]\(")
# Docstrings, other strings and comments, in one pass: each may contain the others.
PARTS = re.compile(
    r'^ *"""(?P<docstring>.*?)"""|"""(?P<text>.*?)"""'
    r'|"(?P<string>(?:[^"\\\n]|\\.)*)"|#(?P<comment>[^\n]*)',
    re.M | re.S,
)


def list_files() -> list[str]:
    """The files that git knows, and new ones that it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


class Tree:
    """What may be referred to."""

    def __init__(self, files: list[str]) -> None:
        self.files = set(files)
        self.folders = {
            str(folder) for name in files for folder in PurePosixPath(name).parents
        }
        # A path may lack its first folders. A bare name is that of a neighbour only.
        self.ends = {
            "/".join(parts[start:])
            for parts in (name.split("/") for name in files)
            for start in range(len(parts) - 1)
        }
        invariants = (ROOT / "docs" / "invariants.md").read_text()
        numbers = re.findall(r"^### (I\d+)$", invariants, re.M)
        self.claims = {*numbers, *PROOFS, *GOALS}

    def has_file(self, name: str, cited_in: str) -> bool:
        folders = (*FOLDERS, PurePosixPath(cited_in).parent)
        return (
            name in self.ends
            or any(normpath(f"{folder}/{name}") in self.files for folder in folders)
            or any(fnmatch(name, pattern) for pattern in ELSEWHERE)
        )

    def has_name(self, dotted: str) -> bool:
        """Whether `dotted` is a module, or a name in one."""
        parts = dotted.split(".")
        for end in range(len(parts), 0, -1):
            path = "/".join(parts[:end])
            if f"{path}.py" in self.files:
                text = _read(f"{path}.py")
                return all(re.search(rf"\b{name}\b", text) for name in parts[end:])
            if f"{path}/__init__.py" in self.files:
                texts = (_read(name) for name in self.list_modules(path))
                return end == len(parts) or any(f" {parts[end]}(" in t for t in texts)
        return False

    def list_modules(self, package: str) -> list[str]:
        return [
            f for f in self.files if f.startswith(f"{package}/") and f[-3:] == ".py"
        ]


def find_broken(name: str, text: str, tree: Tree) -> Iterator[str]:
    """The references in one file that lead nowhere."""
    text = LINK_TEXT.sub("(", text) if name.endswith(".md") else text
    if not any(_find_broken(text, name, tree)):  # parts of Python are slow to find
        return
    for part in _list_prose(name, text):
        yield from _find_broken(part, name, tree)


def _find_broken(text: str, name: str, tree: Tree) -> Iterator[str]:
    yield from (m for m in FILE.findall(text) if not tree.has_file(m, name))
    yield from (m for m in FOLDER.findall(text) if m.rstrip("/") not in tree.folders)
    yield from (m for m in MODULE.findall(text) if not tree.has_name(m))
    if name.endswith(".py") and not name.startswith("tests/"):
        # In the product a reader must see where the number is explained.
        yield from BARE_INVARIANT.findall(CITED_INVARIANT.sub("", text))
    yield from (m for m in CLAIM.findall(text) if m not in tree.claims)


def _list_prose(name: str, text: str) -> Iterator[str]:
    if not name.endswith(".py"):
        yield text
        return
    for match in PARTS.finditer(text):
        prose = match["docstring"] or match["comment"]
        string = match["text"] or match["string"]
        if prose:
            yield prose
        elif string and " " in string and not name.startswith("tests/"):
            yield string


def find_all_broken() -> Mapping[str, list[str]]:
    """The broken references of the tree, by the file that makes them."""
    files = list_files()
    tree = Tree(files)
    prose = [name for name in files if Path(name).suffix in {*PROSE, ".py"}]
    broken = {name: list(find_broken(name, _read(name), tree)) for name in prose}
    return {name: found for name, found in broken.items() if found}


@cache
def _read(name: str) -> str:
    return (ROOT / name).read_text(errors="replace")
