"""J3: a label is refused with a reason, and the agent is told; also without a script.

The tool is the store's `add_label`, which is asked about because the agent says that it
is unsure.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.choices import RequestStatus
from reviews.models import Decision, Execution
from tests.journeys.desk import requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import Way, in_ways
from tests.journeys.desk.house import House

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

NOTE = "Claims go to billing first."


@in_ways(*Way)
def test_a_refusal_needs_a_reason_which_the_agent_is_told(
    house: House, sit_down: SitDown, way: Way
) -> None:
    request = requests.label(house)
    rita = sit_down("rita", way)
    rita.open("/queue/")
    rita.hand.open_first()
    rita.hand.arm("reject")
    rita.hand.type("#id_reason", NOTE)
    rita.hand.commit()
    group = rita.page.locator("#reasons")
    expect(group).to_contain_text("Choose a reason.")
    expect(group).to_have_attribute("aria-invalid", "true")
    expect(group).to_be_focused()
    expect(rita.page.locator("#id_reason")).to_have_value(NOTE)
    assert not Decision.objects.exists()
    rita.hand.choose(2)
    rita.hand.commit()
    expect(rita.page.locator("#outcome")).to_contain_text("Rejected")
    expect(rita.page.get_by_test_id("decide")).to_contain_text("Nothing was executed.")
    rita.accessible()
    request.refresh_from_db()
    assert request.status == RequestStatus.REJECTED
    assert not Execution.objects.exists()
    assert house.store.rows("tag") == []
    told = house.told(request)
    assert told["status"] == "rejected"
    assert told["decision"]["verdict"] == "reject"
    assert told["decision"]["reason_code"] == "wrong_amount"
    assert told["decision"]["reason"] == NOTE
    assert told["execution"] is None
