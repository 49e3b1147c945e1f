from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from hitl.local import installation
from hitl.local.layout import Layout


@pytest.fixture
def source(settings: Settings, tmp_path: Path, here: Layout) -> Path:
    """One small static file, the only one."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.css").write_text("a {}")
    settings.STATICFILES_DIRS = [folder]
    settings.STATICFILES_FINDERS = [
        "django.contrib.staticfiles.finders.FileSystemFinder"
    ]
    settings.STATIC_ROOT = here.state / "static"
    return folder / "a.css"


def made(here: Layout) -> int:
    """When the copy was made."""
    return (here.state / "static" / "a.css").stat().st_mtime_ns


def test_copies_are_made_once(here: Layout, source: Path) -> None:
    installation.collect_static_files(here)
    first = made(here)
    installation.collect_static_files(here)
    assert made(here) == first


def test_a_changed_source_makes_them_anew(here: Layout, source: Path) -> None:
    installation.collect_static_files(here)
    source.write_text("b {}")
    os.utime(source, ns=(1, 1))
    installation.collect_static_files(here)
    assert (here.state / "static" / "a.css").read_text() == "b {}"


def test_a_making_that_failed_is_made_again(here: Layout, source: Path) -> None:
    installation.collect_static_files(here)
    (here.state / "static.stamp").write_text("half")
    (here.state / "static" / "a.css").unlink()
    installation.collect_static_files(here)
    assert made(here)
