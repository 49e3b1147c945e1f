"""The code blocks of README and the documentation, and what becomes of each."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tests.guards import ROOT

PAGES = ("*.md", "docs/**/*.md", "client/**/*.md", "bench/*.md", "release/**/*.md")
_FENCE = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One code block: where it begins, its language, and its text without the indent of
    the list that it stands in."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def first(self) -> str:
        return self.text.partition("\n")[0]


def list_blocks() -> Iterator[Block]:
    """Every block of every page."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    for path in sorted(found):
        if "node_modules" not in path.parts:
            yield from read_blocks(str(path.relative_to(ROOT)), path.read_text())


def read_blocks(page: str, text: str) -> Iterator[Block]:
    """The blocks of one page. Raises ValueError for a fence that is not closed."""
    if len(re.findall(r"^ *```", text, re.M)) != 2 * len(_FENCE.findall(text)):
        raise ValueError(f"{page}: a code block is not closed, or not as it was opened")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found[2], textwrap.dedent(found[3]))


def find_block(page: str, first: str) -> Block:
    """The block of a page that begins with this line."""
    text = (ROOT / page).read_text()
    (block,) = (one for one in read_blocks(page, text) if one.first.startswith(first))
    return block


# Blocks that a test of their own runs: page, how the first line begins, the test.
RUN_BY = [
    ("README.md", "", "tests/test_docs.py"),
    ("docs/command-line.md", "$ counterseal", "tests/documentation/test_examples.py"),
    ("docs/agents.md", "from counterseal", "tests/documentation/test_examples.py"),
    ("docs/agents.md", "found = gate", "tests/documentation/test_examples.py"),
    ("client/README.md", "proposal = gate", "tests/documentation/test_examples.py"),
    ("docs/authzen.md", "gate=http", "tests/documentation/test_examples.py"),
    ("docs/authzen.md", ".venv/bin/python", "tests/documentation/test_examples.py"),
    ("docs/authzen.md", "call $gate", "tests/documentation/test_examples.py"),
    (
        "docs/authzen.md",
        "import json",
        "tests/agents/adapters/authzen/test_stranger.py",
    ),
    ("docs/questions.md", "from dataclasses", "tests/client/test_questions.py"),
    ("docs/questions.md", "schema = ", "tests/client/test_questions.py"),
    ("docs/questions.md", "from counterseal_client", "tests/client/test_questions.py"),
    ("docs/first-run.md", "from counterseal", "tests/test_first_run.py"),
    ("docs/states.md", "stateDiagram", "tests/test_architecture.py"),
]

FRAMEWORK = (
    "needs the framework's own environment, where `make conformance` and `make"
    " quickstart` run the program that the page names"
)
HOST = "needs a host of its own, with root and systemd"
# Blocks that are read and not run, and why.
EXCUSED = [
    ("docs/frameworks/", "python", "", FRAMEWORK),
    ("docs/frameworks/", "ts", "", FRAMEWORK),
    (
        "client/typescript/README.md",
        "ts",
        "",
        "leaves out the reader's own part; tests/client/typescript runs the functions",
    ),
    (
        "client/README.md",
        "python",
        "from counterseal_client import Gate, NotPerformed",
        "calls the reader's bank; tests/client/test_tools.py runs such a function",
    ),
    (
        "client/README.md",
        "python",
        "from counterseal_client.grants",
        "is a part of the reader's view; tests/client/test_grants.py runs it",
    ),
    (
        "docs/grants.md",
        "python",
        "from counterseal_client.grants",
        "is a part of the reader's view; tests/client/test_grants.py runs it",
    ),
    (
        "docs/agents.md",
        "python",
        "event = counterseal_client.webhooks",
        "is a part of the reader's view; tests/client/test_webhooks.py runs it",
    ),
    (
        "docs/agents.md",
        "",
        "POST /api/v1/proposals/",
        "shows a request as it is sent; tests/agents/api sends it",
    ),
    (
        "docs/evidence.md",
        "python",
        "",
        "sends the reader's own files; tests/client/test_files.py sends such files",
    ),
    (
        "docs/evidence.md",
        "",
        "POST /api/v1/evidence",
        "shows a request as it is sent; tests/agents/api sends it",
    ),
    ("docs/first-run.md", "", "set -a", HOST),
    ("docs/deploy/systemd.md", "", "", HOST),
    ("docs/deploy/compose.md", "", "", "needs an engine for containers"),
    ("docs/deploy/kubernetes.md", "", "", "needs a cluster"),
    ("docs/deploy/monitoring.md", "", "", HOST),
    ("docs/failover.md", "", "DATABASE_URL=", "needs several servers of PostgreSQL"),
    ("docs/failover.md", "", "synchronous_commit", "is PostgreSQL's configuration"),
    ("docs/failover.md", "", "synchronous_mode", "is Patroni's configuration"),
    ("docs/failover.md", "", "spec:", "is CloudNativePG's configuration"),
    ("CONTRIBUTING.md", "", "batches: Refuse", "shows subjects of commits"),
]


def find_runner(block: Block) -> str:
    """The test that runs the block, "" without one."""
    for page, first, test in RUN_BY:
        if block.page == page and block.first.startswith(first):
            return test
    return ""


def find_excuse(block: Block) -> str:
    """Why the block is not run, "" without a reason."""
    for page, language, first, reason in EXCUSED:
        place = block.page.startswith(page) and block.language == language
        if place and block.first.startswith(first):
            return reason
    return ""
