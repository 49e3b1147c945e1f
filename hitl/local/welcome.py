"""What `counterseal up` prints once it runs: how people get in, and the lines by which
a program of this machine makes its first call."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

from agents import ready_agent
from hitl import client_page
from hitl.management.commands.setup_link import build_link
from policies.solo import is_solo

from .layout import Layout


def describe_way_in(here: Layout) -> Iterator[str]:
    """The link to the first account or, in solo mode, to the only one."""
    link = build_link()
    if link and is_solo():
        yield f"Sign in, once: {link}"
        yield "  (the next link: counterseal setup-link)"
        yield f"  Password: {here.solo_file}"
    elif link:
        yield f"The first account, an administrator's: {link}"


def describe_first_call() -> Iterator[str]:
    """Two lines to paste, and whether their agent is ready."""
    agent = ready_agent.find_ready_agent()
    if agent is None and build_link() == "":
        return
    yield "Hold your own function:"
    yield f"  {client_page.build_install_line()}"
    yield ""
    yield from indent(client_page.FIRST_CALL, "  ").splitlines()
    yield ""
    if agent is not None:
        yield f"It proposes as the agent {agent.slug}, which may call every tool."
    else:
        name = ready_agent.find_user_name()
        yield f"It proposes as the agent {name}, once there is the first account."
