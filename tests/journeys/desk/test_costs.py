"""What each task costs in strokes and clicks, against the bars in `costs`. Counted
from the page that is ready; a chord is one stroke, typing is apart. The batch's row is
counted by its own journey."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.policy import default
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from journal.models import OutboxMessage
from reviews.models import ApprovalRequest, Decision
from tests.journeys.desk import questions, requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.costs import Costs
from tests.journeys.desk.hands import LOG, STOP, Leads, Step, Way, in_ways
from tests.journeys.desk.house import House, overlay
from tests.journeys.desk.sitting import Sitting
from tests.stack import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

OUTCOME = "#outcome"
MAIL_S = 70.0  # longer than the lease of a promise whose consumer is gone
FLOORS = overlay()["desk"]["time_floor"]


def at(desk: Sitting, request: ApprovalRequest) -> Sitting:
    """Before an open request, read for as long as it has to be."""
    desk.open(f"/requests/{request.pk}/")
    desk.floor_is_over(request)
    return desk


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_the_next_one_and_an_approval(
    house: House, sit_down: SitDown, way: Way, costs: Costs
) -> None:
    request = requests.label(house)
    rita = sit_down("rita", way)
    rita.open("/log/")
    with costs.of("Open next item from anywhere", rita):
        rita.hand.go_to_queue()
        rita.hand.open_first()
    rita.floor_is_over(request)
    with costs.of("Approve Low/Medium", rita):
        rita.hand.arm("approve")
        rita.hand.commit()
    expect(rita.page.locator(OUTCOME)).to_contain_text("Approved")


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_an_approval_with_a_control_question(
    house: House, sit_down: SitDown, way: Way, costs: Costs
) -> None:
    house.rule(desk={"time_floor": FLOORS, "micro_check": {"high": 1}})
    request = requests.payment(house)
    rita = at(sit_down("rita", way), request)
    answer = questions.asked_of(house.rita, request).right
    with costs.of("Approve High with micro-check", rita):
        rita.hand.arm("approve")
        rita.hand.choose(answer + 1)
        rita.hand.commit()
    expect(rita.page.locator(OUTCOME)).to_contain_text("Approved")
    asked = Decision.objects.get().check_asked
    assert asked["answers"] == [answer] == [asked["right"]]


@in_ways(Way.MOUSE, Way.KEYBOARD)
@pytest.mark.parametrize(
    ("verb", "task"),
    [
        ("reject", "Reject with preset reason"),
        ("escalate", "Escalate with preset"),
    ],
)
def test_a_verdict_with_a_preset(
    house: House, sit_down: SitDown, way: Way, costs: Costs, verb: str, task: str
) -> None:
    rita = at(sit_down("rita", way), requests.payment(house))
    with costs.of(task, rita):
        rita.hand.arm(verb)
        rita.hand.choose(1)
        rita.hand.commit()
    wait_until(Decision.objects.filter(verdict=verb).exists, 9)


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_one_field_is_changed(
    house: House, sit_down: SitDown, way: Way, costs: Costs
) -> None:
    rita = at(sit_down("rita", way), requests.payment(house))
    with costs.of("Modify one field and approve", rita):
        rita.hand.arm("modify")
        rita.hand.type("[name='arg.amount']", "48.00")
        rita.hand.commit(Leads.PAGE)
    expect(rita.page.get_by_test_id("h1-effect")).to_contain_text("48.00")


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_a_run_is_stopped(
    house: House, sit_down: SitDown, way: Way, costs: Costs
) -> None:
    request = requests.payment(house)
    sue = sit_down("sue", way)
    sue.open(f"/requests/{request.pk}/")
    with costs.of("Stop a run from any page", sue):
        sue.hand.do(STOP)
        sue.hand.choose(1)
        sue.hand.commit(Leads.PAGE)
    expect(sue.page.locator("main")).to_contain_text(request.proposal.thread)
    wait_until(lambda: settled(request), 9)


def settled(request: ApprovalRequest) -> bool:
    request.refresh_from_db()
    return request.settled_at is not None


def test_an_old_decision_is_found(
    house: House, sit_down: SitDown, costs: Costs
) -> None:
    request = requests.payment(house)
    rita = at(sit_down("rita"), request)
    rita.hand.arm("reject")
    rita.hand.choose(4)
    rita.hand.commit()
    otto = sit_down("otto")
    otto.open("/escalations/")
    with costs.of("Find a decision from last month (audit)", otto):
        otto.hand.do(LOG)
        otto.page.locator("#log-q").fill(request.pk)  # the filter's input is apart
        otto.page.locator("#log-kind").select_option("decision")
        otto.hand.do(Step("", "form.filters > .btn", Leads.PAGE))
        otto.hand.do(Step("", "#log-table [data-row] >> nth=0", Leads.PAGE))
    expect(otto.page.get_by_test_id("decision")).to_be_visible()


def test_a_mail_leads_to_the_verbs(
    house: House, sit_down: SitDown, costs: Costs
) -> None:
    request = requests.payment(house)
    rita = sit_down("rita")
    rita.open("/help/")
    with costs.of("Notification link to verbs visible", rita):
        link = urlsplit(mailed_link(house, request))
        rita.hand.clicks += 1  # on the link, in the mail
        rita.open(link.path)
    expect(rita.page.get_by_test_id("verb-approve")).to_be_in_viewport()


def mailed_link(house: House, request: ApprovalRequest) -> str:
    """The address in the mail to Rita about this request."""
    found: list[str] = []

    def arrived() -> bool:
        for file in (house.live.state / "mail").glob("*"):
            mail = message_from_bytes(file.read_bytes(), policy=default)
            text = mail.get_content() if "rita@" in str(mail["To"]) else ""
            found.extend(re.findall(rf"https?://\S+/requests/{request.pk}/", text))
        return bool(found)

    wait_until(arrived, MAIL_S, lambda: f"{house.live.log('worker')} {promises()}")
    return found[0]


def promises() -> list[tuple[str, int, bool]]:
    """What was to be told, how often it was begun, and whether it is done."""
    rows = OutboxMessage.objects.order_by("pk")
    return [(row.task, row.attempts, row.done_at is not None) for row in rows]
