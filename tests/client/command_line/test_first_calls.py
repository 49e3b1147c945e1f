"""The first call of a framework's program, held by the real gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterseal_client.command_line import first_calls
from counterseal_client.command_line.frameworks import FRAMEWORKS, Framework
from counterseal_client.command_line.sessions import InvalidUsage
from reviews.models import ApprovalRequest
from tests import factories
from tests.client.command_line.shell import Shell
from tests.client.test_tools import Desk
from tests.stack import wait_until

AGNO = FRAMEWORKS["agno"]


def give_version(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    monkeypatch.setattr(Framework, "find_version", lambda row: version)


def test_a_framework_that_is_not_installed_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_version(monkeypatch, None)
    program = first_calls.build_program(AGNO, Path("mine.py"))
    steps = [line.text for line in first_calls.describe_steps(program)]
    assert steps == [
        'pip install "counterseal-client[agno]"',
        "python mine.py start",
        "python mine.py resume",
    ]
    assert "pip install" in program.needs


def test_a_framework_that_is_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_version(monkeypatch, "3.1.9")
    with pytest.raises(InvalidUsage, match=r"agno 3\.1\.9 is installed.*3\.1\.10"):
        first_calls.build_program(AGNO, Path("mine.py"))
    give_version(monkeypatch, "3.2.0rc1")
    assert not first_calls.build_program(AGNO, Path("mine.py")).needs


@pytest.mark.servers
def test_the_first_call_is_held_and_its_page_is_named(
    agent_shell: Shell, desk: Desk
) -> None:
    factories.hold_unknown_tools(desk.people.people, "money")
    process = agent_shell.start("init", "humanlayer", "--run")
    wait_until(lambda: ApprovalRequest.objects.exists(), 20)
    request = ApprovalRequest.objects.get()
    desk.decide()
    printed, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, ""), printed
    assert "Held: send_note waits for a person." in printed
    assert f"/requests/{request.pk}/" in printed
    assert "Sending to ann under" in printed
