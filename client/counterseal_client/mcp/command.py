"""The commands: the proxy, the import, and the gate's own server.

    counterseal mcp -- npx some-server
    counterseal mcp --url https://server.example/mcp --port 8808
    counterseal mcp import -- npx some-server
    counterseal mcp serve

`python -m counterseal_client.mcp` is the same as `counterseal mcp`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import uvicorn

from ..errors import CountersealError
from ..gate import AsyncGate
from ..settings import KEY_VARIABLE, URL_VARIABLE, load_settings
from .gate_server import build_gate_server
from .gated_calls import ToolGate, build_thread
from .http_proxy import build_http_proxy, check_thread
from .policy_entries import import_tools, parse_names
from .results import RemoteError
from .stdio_proxy import build_server_command, run_stdio_proxy
from .tool_list import ImportedTools

ACTIONS = ("proxy", "import", "serve")
DEFAULT_PORT = 8808
QUEUE = "<queue>"


class OptionError(Exception):
    """The command line is not in order. The text names the option and the repair."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of all three commands."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=ACTIONS,
        default="proxy",
        help="proxy: put a server's tools behind the gate (default); import: print"
        " policy entries for them; serve: propose and ask by MCP",
    )
    parser.set_defaults(server=[])
    server = parser.add_argument_group("the server")
    server.add_argument("--url", default="", help="its address, for streamable HTTP")
    server.add_argument(
        "--prefix", default="", help="put before the tools' names in the policy"
    )
    server.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="TOOL=NAME",
        help="the name of one tool in the policy",
    )
    server.add_argument(
        "--tools",
        type=Path,
        metavar="FILE",
        help="the imported tools: import writes it, the proxy refuses what differs",
    )
    server.add_argument(
        "--queue", default=QUEUE, help="import: the queue in the entries"
    )
    _add_gate_arguments(parser.add_argument_group("the gate"))
    _add_http_arguments(
        parser.add_argument_group("the proxy's own address, with --url")
    )


def _add_gate_arguments(group: Any) -> None:
    group.add_argument(
        "--gate",
        default="",
        help=f"its address, unless ${URL_VARIABLE} or `counterseal init` gave it; the"
        f" agent's key is in ${KEY_VARIABLE} or from `counterseal init`",
    )
    group.add_argument(
        "--thread", default="", help="the run; without it, each session is one"
    )
    group.add_argument(
        "--wait",
        type=parse_seconds,
        default=25.0,
        metavar="SECONDS",
        help="how long a call waits for people before the client gets a pending result",
    )
    group.add_argument(
        "--call-seconds",
        type=parse_seconds,
        default=300.0,
        metavar="SECONDS",
        help="how long an approved call waits for the server",
    )
    group.add_argument(
        "--ask",
        default="",
        metavar="QUEUE",
        help="the queue, or @login, whose people answer the server's elicitations;"
        " without --url",
    )
    group.add_argument(
        "--rationale", default="", help="why this agent calls tools, for all proposals"
    )


def _add_http_arguments(group: Any) -> None:
    group.add_argument(
        "--host", default="127.0.0.1", help="where it listens (default: %(default)s)"
    )
    group.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="default: %(default)s"
    )
    group.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients reach the proxy",
    )


def parse_seconds(text: str) -> float:
    """A number of seconds from 0 on. Raises ArgumentTypeError."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError("write a number of seconds, 0 or more")
    return seconds


def run_command(options: argparse.Namespace) -> int:
    """Run the command of these options; 0 when all is well. Errors go to stderr: stdout
    belongs to MCP."""
    try:
        if options.action == "import":
            return anyio.run(_import, options)
        if options.action == "serve":
            return anyio.run(_serve, options)
        return _run_proxy(options)
    except RemoteError as error:
        sys.stderr.write(f"counterseal: {error.message}\n")
    except (OptionError, CountersealError, ValueError, OSError) as error:
        sys.stderr.write(f"counterseal: {error}\n")
    return 2


def _run_proxy(options: argparse.Namespace) -> int:
    check_server(options)
    imported = ImportedTools()
    if options.tools is not None:
        imported = ImportedTools.load_file(options.tools)
    if options.url:
        return _serve_http(options, imported)
    return anyio.run(_serve_stdio, options, imported)


async def _serve_stdio(options: argparse.Namespace, imported: ImportedTools) -> int:
    async with build_gate(options) as gate:
        thread = options.thread or build_thread()
        tool_gate = build_tool_gate(options, gate)
        await run_stdio_proxy(options.server, tool_gate, imported, thread, options.ask)
    return 0


def _serve_http(options: argparse.Namespace, imported: ImportedTools) -> int:
    gate = build_gate(options)
    app = build_http_proxy(
        options.url,
        build_tool_gate(options, gate),
        imported,
        thread=options.thread,
        hosts=options.allow_host,
    )
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning")
    return 0


async def _import(options: argparse.Namespace) -> int:
    check_server(options)
    names = parse_names(options.prefix, options.map)
    server = options.url or build_server_command(options.server)
    found = await import_tools(server, names, queue=options.queue)
    sys.stdout.write(found.entries)
    if options.tools is not None:
        options.tools.write_text(found.fingerprints, "utf-8")
        sys.stderr.write(f"counterseal: {found.count} tools in {options.tools}\n")
    return 0


async def _serve(options: argparse.Namespace) -> int:
    async with build_gate(options) as gate:
        server = build_gate_server(gate, options.thread or build_thread())
        await server.run_stdio_async()
    return 0


def build_gate(options: argparse.Namespace) -> AsyncGate:
    """The agent's gate. Raises OptionError and InvalidSettings."""
    settings = load_settings(url=options.gate)
    if not settings.url:
        raise OptionError(f"--gate: give the gate's address, or set {URL_VARIABLE}.")
    if not settings.key:
        raise OptionError(f"{KEY_VARIABLE}: set it to the agent's key.")
    if options.thread:
        check_thread(options.thread, "--thread")
    return AsyncGate(settings.url, settings.key)


def build_tool_gate(options: argparse.Namespace, gate: AsyncGate) -> ToolGate:
    """The gate of one server's tools. Raises ValueError for names that are none."""
    return ToolGate(
        gate,
        parse_names(options.prefix, options.map),
        wait_seconds=options.wait,
        call_seconds=options.call_seconds,
        rationale=options.rationale,
    )


def check_server(options: argparse.Namespace) -> None:
    """Raise OptionError unless the options name one server."""
    if bool(options.server) == bool(options.url):
        raise OptionError(
            "Name one server: its command after `--`, or its address with --url."
        )


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line before the first `--`, and those after it: the
    server's command, whose own options stay its own."""
    own = list(words)
    if "--" not in own:
        return own, []
    at = own.index("--")
    return own[:at], own[at + 1 :]


def parse_words(
    words: Sequence[str], program: str = "counterseal mcp"
) -> argparse.Namespace:
    """The options of a command line, for `run_command`. `program` stands in its
    errors."""
    parser = argparse.ArgumentParser(
        prog=program,
        usage="counterseal mcp [proxy|import|serve] [options] [-- SERVER COMMAND]",
        description="Put the tools of an MCP server behind the gate.",
    )
    add_arguments(parser)
    own, command = split_words(words)
    options = parser.parse_args(own)
    options.server = command
    return options


def main() -> int:
    """The entry of `python -m counterseal_client.mcp`."""
    return run_command(parse_words(sys.argv[1:]))
