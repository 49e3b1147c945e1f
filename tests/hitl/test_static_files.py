from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from hitl.static_files import collect_static_files


@pytest.fixture
def source(settings: Settings, tmp_path: Path) -> Path:
    """One small static file, the only one."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.css").write_text("a {}")
    settings.STATICFILES_DIRS = [folder]
    settings.STATICFILES_FINDERS = [
        "django.contrib.staticfiles.finders.FileSystemFinder"
    ]
    settings.STATIC_ROOT = tmp_path / "static"
    return folder / "a.css"


def read_time(state: Path) -> int:
    """When the copy was made."""
    return (state / "static" / "a.css").stat().st_mtime_ns


def test_copies_are_made_once(tmp_path: Path, source: Path) -> None:
    collect_static_files(tmp_path)
    first = read_time(tmp_path)
    collect_static_files(tmp_path)
    assert read_time(tmp_path) == first


def test_a_changed_source_makes_them_anew(tmp_path: Path, source: Path) -> None:
    collect_static_files(tmp_path)
    source.write_text("b {}")
    os.utime(source, ns=(1, 1))
    collect_static_files(tmp_path)
    assert (tmp_path / "static" / "a.css").read_text() == "b {}"


def test_a_making_that_failed_is_made_again(tmp_path: Path, source: Path) -> None:
    collect_static_files(tmp_path)
    (tmp_path / "static.stamp").write_text("half")
    (tmp_path / "static" / "a.css").unlink()
    collect_static_files(tmp_path)
    assert read_time(tmp_path)
