"""Each redirection of bash's grammar is called what it does, however it is written."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from reviews.presenters import shell, shell_lexer
from reviews.presenters.shell_lexer import ADDS, OVERWRITES
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud

# The left sides of bash's rule `redirection` (parse.y), and what each does to a file
# `f` that is its target.
GRAMMAR = {
    ">": OVERWRITES,
    "<": "",
    "{n}>": OVERWRITES,
    "{n}<": "",
    "2>": OVERWRITES,
    "0<": "",
    ">>": ADDS,
    "2>>": ADDS,
    "{n}>>": ADDS,
    ">|": OVERWRITES,
    "1>|": OVERWRITES,
    "{n}>|": OVERWRITES,
    "<>": OVERWRITES,
    "3<>": OVERWRITES,
    "{n}<>": OVERWRITES,
    "<<<": "",
    "0<<<": "",
    "{n}<<<": "",
    ">&": OVERWRITES,
    "1>&": OVERWRITES,
    "{n}>&": OVERWRITES,
    "<&": "",
    "0<&": "",
    "{n}<&": "",
    "&>": OVERWRITES,
    "&>>": ADDS,
}
TARGETS = ("{} f", "{}f", "{}\tf", "{}'f'", '{} "f"', "{}\\f", "{}./f", "{} \\\nf")
PLACES = ("echo a {}", "{} echo a", "echo a {} b", "true; echo a {}", "{}")


def warnings(command):
    return shell.parse_command(command, {}).warns


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("operator", GRAMMAR)
def test_each_operator_is_called_what_it_does(operator, target):
    for place in PLACES:
        found = warnings(place.format(target.format(operator)))
        told = {OVERWRITES, ADDS} & set(found)
        assert told == ({GRAMMAR[operator]} - {""})


def test_the_table_has_each_operator_of_the_grammar():
    plain = {operator.lstrip("0123") for operator in GRAMMAR if "{" not in operator}
    assert plain | {"<<", "<<-"} == set(shell_lexer.REDIRECTIONS)


@pytest.mark.parametrize("space", ["{} f", "{}f"])
@pytest.mark.parametrize("operator", GRAMMAR)
def test_what_bash_does_to_the_file_is_called_out(operator, space, tmp_path):
    bash = shutil.which("bash")
    assert bash, "these tests need bash"
    (tmp_path / "f").write_text("kept\n")
    command = f"echo new {space.format(operator)}"
    subprocess.run(
        [bash, "-c", command],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    text = (tmp_path / "f").read_text()
    if not text.startswith("kept"):
        assert OVERWRITES in warnings(command)
    elif text != "kept\n":
        assert ADDS in warnings(command)


@pytest.mark.parametrize(
    "target", ["2>&1", ">&2", ">& 2", ">&'2'", "2>&-", ">&-", "3>&1-", "<&3", "0<&3-"]
)
def test_a_stream_that_is_joined_moved_or_closed_is_no_file(target):
    assert warnings(f"echo a {target}") == []


@pytest.mark.parametrize(
    ("command", "means"),
    [
        ("echo a >&2", "Joined to another stream"),
        ("echo a 2>&-", "Errors closed"),
        ("echo a >&f", "Output and errors written to a file"),
        ("echo a 2>&f", "Errors written to a file"),
        ("echo a > >(cat)", "Joined to another command"),
    ],
)
def test_its_row_says_what_it_does(command, means):
    (step,) = shell.parse_command(command, {}).steps
    assert step.tokens[-1].means == means


def test_a_process_that_is_written_to_is_opened_and_is_no_file():
    read = shell.parse_command("ls > >(rm x)", {})
    assert "Deletes files" in read.warns
    assert OVERWRITES not in read.warns


def test_a_command_that_shells_read_differently_has_the_warnings_of_bash():
    shown = kinds.show("run_command", cmd="rm -rf x &> log")
    assert {"Not decoded", "Deletes files", OVERWRITES} <= set(loud(shown))
    assert [one.argument for one in shown.uninspectable] == ["cmd"]


@pytest.mark.parametrize(
    "command",
    ["ls >\\\n>f", "ls &\\\n>f", "ls >\\\n&f", "ls |\\\n| rm f", "ls <\\\n>f"],
)
def test_an_operator_that_a_line_break_splits_is_not_decoded(command):
    assert "a line break splits" in shell.parse_command(command, {}).problem


def test_a_line_break_after_an_operator_is_none_inside_it():
    read = shell.parse_command("ls |\\\n wc &&\\\n ls", {})
    assert (read.problem, len(read.steps)) == ("", 3)
