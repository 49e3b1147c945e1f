"""J11: a canary looks like any other mail until it is decided, and then says that it
was one; a run that runs away is paused from the page of its request."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from reviews.choices import DefectKind, RealismFlag, RequestStatus
from reviews.models import ApprovalRequest, Canary, Execution, Grant, Stop
from tests import factories
from tests.assurance.planting import age_source, plant_clone
from tests.factories import decide
from tests.journeys.desk import requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import COMMIT, STOP, Leads, Way, in_ways
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import Sitting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]
# What differs between two requests of the same action: ids, moments, digests, tokens,
# and what is under way.
PASSING = re.compile(
    r"\b[a-z]{1,2}-[0-9A-Za-z_]{8,}|\b[0-9a-f]{8,}\b|\d+|"
    r"<time[^>]*>[^<]*|"
    r'name="(csrfmiddlewaretoken|seen)"[^>]*value="[^"]*"|hx-headers="[^"]*"|'
    r'<span class="hash"[^>]*>[^<]*| htmx-[a-z]+'
)


def plant(house: House) -> ApprovalRequest:
    """A canary for Rita: a mail that Tom approved, with a hidden recipient."""
    source = requests.mail(house)
    decide(source, house.tom, reason_code="verified")
    factories.window_over(source)
    house.ran(source)
    age_source(source)
    return plant_clone(house.rita, DefectKind.EXTRA_BCC)


def read_page(desk: Sitting) -> list[str]:
    """The review page as it is seen, a line each, without what passes."""
    return PASSING.sub("", desk.page.inner_html("main")).splitlines()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_a_canary_looks_like_a_request_and_says_afterwards_what_it_was(
    house: House, sit_down: SitDown, way: Way
) -> None:
    asked = plant(house)
    twin = house.asks("send_email", asked.proposal.current.args)
    effects = house.store.rows("mail")
    rita = sit_down("rita", way)
    rita.open(f"/requests/{twin.pk}/")
    real = read_page(rita)
    rita.open(f"/requests/{asked.pk}/")
    assert read_page(rita) == real
    rita.hand.arm("approve")
    rita.hand.choose(1)
    rita.floor_is_over(asked)
    rita.hand.commit()
    outcome = rita.page.get_by_test_id("decide")
    expect(outcome).to_contain_text(
        "That was a canary, a planted test. Nothing was executed."
    )
    expect(outcome).to_contain_text("This one got past you.")
    expect(outcome).to_contain_text("Bcc")
    rita.accessible()
    rita.page.get_by_test_id("realism-obvious").click()
    expect(outcome).to_contain_text("Your answer about how real it looked")
    canary = Canary.objects.get()
    assert (canary.caught, canary.realism) == (False, RealismFlag.OBVIOUS)
    assert not Grant.objects.filter(proposal=asked.proposal_id).exists()
    assert not Execution.objects.filter(proposal=asked.proposal_id).exists()
    assert house.store.rows("mail") == effects
    rita.open("/assurance/")
    expect(rita.page.locator("main")).to_contain_text("You caught 0 %")


def test_an_escalated_canary_is_caught(house: House, sit_down: SitDown) -> None:
    asked = plant(house)
    rita = sit_down("rita")
    rita.open(f"/requests/{asked.pk}/")
    rita.hand.arm("escalate")
    rita.hand.choose(4)
    rita.hand.type("#id_reason", "Who is in Bcc?")
    rita.hand.commit()
    outcome = rita.page.get_by_test_id("decide")
    expect(outcome).to_contain_text(
        "That was a canary, a planted test. Nothing was executed."
    )
    assert Canary.objects.get().caught
    asked.refresh_from_db()
    assert asked.status == RequestStatus.WITHDRAWN


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_a_run_is_paused_from_its_request_and_resumed_by_a_supervisor(
    house: House, sit_down: SitDown, way: Way
) -> None:
    request = requests.mail(house)
    rita = sit_down("rita", way)
    rita.open(f"/requests/{request.pk}/")
    rita.hand.do(STOP)
    rita.hand.choose(3)
    rita.hand.do(COMMIT, Leads.PAGE)
    halt = rita.page.get_by_test_id("halt")
    expect(halt).to_have_attribute("data-state", "paused")
    stop = Stop.objects.get()
    rita.open(f"/requests/{request.pk}/")
    expect(rita.page.get_by_test_id("halt")).to_contain_text("paused")
    rita.open(f"/stop/{stop.pk}/")
    assert rita.page.get_by_test_id("lift").count() == 0
    sue = sit_down("sue")
    sue.open(f"/stop/{stop.pk}/")
    sue.page.click("[data-testid=lift] summary")
    sue.page.fill("[data-testid=lift] textarea", "It was expected.")
    sue.page.click("[data-testid=lift] button")
    expect(sue.page.get_by_test_id("halt")).to_have_attribute("data-state", "resumed")
    assert house.store.rows("mail") == []
