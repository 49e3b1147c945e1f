"""`counterseal conformance`: the kit where it is installed, and where it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import conformance
from tests.client.command_line.shell import COMMAND, Shell


@pytest.fixture
def shell(home: Path) -> Shell:
    return Shell(home, command=COMMAND)


def test_the_words_reach_the_kit(shell: Shell) -> None:
    shell.variables["PYTHONPATH"] = conformance.PYTHONPATH
    done = shell.run("conformance", "--policy")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == conformance.POLICY.read_text().strip()
    done = shell.run("conformance", "langgraph")
    assert done.returncode == 2
    assert "counterseal conformance: error: give --target" in done.stderr


def test_a_secret_in_the_wrong_place_is_not_repeated(shell: Shell) -> None:
    shell.variables["PYTHONPATH"] = conformance.PYTHONPATH
    secret = "cs_k7xw2m9q_secretsecret"
    done = shell.run("conformance", "langgraph", secret)
    assert done.returncode == 2
    assert secret not in done.stdout + done.stderr


def test_without_the_kit_it_says_how_to_get_it(shell: Shell) -> None:
    done = shell.run("conformance", "langgraph")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "counterseal_conformance" in line
    assert "pip install counterseal-conformance" in line
