"""A test that cannot fail proves nothing: each guard is taken out of a copy of the
project, and the tests must notice (T1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.guards import ROOT, proof_n
from tests.mutants.guards import GUARDS, Guard
from tests.mutants.markers import Misplaced, in_product
from tests.mutants.removals import WithoutOperand
from tests.mutants.sandbox import copy, remove, run, summary, without

AT_LEAST = 25
FEW = [guard for guard in GUARDS if guard.name == "a proof is for this verdict alone"]


def test_the_guards_are_where_the_list_says() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS) >= AT_LEAST
    for guard in GUARDS:
        compile(without(guard, (ROOT / guard.file).read_text()), guard.file, "exec")


def test_every_marker_of_the_product_has_its_guard_and_no_other() -> None:
    listed = [(guard.file, guard.marker) for guard in GUARDS]
    assert sorted(in_product(ROOT)) == sorted(listed)
    assert len({guard.marker for guard in GUARDS}) == len(GUARDS)


MARKED = """
def pay(amount, key):
    if amount < 0 or key is None:  # guard: pay
        raise ValueError
    return send(amount, key=key)
"""
PAY = Guard("pay", "pay.py", "pay", "pay", WithoutOperand("key is None"), "")


@pytest.mark.parametrize(
    "text",
    [
        MARKED,
        MARKED.replace("amount < 0 or key is None", "key is None or other(amount)"),
        MARKED.replace(
            "key is None:  # guard: pay", "(\n  # guard: pay\n key is None):"
        ),
        MARKED.replace("  # guard: pay", "").replace(
            "    if", "    # guard: pay\n    # Why.\n    if"
        ),
    ],
)
def test_a_guard_is_found_after_a_neighbouring_edit(text: str) -> None:
    assert "key is None" not in without(PAY, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MARKED.replace("  # guard: pay", ""), "0 times"),
        (MARKED.replace("# guard: pay", "# guard: Pay"), "0 times"),
        (MARKED + "x = 1  # guard: pay", "2 times"),
        (MARKED.replace("def pay", "def pay_all"), "pay is there 0 times"),
        (MARKED + MARKED.replace("  # guard: pay", ""), "pay is there 2 times"),
        (
            MARKED.replace("  # guard: pay", "") + "x = 1  # guard: pay",
            "not inside pay",
        ),
        (MARKED.replace("key is None", "not key"), "is there 0 times"),
        (MARKED.replace("    if", "    # guard: pay\n    x = 1\n    if"), "2 times"),
    ],
)
def test_a_guard_that_is_not_there_is_said(text: str, said: str) -> None:
    with pytest.raises(Misplaced, match=said):
        without(PAY, text)


@pytest.mark.proof
@pytest.mark.timeout(7200)
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
