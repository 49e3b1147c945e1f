"""`counterseal init`: check a gate and a key, keep both for the other commands, and
write the first lines of an agent in its framework."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...calls import Connection, HttpCall
from ...claude_code.gate_tools import ALL_GATE_TOOLS
from ...claude_code.hook_settings import format_hook_settings
from ...errors import ApiError, Unreachable
from ...gate import Gate
from ...models import Identity, ToolDeclaration
from ...people import PeopleOperations
from ...settings import (
    KEY_VARIABLE,
    TOKEN_VARIABLE,
    InvalidSettings,
    Settings,
    check_key,
    check_token,
    check_url,
    find_running_file,
    find_settings_file,
    is_encrypted,
    load_file,
    load_settings,
    save_settings,
    write_file,
)
from ...terminal.text import Line, Screen, Style, ask_line
from ..first_calls import Program, build_program, run_first_call, write_program
from ..frameworks import FRAMEWORKS
from ..outcomes import ExitCode
from ..sessions import IMPATIENT, InvalidUsage, read_secret
from ..starters import NOTE_TOOL, build_example, build_starter, find_writable_tools

FUNCTION, CLAUDE_CODE = "function", "claude-code"
TYPESCRIPT = [name for name, row in FRAMEWORKS.items() if row.is_typescript]
CHOICES = (FUNCTION, *FRAMEWORKS, CLAUDE_CODE)
EVERY_TOOL = "*"
"""Stands for all tools in what an agent may propose."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "init",
        help="connect this machine to a gate, and begin in a framework",
        usage="counterseal init [URL] [FRAMEWORK] [options]",
        description="Check a gate and an agent's key, and keep both in a file for the"
        " other commands. The key is asked for, or read from standard input; it is"
        " never an argument. With a framework, write the first lines of an agent to a"
        " file, for the version that is installed. Frameworks: "
        + ", ".join(CHOICES)
        + ".",
        allow_abbrev=False,
    )
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="the gate's address, and a framework"
    )
    parser.add_argument(
        "--person",
        action="store_true",
        help="ask for a person's token, for `counterseal review`",
    )
    parser.add_argument(
        "--new-key", action="store_true", help="ask even where a key or token is known"
    )
    parser.add_argument(
        "--file", type=Path, help="the file to write, instead of the usual one"
    )
    parser.add_argument(
        "--force", action="store_true", help="write it even where there is one"
    )
    parser.add_argument(
        "--run",
        dest="runs",
        action="store_true",
        help="run the program until its first call is held",
    )
    parser.add_argument(
        "--tool",
        default="",
        metavar="NAME",
        help="the tool that the function stands for",
    )
    parser.set_defaults(run=run, by_person=False)


def run(given: argparse.Namespace) -> ExitCode:
    """Connect an agent, or a person."""
    read_words(given)
    check_options(given)
    given.by_person = given.person
    screen = Screen(sys.stdout)
    url = check_url(given.url or load_settings().url or ask_address())
    given.url = url
    known = load_settings(url=url)
    if not is_encrypted(url):
        text = "Warning: without https:// anyone on the network path can read the key."
        Screen(sys.stderr).print_line(Line(text, style=Style.WARNING))
    check_gate(url)
    screen.print_line(f"The gate at {url} answers.")
    if given.person:
        connect_person(screen, known, ask=given.new_key)
        return ExitCode.DONE
    agent, tools = connect_agent(screen, known, ask=given.new_key)
    if given.framework == CLAUDE_CODE:
        every = EVERY_TOOL in agent.tools
        missing = () if every else list_missing(tools)
        give_hook_settings(screen, given.file, missing, force=given.force)
    elif given.framework:
        return give_program(screen, given, tools)
    else:
        command = "counterseal init function --run"
        screen.print_line(Line(f"Next: {command}", copied=True))
    return ExitCode.DONE


def read_words(given: argparse.Namespace) -> None:
    """Tell the address from the framework, and choose the file. Raises InvalidUsage."""
    given.url = given.framework = ""
    for word in given.words:
        name = "framework" if word in CHOICES else "url"
        if getattr(given, name):
            raise InvalidUsage("Give at most one address and one framework.")
        if name == "url" and "." not in word and ":" not in word:
            raise InvalidUsage(
                f"There is no framework {word}, and it is no address.",
                next_step=f"Frameworks: {', '.join(CHOICES)}.",
            )
        setattr(given, name, word)
    usual = {FUNCTION: "agent.py", CLAUDE_CODE: ".claude/settings.json"}
    usual |= {name: row.file for name, row in FRAMEWORKS.items()}
    if given.framework and given.file is None:
        given.file = Path(usual[given.framework])


