"""`counterseal mcp`: an MCP server's tools behind the gate."""

from __future__ import annotations

import argparse
from typing import Any

from ..outcomes import ExitCode
from ..sessions import InvalidUsage


def add_parser(commands: Any) -> None:
    add_words_parser(commands, "mcp", "put an MCP server's tools behind the gate", run)


def add_words_parser(commands: Any, name: str, text: str, run: Any) -> None:
    """Add a command whose words another package parses: they may hold options of its
    own, which argparse would take for ours. No word begins with the prefix here, so
    every word counts as an argument."""
    parser = commands.add_parser(name, help=text, add_help=False, prefix_chars="\0")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    parser.set_defaults(run=run, by_person=False)


def run(given: argparse.Namespace) -> ExitCode:
    """Run the command of these words."""
    return run_words(given.words, "counterseal mcp")


def run_words(words: list[str], program: str) -> ExitCode:
    """Run a command of `counterseal_client.mcp`. Raises InvalidUsage without its
    extra."""
    try:
        from ...mcp import command
    except ImportError as error:
        raise InvalidUsage(
            f"This needs the package {error.name}.",
            next_step='Run `pip install "counterseal-client[mcp]"`.',
        ) from None
    options = command.parse_words(words, program)
    return ExitCode.DONE if command.run_command(options) == 0 else ExitCode.USAGE
