"""J9: a critical change needs two people, neither of whom sees the other's answer.

The tool is the store's change of the address of a parcel on its way, which two
supervisors decide: Sue and Sam. The page's own question is put last of all, so the
password is typed before it is answered for good.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from journal.models import LogRecord
from policies.choices import Risk
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Execution
from tests import factories
from tests.journeys.desk import forged, questions
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import Leads, Step, Way, in_ways
from tests.journeys.desk.house import House, overlay
from tests.journeys.desk.sitting import Sitting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

FLOORS = overlay()["desk"]["time_floor"]
ORDER = "78295"
MOVED = {
    "line1": "9 Harbour Lane",
    "city": "Saltwick",
    "region": "ME",
    "postcode": "00417",
    "country": "US",
}
RAN = re.compile("Authorized, starting|Running|Completed")  # it cannot be undone
NEVER_APPROVED = "never approved automatically"
ANSWERED = re.compile(r"\b(approved|rejected|passed)\b", re.IGNORECASE)
NOTE = "the customer confirmed it by telephone"
SOURCES = ["/requests/{}/", "/requests/{}/decide/?arm=approve", "/log/?q={}"]
SPLITS = Step("g e", "#nav a[href^='/escalations/']", Leads.PAGE)


@pytest.fixture
def asked(house: House) -> ApprovalRequest:
    """A parcel on its way is to go elsewhere; everybody is asked a question."""
    house.rule(desk={"time_floor": FLOORS, "micro_check": {"critical": 1}})
    request = house.asks(
        "change_shipped_address", {"order_id": ORDER, "address": MOVED}
    )
    assert request.risk == Risk.CRITICAL
    for name in ("sue", "sam"):
        house.knows_password(name)
    return request


def opened(desk: Sitting, request: ApprovalRequest) -> Sitting:
    desk.open(f"/requests/{request.pk}/")
    return desk


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_who_may_not_is_told_why(
    house: House, sit_down: SitDown, way: Way, asked: ApprovalRequest
) -> None:
    """A reviewer has no verb here, and the owner of the agent none anywhere."""
    for name, why in (
        ("rita", "This needs a supervisor."),
        ("owen", "so someone else must decide it."),
    ):
        desk = sit_down(name, way)
        desk.open(f"/requests/{asked.pk}/")
        assert desk.page.locator("[data-testid^=verb-]").count() == 0
        expect(desk.page.get_by_test_id("decide")).to_contain_text(why)
        status, said = forged.send(
            desk, asked.pk, forged.made_up(desk, asked, "approve")
        )
        assert status == 403
        assert why in said
        desk.accessible()
    assert not Decision.objects.exists()
    codes = [data_of(one)["code"] for one in refused()]
    assert codes == ["not_yours", "not_yours"]


def refused() -> list[LogRecord]:
    return list(LogRecord.objects.filter(kind="decision.refused").order_by("pk"))


def data_of(record: LogRecord) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(bytes(record.leaf))["data"]
    return data


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_one_approves_and_the_other_rejects(
    house: House, sit_down: SitDown, way: Way, asked: ApprovalRequest
) -> None:
    sue = sit_down("sue", way)
    approves_after_a_wrong_answer(house, sue, asked)
    sam = sit_down("sam", way)
    sees_nothing_of_her(house, sam, asked)
    opened(sam, asked)
    sam.hand.arm("reject")
    sam.hand.choose(1)
    sam.hand.commit()
    expect(sam.page.locator("#outcome")).to_contain_text("Rejected")
    expect(sam.page.get_by_test_id("decide")).to_contain_text("Nothing was executed.")
    sam.accessible()
    asked.refresh_from_db()
    assert asked.status == RequestStatus.REJECTED
    assert not Execution.objects.exists()
    assert house.store.rows("redirection") == []
    assert house.told(asked)["status"] == "rejected"
    is_to_be_arbitrated(sam)


def approves_after_a_wrong_answer(
    house: House, sue: Sitting, asked: ApprovalRequest
) -> None:
    """The first answer is wrong: she is led to what she missed, and the log has it."""
    question = questions.asked_of(house.sue, asked)
    wrong = (question.right + 1) % len(question.options)
    opened(sue, asked)
    page = sue.page
    sue.hand.arm("approve")
    expect(page.get_by_test_id("panel")).to_contain_text("without seeing your decision")
    expect(page.get_by_test_id("commit")).to_contain_text("(1 of 2)")
    sue.hand.choose(wrong + 1)
    sue.hand.type("#id_reason", NOTE)
    sue.hand.type("#id_password", factories.PASSWORD)
    sue.floor_is_over(asked)
    sue.hand.commit()
    error = page.locator("#question-error")
    expect(error).to_contain_text("that is not what this request does.")
    expect(error).to_contain_text(f"Check: {question.look}")
    expect(page.get_by_test_id("question")).to_be_focused()
    assert not Decision.objects.exists()
    (missed,) = refused()
    assert data_of(missed)["code"] == "check"
    assert data_of(missed)["answers"] == [wrong]
    expect(page.get_by_test_id("proved")).to_be_visible()
    expect(page.locator("#id_reason")).to_have_value(NOTE)
    sue.accessible()
    sue.hand.choose(question.right + 1)
    sue.hand.commit()
    expect(page.locator("#outcome")).to_contain_text("1 of 2 approvals")
    sue.accessible()
    decision = Decision.objects.get()
    assert decision.check_asked["answers"] == [wrong, question.right]
    assert "check_missed" in decision.flags
    assert decision.reason == NOTE
    assert decision.authority["step_up"] == "password"


def sees_nothing_of_her(house: House, sam: Sitting, asked: ApprovalRequest) -> None:
    """The page's source, as the second one gets it, armed too; and what the log
    tells him meanwhile."""
    hers = ["Sue", house.sue.public_id, NOTE]
    for path in SOURCES:
        page = sam.open(path.format(asked.pk))
        source = page.content()
        assert [word for word in hers if word in source] == [], path
        text = page.locator("main").inner_text().replace(NEVER_APPROVED, "")
        assert not ANSWERED.search(text), path


def is_to_be_arbitrated(sam: Sitting) -> None:
    """Both answers side by side, now that neither can lead the other."""
    sam.hand.do(SPLITS)
    split = sam.page.get_by_test_id("splits")
    expect(split).to_contain_text("Sue Example")
    expect(split).to_contain_text("Sam Example")
    expect(split).to_contain_text(NOTE)
    expect(split).to_contain_text("Approved")
    expect(split).to_contain_text("Rejected")
    sam.accessible()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_both_approve_and_it_runs_once(
    house: House, sit_down: SitDown, way: Way, asked: ApprovalRequest
) -> None:
    for name, said in (("sue", "1 of 2 approvals"), ("sam", RAN)):
        desk = sit_down(name, way)
        approves(house, desk, name, asked)
        expect(desk.page.locator("#outcome")).to_contain_text(said)
    ran = house.ran(asked)
    expect(desk.state()).to_have_attribute("data-state", "executed")
    desk.accessible()
    hashes = set(Decision.objects.values_list("action_hash", flat=True))
    assert hashes == {ran.grant.action_hash} == {asked.action_hash}
    assert Decision.objects.count() == 2
    (redirected,) = house.store.rows("redirection")
    assert json.loads(redirected["became"]) == MOVED
    (call,) = house.store.rows("call")
    assert (call["key"], call["received"]) == (redirected["key"], 1)


def approves(house: House, desk: Sitting, name: str, asked: ApprovalRequest) -> None:
    question = questions.asked_of(house.people[name], asked)
    opened(desk, asked)
    desk.hand.arm("approve")
    desk.hand.choose(question.right + 1)
    desk.hand.type("#id_password", factories.PASSWORD)
    desk.floor_is_over(asked)
    desk.hand.commit()
