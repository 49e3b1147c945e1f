"""T15: shell commands that do more than they seem to. None passes in silence: the page
calls it out or says that it could not be inspected, and shows every word. I31."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests import corpora
from tests.browser.conftest import SitDown
from tests.browser.facts import facts
from tests.browser.hostile import Stage, sampled, stage
from tests.browser.inspecting import Inspector
from tests.conftest import Gate
from tests.reviews.presenters.test_abuses import ORDINARY

pytestmark = [pytest.mark.browser, pytest.mark.proof, pytest.mark.timeout(0)]

UNDECODED = "Could not be inspected"


@pytest.fixture
def hostile(gate: Gate) -> Stage:
    return stage(gate)


def test_no_command_passes_in_silence(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    every = corpora.flat(corpora.shell_abuses())
    chosen = sampled(every, proof_n(small=16, full=len(every)))
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    silent, undecoded = [], 0
    for command in chosen:
        text, called_out = _shown(hostile, eyes, command)
        undecoded += UNDECODED in text
        if not called_out:
            silent.append(command)
        for word in re.findall(r"[A-Za-z]{4,}", command):
            assert word in text, command
    assert silent == []
    noisy = [one for one in ORDINARY if _shown(hostile, eyes, one)[1]]
    assert noisy == []  # so that what is called out above is the command itself
    assert eyes.found.nothing, str(eyes.found)
    desk.said.clear()
    record_proof(
        "T15",
        f"{len(chosen)} shell commands that do more than they seem to: each is called "
        f"out, {undecoded} as not decoded (0 silent: at most {3 / len(chosen):.2%}); "
        f"{len(ORDINARY)} ordinary ones: none is",
    )


def _shown(hostile: Stage, eyes: Inspector, command: str) -> tuple[str, list[str]]:
    """The facts of a command, and what they call out but the matches of a glob."""
    request = hostile.ask({"tool": "t_shell", "args": {"command": command}})
    eyes.look(f"/requests/{request.pk}/")
    found = facts(eyes.page)
    return found["text"], [one for one in found["loud"] if "Glob" not in one]
