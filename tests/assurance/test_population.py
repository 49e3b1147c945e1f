"""A scripted population of reviewers. What the product says about them equals what the
script knows: which requests were sound, and who noticed what."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC
from statistics import median
from typing import NamedTuple

import pytest

from journal import clock
from policies.models import Person
from reviews.choices import Verdict
from reviews.decisions.submission import PageEvidence
from reviews.models import ApprovalRequest, MetricDay
from stats import rollups
from stats.plots.canaries import CANARIES
from stats.readings import MetricFilters, load_readings
from tests import factories
from tests.assurance.planting import plant
from tests.conftest import Gate
from tests.factories import decide, propose

pytestmark = pytest.mark.django_db


class Profile(NamedTuple):
    """A simulated reviewer: how often they notice a defect, how often they reject a
    sound request, and how many seconds they take."""

    name: str
    notices: float
    rejects_sound: float
    seconds: float


POPULATION = {
    "rita": Profile("careful", 0.95, 0.02, 35),
    "tom": Profile("hurried", 0.4, 0.0, 4),
    "sue": Profile("suspicious", 0.97, 0.3, 60),
}


@dataclass
class Tally:
    """What one simulated reviewer did."""

    canaries: int = 0
    caught: int = 0
    sound: int = 0
    false_alarms: int = 0
    seconds: list[float] | None = None

    def describe(self, profile: Profile) -> str:
        took = f"{median(self.seconds or [0]):.0f} s"
        return (
            f"{profile.name}: {self.caught} of {self.canaries} caught,"
            f" {self.false_alarms} of {self.sound} false alarms, median {took}"
        )


def review(
    request: ApprovalRequest,
    person: Person,
    profile: Profile,
    tally: Tally,
    chance: random.Random,
) -> None:
    """One simulated verdict, and its place in the tally."""
    seconds = profile.seconds * chance.uniform(0.5, 1.5)
    likely = profile.notices if request.canary else profile.rejects_sound
    rejects = chance.random() < likely
    verdict = Verdict.REJECT if rejects else Verdict.APPROVE
    decide(request, person, verdict, page=PageEvidence(took_ms=int(seconds * 1000)))
    if request.canary:
        tally.canaries += 1
        tally.caught += rejects
    else:
        tally.sound += 1
        tally.false_alarms += rejects
    tally.seconds = [*(tally.seconds or []), seconds]


def simulate(gate: Gate, rounds: int) -> Iterator[tuple[Profile, Tally]]:
    """Each reviewer decides a canary and a sound request in each round."""
    chance = random.Random(20)
    for name, profile in POPULATION.items():
        person, tally = gate.people[name], Tally()
        for _ in range(rounds):
            review(plant(gate, person), person, profile, tally, chance)
            sound = propose(gate.agent, "decline", thread=factories.new_thread())
            review(sound.request, person, profile, tally, chance)
        yield profile, tally


@pytest.mark.proof
def test_the_figures_are_those_of_the_simulated_reviewers(
    gate: Gate,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    rounds: int = proof_n(small=6, full=100)
    found = list(simulate(gate, rounds))
    day = clock.now().astimezone(UTC).date()
    MetricDay.objects.create(day=day)
    assert rollups.compute_day(day=day)
    bins = load_readings(MetricFilters("", "", day, day), [CANARIES]).bins(CANARIES)
    measured = {
        kind: sum(n for name, n in bins.items() if name.startswith(f"{kind}\x1f"))
        for kind in ("decided", "caught")
    }
    assert measured == {
        "decided": sum(tally.canaries for _, tally in found),
        "caught": sum(tally.caught for _, tally in found),
    }
    careful, hurried, _ = (tally for _, tally in found)
    assert careful.caught > hurried.caught
    said = "; ".join(tally.describe(profile) for profile, tally in found)
    record_proof("assurance", f"SIMULATED reviewers, no people: {said}")
