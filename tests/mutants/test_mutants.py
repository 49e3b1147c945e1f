"""A test that cannot fail proves nothing: each guard is taken out of a copy of the
project, and the tests must notice (T1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.guards import ROOT, proof_n

from .guards import GUARDS, Guard
from .sandbox import copy, remove, run, summary

pytestmark = [pytest.mark.proof, pytest.mark.timeout(7200)]

AT_LEAST = 25
FEW = [guard for guard in GUARDS if guard.name == "a proof is for this verdict alone"]


def test_the_guards_are_where_the_list_says() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS) >= AT_LEAST
    for guard in GUARDS:
        found = (ROOT / guard.file).read_text().count(guard.text)
        assert found == 1, f"{guard}: {found} times in {guard.file}"


def test_every_guard_that_is_taken_out_is_missed(
    tmp_path: Path, record_proof: Callable[[str, str], None]
) -> None:
    chosen = GUARDS[: proof_n(small=0, full=len(GUARDS))] or FEW
    _check_all_hold(chosen, tmp_path)
    survived = [guard.name for guard in chosen if not _missed(guard, tmp_path)]
    assert not survived
    record_proof("T1", f"{len(chosen)} guards taken out one by one: each was noticed")


def _check_all_hold(chosen: Sequence[Guard], folder: Path) -> None:
    """With every guard in its place the same tests pass, in such a copy too."""
    tests = {name for guard in chosen for name in guard.noticed_by.split()}
    done = run(sorted(tests), copy(folder / "whole"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in summary(done)


def _missed(guard: Guard, folder: Path) -> bool:
    root = copy(folder / str(GUARDS.index(guard)))
    remove(guard, root)
    said = summary(run(guard.noticed_by.split(), root))
    assert "error" not in said, f"{guard}: {said}"
    return "failed" in said
