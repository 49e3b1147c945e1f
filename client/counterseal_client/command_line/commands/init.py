"""`counterseal init`: check a gate and a key, keep both for the other commands, and
write the first lines of an agent."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...calls import Connection, HttpCall
from ...claude_code.gate_tools import ALL_GATE_TOOLS
from ...claude_code.hook_settings import format_hook_settings
from ...errors import ApiError, Unreachable
from ...gate import Gate
from ...models import ToolDeclaration
from ...people import PeopleOperations
from ...settings import (
    KEY_VARIABLE,
    TOKEN_VARIABLE,
    InvalidSettings,
    Settings,
    check_key,
    check_token,
    check_url,
    find_settings_file,
    is_encrypted,
    load_file,
    load_settings,
    save_settings,
    write_file,
)
from ...terminal.text import Line, Screen, Style, ask_line
from ..outcomes import ExitCode
from ..sessions import IMPATIENT, InvalidUsage, read_secret
from ..starters import STARTERS, build_starter, find_writable_tools

CLAUDE_CODE = "claude-code"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "init",
        help="connect this machine to a gate",
        description="Check a gate and an agent's key, keep both in a file for the other"
        " commands, and write the first lines of an agent. The key is asked for, or"
        " read from standard input; it is never an argument.",
        allow_abbrev=False,
    )
    parser.add_argument("url", nargs="?", default="", metavar="URL", help="the gate")
    parser.add_argument(
        "--person",
        action="store_true",
        help="ask for a person's token, for `counterseal review`",
    )
    parser.add_argument(
        "--new-key", action="store_true", help="ask even where a key or token is known"
    )
    parser.add_argument(
        "--framework",
        choices=[*STARTERS, CLAUDE_CODE],
        help="print the first lines of an agent, or the settings of Claude Code",
    )
    parser.add_argument(
        "--tool", default="", metavar="NAME", help="the tool that they call"
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write them there instead"
    )
    parser.set_defaults(run=run, by_person=False)


def run(given: argparse.Namespace) -> ExitCode:
    """Connect an agent, or a person."""
    check_options(given)
    given.by_person = given.person
    screen = Screen(sys.stdout)
    url = check_url(given.url or load_settings().url or ask_address())
    known = load_settings(url=url)
    if not is_encrypted(url):
        text = "Warning: without https:// anyone on the network path can read the key."
        Screen(sys.stderr).print_line(Line(text, style=Style.WARNING))
    check_gate(url)
    screen.print_line(f"The gate at {url} answers.")
    if given.person:
        connect_person(screen, known, ask=given.new_key)
        return ExitCode.DONE
    tools = connect_agent(screen, known, ask=given.new_key)
    if given.framework == CLAUDE_CODE:
        give_hook_settings(screen, given.write, tools)
    elif given.framework:
        give_starter(screen, given, tools)
    else:
        command = "counterseal init --framework function --write agent.py"
        screen.print_line(Line(f"Next: {command}", copied=True))
    return ExitCode.DONE


def check_options(given: argparse.Namespace) -> None:
    """Refuse what cannot end well, before anything is asked or sent."""
    if (given.tool or given.write) and not given.framework:
        raise InvalidUsage("`--tool` and `--write` need `--framework`.")
    if given.person and given.framework:
        raise InvalidUsage("`--person` and `--framework` cannot be used together.")
    if given.framework == CLAUDE_CODE:
        check_hook_options(given)
        return
    if given.write and not re.fullmatch(r"[\w.-]+\.py", given.write.name):
        raise InvalidUsage(
            f"{given.write} is not the name of a Python file.",
            next_step="Name one like agent.py.",
        )
    if given.write and given.write.exists():
        raise InvalidUsage(
            f"{given.write} exists, and init never overwrites a file.",
            next_step="Name another one.",
        )


def check_hook_options(given: argparse.Namespace) -> None:
    """Refuse what does not fit the settings of Claude Code."""
    if given.tool:
        raise InvalidUsage("`--tool` cannot be used with `--framework claude-code`.")
    if given.write and given.write.suffix != ".json":
        raise InvalidUsage(
            f"{given.write} is not a settings file of Claude Code.",
            next_step="Name .claude/settings.json.",
        )


def ask_address() -> str:
    """The address of the gate. Raises InvalidUsage where nobody can be asked."""
    if not sys.stdin.isatty():
        raise InvalidUsage(
            "Say where the gate is.",
            next_step="For example: counterseal init https://gate.example.com",
        )
    return ask_line("Address of the gate: ")


def check_gate(url: str) -> None:
    """Raise InvalidSettings unless a gate of Counterseal answers there."""
    call = Connection(url, "", IMPATIENT).build_call("GET", "/whoami")
    call = HttpCall(call.method, call.url, {}, read_seconds=call.read_seconds)
    with Gate(url, "", backoff=IMPATIENT) as gate:
        try:
            gate.run(Connection(url, "", IMPATIENT).send_call(call))
        except ApiError as error:
            if error.code == "bad_key":  # a gate that asks who calls
                return
            if error.status >= 500:
                raise
        except Unreachable as error:
            raise InvalidSettings(
                f"No gate answers at {url}.",
                next_step="Check the address, and that the gate runs.",
            ) from error
    raise InvalidSettings(
        f"What answers at {url} is not a Counterseal gate.",
        next_step="Give the address of its pages, without a path.",
    )


def connect_agent(
    screen: Screen, known: Settings, *, ask: bool
) -> tuple[ToolDeclaration, ...]:
    """Check the agent's key, print which agent it is and what it may propose, and keep
    it. Returns the tools."""
    key = "" if ask else known.key
    if not key:
        key = check_key(
            read_secret("Key of the agent", describe_registration(known.url))
        )
    with Gate(known.url, key, backoff=IMPATIENT) as gate:
        agent, tools = gate.whoami(), gate.tools()
    screen.print_line(
        f"The key is that of agent {agent.agent} ({agent.name}): {agent.state},"
        f" risk up to {agent.risk_ceiling}."
    )
    screen.print_lines(describe_tools(agent.agent, tools))
    keep_settings(screen, known.url, key=key)
    return tools


def connect_person(screen: Screen, known: Settings, *, ask: bool) -> None:
    """Check the person's token and keep it."""
    token = "" if ask else known.token
    if not token:
        link = Line(f"You make a token at {known.url}/me/tokens/", copied=True)
        token = check_token(read_secret("Token", [link]))
    people = PeopleOperations(Connection(known.url, token, IMPATIENT))
    with Gate(known.url, "", backoff=IMPATIENT) as gate:
        waiting = gate.run(people.list_requests())
    mine = sum(1 for request in waiting if request.verdicts)
    keep_settings(screen, known.url, token=token)
    screen.print_line(
        f"The token is valid. Waiting for you: {mine} (counterseal review)"
    )


