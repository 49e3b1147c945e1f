"""Prints the state machines as Mermaid, from the tuples that the code runs on."""

from __future__ import annotations

from collections.abc import Iterator

from agents import transitions as agents
from journal.state_machine import NO_SOURCE, Machine
from policies import versions
from reviews import transitions as reviews

MACHINES = (
    reviews.request,
    reviews.grant,
    reviews.execution,
    reviews.alarm,
    reviews.repair,
    reviews.question,
    agents.thread,
    agents.delivery,
    versions.machine,
)
HEAD = """\
# State machines

`manage.py state_diagram` prints this page from the tables that the code runs on; a test
compares. Every arrow is one edge: its event, and the log record it leaves.
"""


def format_page() -> str:
    """All machines as one Markdown page."""
    return "\n".join([HEAD, *(_format_section(machine) for machine in MACHINES)])


def format_diagram(machine: Machine) -> str:
    """One machine as a `stateDiagram-v2`, with its edges in the order of its table."""
    return "\n".join(
        ["stateDiagram-v2", *_format_arrows(machine), *_format_final_states(machine)]
    )


def _format_section(machine: Machine) -> str:
    title = machine.name.capitalize()
    return f"## {title}\n\n```mermaid\n{format_diagram(machine)}\n```\n"


def _format_arrows(machine: Machine) -> Iterator[str]:
    for edge in machine.edges:
        source = "[*]" if edge.source == NO_SOURCE else edge.source
        yield f"    {source} --> {edge.target}: {edge.event} ({edge.logged_as})"


def _format_final_states(machine: Machine) -> Iterator[str]:
    """An arrow to the end from each status that no edge leaves."""
    sources = {edge.source for edge in machine.edges}
    targets = dict.fromkeys(edge.target for edge in machine.edges)
    return (f"    {status} --> [*]" for status in targets if status not in sources)
