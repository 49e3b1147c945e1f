"""docs/command-line.md lists every command."""

from __future__ import annotations

from tests.house import command_page


def test_the_list_of_commands_is_fresh() -> None:
    text = command_page.PAGE.read_text()
    assert text == command_page.write_section(text), (
        "python -m tests.house.command_page"
    )