def describe_registration(url: str) -> Iterator[Line]:
    """How an agent gets its key: only an administrator can register one."""
    yield Line("An administrator registers the agent, on the machine of the gate:")
    command = "counterseal agents register NAME --owner OWNER --by ADMINISTRATOR"
    yield Line(f"{command} --tool TOOL", indent=2, copied=True)
    text = f"The command prints the key once. The agents: {url}/agents/"
    yield Line(text, copied=True)


def describe_tools(agent: str, tools: tuple[ToolDeclaration, ...]) -> Iterator[Line]:
    """What the policy lets the agent propose."""
    if not tools:
        yield Line(
            "It is not allowed to propose any tool yet. An administrator adds one:"
        )
        text = f"counterseal agents change {agent} --by ADMINISTRATOR --add-tool TOOL"
        yield Line(text, indent=2)
        return
    yield Line("It may propose:")
    for tool in tools:
        facts = f"{tool.risk} risk, {tool.tier} before rules apply"
        yield Line(f"{tool.name}: {tool.title or tool.name} ({facts})", indent=2)


def keep_settings(screen: Screen, url: str, *, key: str = "", token: str = "") -> None:
    """Store what is not in the environment; what the file has of this gate stays."""
    stored = load_file(find_settings_file())
    if stored.url != url:
        stored = Settings(url)
    if key and os.environ.get(KEY_VARIABLE, "").strip() == key:
        screen.print_line(f"The key stays in {KEY_VARIABLE}; it is not stored.")
        key = ""
    if token and os.environ.get(TOKEN_VARIABLE, "").strip() == token:
        screen.print_line(f"The token stays in {TOKEN_VARIABLE}; it is not stored.")
        token = ""
    path = save_settings(Settings(url, key or stored.key, token or stored.token))
    screen.print_line(Line(f"Stored, readable by you alone: {path}", copied=True))


def give_starter(
    screen: Screen, given: argparse.Namespace, tools: tuple[ToolDeclaration, ...]
) -> None:
    """Print the first lines of an agent, or write them to a file."""
    tool = choose_tool(given.tool, tools)
    name = given.write.name if given.write else "agent.py"
    text = build_starter(given.framework, tool, name)
    if given.write is None:
        screen.print_line()
        screen.print_whole(text)
        return
    write_file(given.write, text, mode=0o644, replace=False)
    screen.print_line(f"Wrote {given.write}. The top of the file says how to run it.")


def give_hook_settings(
    screen: Screen, file: Path | None, tools: tuple[ToolDeclaration, ...]
) -> None:
    """Print the settings of Claude Code, or write them to a file that is not there
    yet."""
    missing = sorted(set(ALL_GATE_TOOLS) - {tool.name for tool in tools})
    if missing:
        screen.print_line(
            f"The agent is not yet allowed to propose: {', '.join(missing)}."
        )
        text = "Their entries for the policy: counterseal hook claude-code --policy"
        screen.print_line(Line(text, copied=True))
    text = format_hook_settings()
    if file is None:
        screen.print_line("The settings for .claude/settings.json:")
        screen.print_whole(text)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_file(file, text, mode=0o644, replace=False)
    except FileExistsError:
        screen.print_line(f"{file} exists and stays as it is. Add these entries to it:")
        screen.print_whole(text)
        return
    screen.print_line(
        f"Wrote {file}. It takes effect in the next session of Claude Code."
    )


def choose_tool(name: str, tools: tuple[ToolDeclaration, ...]) -> ToolDeclaration:
    """The tool of the lines. Raises InvalidUsage."""
    found = find_writable_tools(tools)
    chosen = [tool for tool in found if not name or tool.name == name]
    if chosen:
        return chosen[0]
    names = ", ".join(tool.name for tool in found) or "none"
    raise InvalidUsage(
        f"init writes no function for {shlex.quote(name) if name else 'any tool'}.",
        next_step=f"Tools that this agent may propose, as a function: {names}.",
    )
