"""J8: fifty refunds are decided by one verdict, bound to the digest of the exact list.

*Stop at the first failure* is off for the fifty and on for a smaller batch. The bar of
a batch in `costs` is that of the first commit; sixteen strokes and the samples are the
bar of the second one as well.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Response, expect

from journal.models import LogRecord
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Batch, BatchItem, Decision, Execution
from tests.journeys.desk import moments
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.costs import Costs
from tests.journeys.desk.hands import Leads, Step, Way, in_ways, marked
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import Sitting
from tests.stack import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

ODD = 24
FIFTY = ["23.80" if n == ODD else "7.20" if n > 30 else "7.00" for n in range(50)]
TEN = ["7.00"] * 10
TOTAL = 89_900  # of each order
FORMED_S, RAN_S = 30, 60
ONCE_MORE = 5  # strokes: with the sixteen of the table, as many as the journey allows
APPROVE = Step("a", marked("verb-approve"))
UNOPENED = "tr:has(b.xs) [data-open]:visible"
OPEN = Step("Enter", f"{UNOPENED} >> nth=0")
TO_ROW = Step("j", ".tick >> nth=0", Leads.HERE)
TICK = Step("Space", ".tick >> nth=0")
STOP = Step("Space", "[name=stop]", Leads.HERE)
RETRY = Step("Enter", marked("retry"), Leads.PAGE)
ROWS = "[data-testid=batch-table] tbody tr[data-request]"


def formed(house: House, amounts: list[str]) -> list[ApprovalRequest]:
    """One refund an order, which the gate puts together; in the batch's order."""
    orders = house.store.sells(len(amounts))
    items = [
        {
            "thread": f"b-{number}",
            "tool": "process_refund",
            "args": refund(order, amount),
            "rationale": "The goods are damaged.",
            "idempotency_key": f"b-{number}",
        }
        for number, (order, amount) in enumerate(zip(orders, amounts, strict=True))
    ]
    made = house.post("/proposals/batch", {"items": items})
    assert {one["status"] for one in made["items"]} == {201}, made
    inside = BatchItem.objects.filter(left_at=None)
    wait_until(
        lambda: inside.count() == len(amounts), FORMED_S, lambda: str(inside.count())
    )
    asked = (one["proposal"]["request"]["id"] for one in made["items"])
    return [ApprovalRequest.objects.get(pk=pk) for pk in asked]


def refund(order: str, amount: str) -> dict[str, Any]:
    args = {"order_id": order, "amount": amount, "currency": "USD"}
    return {**args, "reason": "damaged"}


def order_of(request: ApprovalRequest) -> str:
    return str(request.sealed.revision.args["order_id"])


def fails(house: House, request: ApprovalRequest, left: int = 1) -> None:
    """So little is left of its order's total that the store refuses it: no version of
    the order tells."""
    change = "UPDATE purchase SET total_minor = ? WHERE id = ?"
    house.store.change(change, left, order_of(request))


def is_tried_again(house: House, rita: Sitting, request: ApprovalRequest) -> None:
    """What failed, once its cause is gone; nothing else."""
    fails(house, request, left=TOTAL)
    rita.hand.reach(RETRY)
    expect(rita.page.get_by_test_id("message")).to_contain_text("1 item")


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_fifty_refunds(house: House, sit_down: SitDown, way: Way, costs: Costs) -> None:
    asked = formed(house, FIFTY)
    rita = sit_down("rita", way)
    page = rita.open(f"/batches/{Batch.objects.get().pk}/")
    shows_fifty(rita)
    changed = next(one for one in asked[3:] if not is_sample(rita, one))
    with costs.of("Decide a 50-item batch incl. 5 samples", rita):
        is_told_what_to_open(rita)
        opens_samples(rita)
        leaves_one_out(rita)
        rita.hand.arm("approve")
        label = "Approve 49 refunds, 346.80 USD"
        expect(page.get_by_test_id("commit")).to_contain_text(label)
        rita.hand.reach(STOP)
        replaced(house, changed)
        with page.expect_response(is_commit) as answer:
            rita.hand.commit()
    nothing_was_decided(rita, changed, answer.value.status)
    commits_again(rita)
    assert Decision.objects.filter(verdict="approve").count() == 49
    fails(house, asked[2])
    moments.windows_over()
    stands(rita, "48 completed", "1 failed")
    expect(result(rita, asked[2])).to_contain_text("beyond_total")
    rita.arrived()
    rita.accessible()
    is_tried_again(house, rita, asked[2])
    stands(rita, "49 completed")
    assert len(house.store.rows("refund")) == 49
    assert approved_is_executed() == 49
    is_back_in_the_queue(rita, asked[ODD])


def shows_fifty(rita: Sitting) -> None:
    """The sum, the largest, every row, and what stands out on top with its reason."""
    page = rita.page
    title = page.get_by_test_id("h1-effect")
    expect(title).to_contain_text("50 refunds")
    expect(title).to_contain_text("370.60 USD")
    expect(title).to_contain_text("largest 23.80 USD")
    expect(page.locator(ROWS)).to_have_count(50)
    expect(page.locator(ROWS).first).to_contain_text("3.4 times the median")
    expect(page.locator(ROWS).first).to_contain_text("23.80")


def row(rita: Sitting, request: ApprovalRequest) -> Locator:
    return rita.page.locator(f"#i-{request.pk}")