def check_options(given: argparse.Namespace) -> None:
    """Refuse what cannot end well, before anything is asked or sent."""
    if not given.framework and (given.file or given.force or given.runs):
        raise InvalidUsage(
            "`--file`, `--force` and `--run` need a framework.",
            next_step="For example: counterseal init function --run",
        )
    if given.tool and given.framework != FUNCTION:
        raise InvalidUsage("`--tool` needs the framework `function`.")
    if given.person and given.framework:
        raise InvalidUsage("`--person` and a framework cannot be used together.")
    if given.framework == CLAUDE_CODE:
        if given.runs:
            raise InvalidUsage("`--run` cannot be used with `claude-code`: start it.")
        if given.file.suffix != ".json":
            raise InvalidUsage(
                f"{given.file} is not a settings file of Claude Code.",
                next_step="Name .claude/settings.json.",
            )
    elif given.framework:
        check_program_file(given)


def check_program_file(given: argparse.Namespace) -> None:
    """Refuse a file of another language, and one that is there."""
    ending = ".ts" if given.framework in TYPESCRIPT else ".py"
    if not re.fullmatch(rf"[\w.-]+\{ending}", given.file.name):
        raise InvalidUsage(
            f"{given.file} is not the name of a program of {given.framework}.",
            next_step=f"Name one like agent{ending}.",
        )
    if given.file.exists() and not given.force:
        raise InvalidUsage(
            f"{given.file} exists, and init overwrites a file only with `--force`.",
            next_step="Name another one with `--file`.",
        )


def ask_address() -> str:
    """The address of the gate. Raises InvalidUsage where nobody can be asked."""
    if not sys.stdin.isatty():
        raise InvalidUsage(
            "Say where the gate is.",
            next_step="Start one on this machine with `counterseal up --solo`, or give"
            " its address: counterseal init https://gate.example.com",
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
) -> tuple[Identity, tuple[ToolDeclaration, ...]]:
    """Check the agent's key, print which agent it is and what it may propose, and keep
    it. Returns the agent and its tools."""
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
    screen.print_lines(describe_tools(agent, tools))
    keep_settings(screen, known.url, key=key)
    return agent, tools


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


def describe_tools(
    agent: Identity, tools: tuple[ToolDeclaration, ...]
) -> Iterator[Line]:
    """What the policy lets the agent propose."""
    if EVERY_TOOL in agent.tools:
        yield Line(
            "It may propose every tool, also one that the policy does not declare where"
            " the policy holds such calls for a person."
        )
    elif not tools:
        yield Line(
            "It is not allowed to propose any tool yet. An administrator adds one:"
        )
        name = agent.agent
        text = f"counterseal agents change {name} --by ADMINISTRATOR --add-tool TOOL"
        yield Line(text, indent=2)
    if tools:
        yield Line("It may propose:")
    for tool in tools:
        facts = f"{tool.risk} risk, {tool.tier} before rules apply"
        yield Line(f"{tool.name}: {tool.title or tool.name} ({facts})", indent=2)


def keep_settings(screen: Screen, url: str, *, key: str = "", token: str = "") -> None:
    """Store what is not in the environment; what the file has of this gate stays."""
    running = load_file(find_running_file())
    if key and (running.url, running.key) == (url, key):
        return  # `counterseal up` says so in a file of its own
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


def give_program(
    screen: Screen, given: argparse.Namespace, tools: tuple[ToolDeclaration, ...]
) -> ExitCode:
    """Write the program of a framework, and run it where that is asked for."""
    if given.framework == FUNCTION:
        program = build_function(given.file, choose_tool(given.tool, tools))
    else:
        program = build_program(FRAMEWORKS[given.framework], given.file)
    write_program(screen, program, force=given.force)
    if not given.runs:
        return ExitCode.DONE
    return run_first_call(screen, load_settings(url=given.url), program)


def build_function(file: Path, tool: ToolDeclaration) -> Program:
    """The program of a plain function."""
    words = f"python {shlex.quote(str(file))} order_78291"
    start = f"{words} {shlex.quote(build_example(tool))}"
    return Program(build_starter(tool, file.name), file, start)


def list_missing(tools: tuple[ToolDeclaration, ...]) -> list[str]:
    """The tools of the hook of Claude Code that are not among these."""
    return sorted(set(ALL_GATE_TOOLS) - {tool.name for tool in tools})


def give_hook_settings(
    screen: Screen, file: Path, missing: Sequence[str], *, force: bool
) -> None:
    """Write the settings of Claude Code to a file, or print them if there is one.
    `missing` are tools of the hook that the agent may not propose."""
    if missing:
        screen.print_line(
            f"The agent is not yet allowed to propose: {', '.join(missing)}."
        )
        text = "Their entries for the policy: counterseal hook claude-code --policy"
        screen.print_line(Line(text, copied=True))
    text = format_hook_settings()
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_file(file, text, mode=0o644, replace=force)
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
    if not found and not name:
        return NOTE_TOOL
    chosen = [tool for tool in found if not name or tool.name == name]
    if chosen:
        return chosen[0]
    names = ", ".join(tool.name for tool in found) or "none"
    raise InvalidUsage(
        f"init writes no function for {shlex.quote(name) if name else 'any tool'}.",
        next_step=f"Tools that this agent may propose, as a function: {names}.",
    )
