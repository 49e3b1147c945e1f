"""The retail acceptance run: every world-changing call of every task goes through the
gate, and the store ends exactly as if the calls had been made directly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.retail import checks, tasks
from tests.retail.report import describe_kills, describe_run
from tests.retail.run import Run, Script, store_service
from tests.retail.tasks import Call
from tests.stack import Stack


def nothing(call: Call) -> bool:
    return False


def every_third(call: Call) -> bool:
    return call.number % 3 == 0


VARIANTS = {
    "plain": nothing,
    "every third rejected": every_third,
    "worker killed": nothing,
}


@pytest.fixture
def calls(data: Path, proof_n: Callable[..., int]) -> list[Call]:
    """Of every task, or of a tenth, in file order; each of the eight tools occurs."""
    chosen = tasks.calls(data, proof_n(52, tasks.EVERY_TASK))
    return chosen + tasks.beside(data, chosen)


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_store_ends_as_in_a_direct_run(
    variant: str,
    retail: Stack,
    data: Path,
    tmp_path: Path,
    calls: list[Call],
    proof_n: Callable[..., int],
    say: Callable[[str], None],
) -> None:
    rejects: Script = VARIANTS[variant]
    kills = proof_n(2, 10) if variant == "worker killed" else 0
    expected = tasks.world(data)
    done = tasks.run_directly(expected, calls, rejects)

    with store_service(tmp_path, data) as (url, books):
        played = Run(retail, url, books, data, calls).play(rejects, kills)

    checks.check_answers(calls, done, played)
    checks.check_store(expected, books)
    checks.check_effects(done, books)
    checks.check_kills(played, kills)
    checks.check_log(played)
    say(describe_run(variant, calls, played, books, describe_kills(played.kills)))