def is_sample(rita: Sitting, request: ApprovalRequest) -> bool:
    return row(rita, request).locator("b.xs").count() == 1


def is_told_what_to_open(rita: Sitting) -> None:
    """Nothing is armed before the samples were opened; the focus goes to the first."""
    rita.hand.do(APPROVE)
    problem = rita.page.get_by_test_id("problem")
    expect(problem.locator("a")).to_have_count(5)
    expect(rita.page.locator(UNOPENED).first).to_be_focused()
    assert rita.page.get_by_test_id("panel").count() == 0


def opens_samples(rita: Sitting) -> None:
    """By keys, A leads to the next one; it opens in its place."""
    for opened in range(1, 6):
        if opened > 1 and rita.way is Way.KEYBOARD:
            rita.hand.do(APPROVE)
        rita.hand.do(OPEN)
        expect(rita.page.locator("tr.open")).to_have_count(opened)
        expect(rita.page.locator("#decide")).to_contain_text(f"{opened} of 5 samples")
        rita.settled()


def leaves_one_out(rita: Sitting) -> None:
    """The odd one is to be looked at alone: another list, and so another digest."""
    digest = rita.page.get_by_test_id("batch-digest")
    before = digest.inner_text()
    if rita.way is Way.KEYBOARD:
        rita.hand.do(TO_ROW)
    rita.hand.do(TICK)
    expect(digest).not_to_have_text(before)
    expect(rita.page.locator("#decide")).to_contain_text("49 of 50")


def replaced(house: House, request: ApprovalRequest) -> None:
    """The agent thinks better of one of them."""
    args = refund(order_of(request), "9.00")
    body = {"args": args, "rationale": "And the postage."}
    house.post(f"/proposals/{request.proposal_id}/revisions", body)


def is_commit(answer: Response) -> bool:
    """The page also looks by itself whether it is still as the batch is."""
    return "do=commit" in (answer.request.post_data or "")


def nothing_was_decided(rita: Sitting, changed: ApprovalRequest, status: int) -> None:
    """0 of 49, and the row that changed on top."""
    assert status == 409
    problem = rita.page.get_by_test_id("problem")
    expect(problem).to_contain_text("1 of 49 items")
    expect(problem).to_be_focused()
    assert not Decision.objects.exists()
    waiting = ApprovalRequest.objects.filter(status=RequestStatus.PENDING)
    assert waiting.count() == 50
    refused = LogRecord.objects.get(kind="batch.refused")
    assert b'"batch_changed"' in bytes(refused.leaf)
    first = rita.page.locator(ROWS).first
    expect(first).to_have_id(f"i-{changed.pk}")
    expect(first.get_by_test_id("changed")).to_be_visible()
    expect(first).to_contain_text("9.00")
    rita.accessible()


def stands(rita: Sitting, *figures: str) -> None:
    """The page comes to say so by itself."""
    state = rita.page.get_by_test_id("state")
    for figure in figures:
        expect(state).to_contain_text(figure, timeout=RAN_S * 1000)


def result(rita: Sitting, request: ApprovalRequest) -> Locator:
    rows = rita.page.get_by_test_id("batch-results").locator("tr")
    return rows.and_(rita.page.locator(f"[data-request='{request.pk}']"))


def commits_again(rita: Sitting) -> None:
    """What is ticked is so still, and which were opened is known."""
    rita.hand.arm("approve")
    rita.hand.reach(STOP)
    rita.hand.commit(Leads.PAGE)
    expect(rita.page.get_by_test_id("batch-results")).to_be_visible()
    assert sum(rita.hand.count()) <= ONCE_MORE


def approved_is_executed() -> int:
    """How many ran with the very hash that was decided on."""
    votes = dict(Decision.objects.values_list("request__proposal", "action_hash"))
    ran = Execution.objects.filter(status="succeeded").values_list(
        "proposal", "grant__action_hash"
    )
    return sum(votes[proposal] == action for proposal, action in ran)


def is_back_in_the_queue(rita: Sitting, left: ApprovalRequest) -> None:
    """What was left out waits, alone."""
    left.refresh_from_db()
    assert left.status == RequestStatus.PENDING
    rita.hand.go_to_queue()
    rows = rita.page.locator("tr[data-request]")
    expect(rows).to_have_count(1)
    expect(rows).to_have_attribute("data-request", left.pk)
    expect(rows).to_contain_text("23.80")
    rita.accessible()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_one_that_fails_keeps_the_rest_from_running(
    house: House, sit_down: SitDown, way: Way
) -> None:
    asked = formed(house, TEN)
    rita = sit_down("rita", way)
    rita.open(f"/batches/{Batch.objects.get().pk}/")
    rita.hand.do(APPROVE)
    for _ in range(3):
        rita.hand.do(OPEN)
        rita.hand.do(APPROVE)
    expect(rita.page.locator("[name=stop]")).to_be_checked()
    rita.hand.commit(Leads.PAGE)
    fails(house, asked[2])
    moments.windows_over()
    stands(rita, "2 completed", "1 failed", "7 not run")
    expect(rita.page.get_by_test_id("halted")).to_be_visible()
    expect(result(rita, asked[3]).locator("[data-state=behind]")).to_be_visible()
    rita.arrived()
    rita.accessible()
    is_tried_again(house, rita, asked[2])
    stands(rita, "10 completed")
    assert approved_is_executed() == 10
    rita.accessible()
