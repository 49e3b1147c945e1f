"""Whatever command the product prints, in an error, a help text or a page, is accepted
when somebody pastes it."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import suppress

import pytest
from django.core.management import CommandError

from tests.printed.commands import Command, find_commands, find_hidden_names, paste
from tests.printed.texts import Text, list_texts


class AskedForHelp(Exception):
    """The command is `--help`, which ends the parser."""


def raise_help(parser: ArgumentParser) -> None:
    raise AskedForHelp


COMMANDS = {
    (text.path, command.line, command.whole): command
    for text in list_texts()
    for command in find_commands(text)
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=str)
def test_it_is_accepted(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, suppress(AskedForHelp):
        patched.setattr(ArgumentParser, "print_help", raise_help)
        paste(command, patched)


def test_commands_have_the_names_that_people_type() -> None:
    """`manage.py` is for developers: a wheel has none."""
    found = {str(text): find_hidden_names(text) for text in list_texts()}
    assert {text: names for text, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Run `counterseal migrate`.", ["counterseal migrate"]),
        ("the database is old: counterseal migrate", ["counterseal migrate"]),
        ("Run it alone (counterseal up --demo): leave", ["counterseal up --demo"]),
        ("`counterseal` alone is a program, counterseal_client is not", []),
    ],
)
def test_a_command_is_found_in_a_sentence(text: str, lines: list[str]) -> None:
    assert [found.line for found in find_commands(Text("x", 1, text))] == lines


@pytest.mark.parametrize(
    "line",
    [
        "counterseal agents change AGENT --add-tool TOOL",
        "counterseal people passwords NAME",
        "counterseal unknown --option",
        "pip install counterseal-client[nothing]",
        "manage.py unknown",
    ],
)
def test_a_wrong_command_is_noticed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (command, *_) = find_commands(Text("x", 1, f"Run `{line}`."))
    with pytest.raises((AssertionError, CommandError, SystemExit)):
        paste(command, monkeypatch)
