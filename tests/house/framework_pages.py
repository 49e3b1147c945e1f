"""The first lines of each page in docs/frameworks, from the table of frameworks:
install, a gate, `counterseal init`, run, what you see.

`python -m tests.house.framework_pages` writes them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill

from counterseal_client.command_line.frameworks import FRAMEWORKS, Framework
from tests.guards import ROOT

WIDTH = 100
CODE = re.compile(r"`[^`]+`")
PAGES = ROOT / "docs" / "frameworks"
# The code block below the title, and the paragraph below that.
HEAD = re.compile(r"\A(# [^\n]+\n\n)```\n.*?\n```\n\n.*?\n\n", re.S)
CLAUDE_CODE = [
    ("pip install counterseal", ""),
    ("counterseal up --solo", "a gate of your own, in a terminal of its own"),
    ("counterseal init claude-code", "writes .claude/settings.json"),
    ("claude", "ask it to change a file: the call is held"),
]
HELD_EDIT = (
    "Claude waits, and the page of the gate shows the file and the change. Approve it"
    " there, and Claude goes on; reject it, and Claude reads your reason."
)
RUN = (
    "`counterseal init {name} --run` makes the first call at once, and prints its page."
)
HELD = (
    "The call of `send_note` is held, and the gate shows its page. {run}Decide there;"
    " then {end} `Sending to ann`."
)
TYPESCRIPT = (
    "{held} `COUNTERSEAL_URL` and `COUNTERSEAL_KEY` name the gate and the agent's key;"
    " those of your own gate are in `~/.local/state/counterseal/gate.json`."
)


def describe_outcome(row: Framework) -> str:
    """What somebody sees who does these steps."""
    alone = not (row.is_typescript or row.server)
    run = f"{RUN.format(name=row.name)} " if alone else ""
    end = f"`{row.resume.partition(' ')[0]}` prints" if row.resume else "it prints"
    held = HELD.format(run=run, end=end)
    return TYPESCRIPT.format(held=held) if row.is_typescript else held


def build_heads() -> Mapping[Path, str]:
    """The first lines of each page, without its title."""
    heads = {PAGES / "claude-code.md": _format_head(CLAUDE_CODE, HELD_EDIT)}
    for row in FRAMEWORKS.values():
        if not row.page:
            head = _format_head(list(_list_steps(row)), describe_outcome(row))
            heads[PAGES / row.page_name] = head
    return heads


def _list_steps(row: Framework) -> Iterator[tuple[str, str]]:
    package = row.install_command.removeprefix("pip install ")
    if row.is_typescript:
        yield f"pip install counterseal && {row.install_command}", ""
    else:
        package = package.removeprefix("counterseal-client").strip()
        yield f"pip install counterseal {package}".strip(), ""
    yield "counterseal up --solo", "a gate of your own, in a terminal of its own"
    yield f"counterseal init {row.name}", f"writes {row.file}"
    if row.server:
        yield row.server, "in a terminal of its own"
    if row.serve:
        yield row.build_command(row.serve), "in a terminal of its own"
    if row.resume:
        yield row.build_command(row.start), "proposes, and ends"
        yield row.build_command(row.resume), "after you have decided"
    else:
        yield row.build_command(row.start), "waits until you have decided"


def _format_head(steps: list[tuple[str, str]], seen: str) -> str:
    longest = max(len(command) for command, why in steps if why)
    lines = [
        f"{command:<{longest}}  # {why}" if why else command for command, why in steps
    ]
    return "\n".join(["```", *lines, "```", "", fill_text(seen), "", ""])


def fill_text(text: str) -> str:
    """A paragraph of the page's width, that cuts no code."""
    whole = CODE.sub(lambda match: match[0].replace(" ", "\0"), text)
    return fill(whole, WIDTH, break_on_hyphens=False).replace("\0", " ")


def write_head(text: str, head: str) -> str:
    """A page with these first lines in place of those that it has."""
    return HEAD.sub(lambda match: f"{match[1]}{head}", text, count=1)


if __name__ == "__main__":
    for page, head in build_heads().items():
        page.write_text(write_head(page.read_text(), head))
