"""The table of the server's commands: what it names exists, and its examples are
accepted."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from counterseal_client.command_line import server_commands
from hitl.command_line import COMMANDS, Entry, build_parser, find_entry, main
from tests.guards import ROOT

# Commands for developers of the product, which `manage.py` alone has.
DEVELOPERS = {
    "policy_reference",
    "seed_demo",
    "state_diagram",
    "transaction_map",
    "typescript_types",
    "write_demo_history",
}


def list_entries() -> Iterator[tuple[str, Entry]]:
    for name, entry in COMMANDS.items():
        if isinstance(entry, Entry):
            yield name, entry
        else:
            yield from ((f"{name} {verb}", inner) for verb, inner in entry.items())


ENTRIES = list(list_entries())


def test_every_command_of_the_product_is_in_the_table() -> None:
    files = Path(settings.BASE_DIR).glob("*/management/commands/*.py")
    ours = {file.stem for file in files} - {"__init__"} - DEVELOPERS
    assert ours <= {entry.name for _, entry in ENTRIES}


def test_the_client_knows_the_commands_of_the_server() -> None:
    assert set(server_commands.NAMES) == set(COMMANDS)


@pytest.mark.parametrize(("words", "entry"), ENTRIES, ids=[w for w, _ in ENTRIES])
def test_the_examples_of_a_command_are_accepted(words: str, entry: Entry) -> None:
    assert len(entry.examples) >= 2
    for example in entry.examples:
        words_only = example.partition(" >")[0]  # not where its output goes
        typed = shlex.split(words_only.partition("counterseal ")[2])
        found, same, rest = find_entry(typed)
        assert (found, same) == (words.strip(), entry)
        _, parser = build_parser(words, entry)
        parser.parse_args(rest)
        assert example in parser.format_help()


def test_a_wrong_word_gets_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["people", "sack"])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "no command `people sack`" in error
    assert "counterseal people deactivate" in error


@pytest.mark.parametrize("program", [["manage.py"], ["-m", "counterseal_client"]])
def test_a_gate_that_does_not_run_is_one_line(
    program: list[str], tmp_path: Path
) -> None:
    command = ["list_agent_keys"] if "manage.py" in program else ["agents", "keys"]
    state = tmp_path / "state"
    environ = {"PATH": os.environ["PATH"], "STATE": str(state), "HOME": str(tmp_path)}
    environ["PYTHONPATH"] = str(ROOT / "client")
    done = subprocess.run(
        [sys.executable, *program, *command, "ada"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"counterseal: no gate runs in {state}: start it there with")
