"""The last section of docs/command-line.md: every command with its examples, from the
table of the server and the parsers of the client.

`python -m tests.house.command_page` writes it again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from counterseal_client.command_line.examples import EXAMPLES
from counterseal_client.command_line.main import build_parser
from hitl.command_line import COMMANDS, Entry
from tests.guards import ROOT

PAGE = ROOT / "docs" / "command-line.md"
HEADING = "## All commands\n"


def build_section() -> str:
    """The section, from its heading to the end of the page."""
    lines = [
        HEADING,
        "Each prints its help with `--help`. These come with the client:",
        "",
        *_build_table(_list_client_commands()),
        "",
        "These need the server (`pip install counterseal`), and act on the gate of",
        "this machine: the one in `STATE`, or that of the environment.",
        "",
        *_build_table(_list_server_commands()),
    ]
    return "\n".join([*lines, ""])


Row = tuple[str, str, tuple[str, ...]]


def _list_client_commands() -> Iterator[Row]:
    (group,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    for action in group._choices_actions:
        name = "tools import" if action.dest == "tools" else action.dest
        yield name, str(action.help), EXAMPLES[action.dest]


def _list_server_commands() -> Iterator[Row]:
    for name, entry in COMMANDS.items():
        verbs = {"": entry} if isinstance(entry, Entry) else entry
        for verb, inner in verbs.items():
            yield f"{name} {verb}".strip(), inner.purpose, inner.examples


def _build_table(rows: Iterator[Row]) -> Iterator[str]:
    yield "| command | what it does | for example |"
    yield "| --- | --- | --- |"
    for name, purpose, examples in rows:
        shown = "<br>".join(f"`{example}`" for example in examples)
        yield f"| `{name}` | {purpose} | {shown} |"


def write_section(text: str) -> str:
    """The page with this section at its end."""
    before = text.partition(HEADING)[0].rstrip()
    return f"{before}\n\n{build_section()}"


if __name__ == "__main__":
    PAGE.write_text(write_section(PAGE.read_text()))
