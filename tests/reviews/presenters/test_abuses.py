"""No command of the corpus passes in silence: each is called out or not decoded."""

from __future__ import annotations

import pytest

from reviews.presenters import present_effect
from tests import corpora
from tests.desk.argument_form.browsers import tool_of

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOL = tool_of(COMMAND, presenter="shell", effect="Run {command}")
ORDINARY = [
    "ls -la /srv/reports",
    "cat notes.txt | grep -c order",
    "head -n 20 app.log",
    "wc -l *.csv",
    "git status",
    "git log --oneline -5",
    "grep -rn total src/",
    "sort names.txt | uniq -c",
    "date +%F",
]


@pytest.mark.parametrize("command", corpora.flat(corpora.shell_abuses()))
def test_it_is_called_out(command: str) -> None:
    shown = present_effect(TOOL, {"command": command})
    assert shown.uninspectable or [tag.text for tag in shown.tags if tag.loud]


@pytest.mark.parametrize("command", ORDINARY)
def test_what_only_reads_is_shown_without_noise(command: str) -> None:
    shown = present_effect(TOOL, {"command": command})
    loud = [tag.text for tag in shown.tags if tag.loud]
    assert [text for text in loud if not text.startswith("Glob")] == []
    assert not shown.uninspectable
