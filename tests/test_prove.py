"""What docs/proof.md says was measured is what was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import prove


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own with one commit."""
    monkeypatch.setattr(prove, "ROOT", tmp_path)
    monkeypatch.setattr(prove, "PAGE", tmp_path / "docs" / "proof.md")
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *args: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "tests: One more.")


def lines(folder: Path) -> Path:
    file = folder / "lines"
    file.write_text(said("make chaos"))
    git(folder, "update-index", "--refresh")
    (folder / ".git" / "info" / "exclude").write_text("lines")
    return file


def said(by: str, line: str = "12 of 12", name: str = "T0") -> str:
    return json.dumps({"id": name, "by": by, "line": line}) + "\n"


def test_a_line_under_another_name_replaces_it(checkout: Path) -> None:
    (checkout / "tests.py").write_text("def test_a(): ...\n")
    commit(checkout)
    file = lines(checkout)
    for name in ("T1", "T2"):
        file.write_text(said("tests.py::test_a", name=name))
        assert prove.add(file, prove.version()) == 0
    assert "**T1**" not in prove.PAGE.read_text()


def test_the_whole_keeps_what_other_commands_measured(checkout: Path) -> None:
    (checkout / "tests.py").write_text("def test_a(): ...\n")
    commit(checkout)
    file = lines(checkout)
    file.write_text(said("make chaos", "one") + said("tests.py::test_a[x]", "two"))
    assert prove.add(file, prove.version()) == 0
    file.write_text(said("tests.py::test_a[y]", "three"))
    assert prove.add(file, prove.version(), whole=True) == 0
    page = prove.PAGE.read_text()
    assert [word in page for word in ("one (", "two (", "three (")] == [
        True,
        False,
        True,
    ]


def test_a_test_replaces_its_own_lines_only(checkout: Path) -> None:
    (checkout / "tests.py").write_text("def test_a(): ...\ndef test_b(): ...\n")
    commit(checkout)
    file = lines(checkout)
    file.write_text(
        said("tests.py::test_a[x]", "one") + said("tests.py::test_b", "two")
    )
    assert prove.add(file, prove.version()) == 0
    file.write_text(said("tests.py::test_a[x]", "three"))
    assert prove.add(file, prove.version()) == 0
    page = prove.PAGE.read_text()
    assert [word in page for word in ("one (", "two (", "three (")] == [
        False,
        True,
        True,
    ]


def test_what_no_test_measures_any_more_is_dropped(checkout: Path) -> None:
    (checkout / "tests.py").write_text("def test_b(): ...\n")
    commit(checkout)
    file = lines(checkout)
    file.write_text(said("tests.py::test_a", "one") + said("tests.py::test_b", "two"))
    for _ in range(2):
        assert prove.add(file, prove.version()) == 0
        file.write_text("")
    assert "one (" not in prove.PAGE.read_text()
    assert "two (" in prove.PAGE.read_text()


def test_a_line_bears_the_commit_that_was_measured(checkout: Path) -> None:
    of = prove.version()
    assert prove.add(lines(checkout), of) == 0
    assert f", {of})" in prove.PAGE.read_text()
    assert prove.version() == of, "the page itself is no change"


def test_what_is_not_committed_is_said(checkout: Path) -> None:
    (checkout / "file").write_text("two")
    assert prove.version().endswith(" with changes")


def test_a_checkout_that_moved_meanwhile_proves_nothing(checkout: Path) -> None:
    of = prove.version()
    (checkout / "file").write_text("two")
    commit(checkout)
    assert prove.add(lines(checkout), of) == 1
    assert not prove.PAGE.exists()
