"""What a child computes for its parent."""

from __future__ import annotations

import os
import signal

import pytest

from hitl.child_processes import call_in_child
from hitl.local.layout import InstallationError


def test_its_answer_comes_from_another_process() -> None:
    assert call_in_child(os.getppid) == os.getpid()


def test_its_error_is_the_parents() -> None:
    def fail() -> None:
        raise InstallationError("the disk is full")

    with pytest.raises(InstallationError, match="the disk is full"):
        call_in_child(fail)


def test_a_killed_one_is_no_answer() -> None:
    with pytest.raises(EOFError):
        call_in_child(lambda: os.kill(os.getpid(), signal.SIGKILL))
