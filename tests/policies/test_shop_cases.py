"""Every case of the shop reaches its tier by the shipped policy, in a store that has
opening hours."""

from __future__ import annotations

from datetime import timedelta

import pytest

from policies import money
from tests.policies import store
from tests.policies.shop_cases import CASES, World


def now(world: World):
    if world.saturday_night:
        return store.SATURDAY_NIGHT
    return store.NOON + timedelta(hours=world.local_hour - 12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_example_reaches_its_tier(case):
    world = case.world
    outcome = store.judge(
        case.tool,
        case.args,
        document=store.with_hours(),
        now=now(world),
        unattended=world.unattended,
        counts={"failures": world.recent_failures},
        earlier=[money.parse(text, "USD").minor for text in world.earlier_refunds],
    )
    assert outcome.tier == case.tier
    if case.requires_reason is not None:
        assert outcome.requires_reason is case.requires_reason
    if case.timeout_minutes is not None:
        assert outcome.timeout == case.timeout_minutes * 60
    if case.queue:
        assert outcome.queue == case.queue


@pytest.mark.parametrize("case", [c for c in CASES if c.world == World()], ids=str)
def test_the_demo_that_never_closes_says_the_same(case):
    outcome = store.judge(case.tool, case.args, now=store.SATURDAY_NIGHT)
    assert outcome.tier == case.tier
