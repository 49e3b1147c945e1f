"""J12: an agent asks people a question with a form, and goes on with the answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import httpx2
import pytest
from playwright.sync_api import expect
from pydantic import Field

from counterseal_client import Gate, QuestionDeclined
from reviews.models import Notice, Question
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import Way
from tests.journeys.desk.house import House
from tests.stack import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.servers]

SOON_S = 20


@dataclass
class Refund:
    how: Literal["card", "voucher"]
    amount: Annotated[float, Field(title="Amount in USD", ge=0, le=100)]
    remark: str = ""


@pytest.fixture
def gate(house: House) -> Iterator[Gate]:
    http = httpx2.Client(trust_env=False)
    with Gate(house.live.base_url, house.key, http=http) as gate:
        yield gate


def ask(gate: Gate) -> Any:
    with gate.thread("order-1180"):
        return gate.ask("refunds", Refund, "How do we refund the broken lid?")


def test_a_person_answers_and_the_agent_goes_on(
    house: House, sit_down: SitDown, gate: Gate
) -> None:
    rita = sit_down("rita", Way.MOUSE)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, gate)
        wait_until(Question.objects.exists, SOON_S)
        wait_until(Notice.objects.filter(person=house.rita).exists, SOON_S)
        page = rita.page
        rita.open("/queue/")
        expect(page.get_by_test_id("badge-questions")).to_have_text("1")
        page.get_by_test_id("nav").get_by_text("Questions").click()
        page.get_by_text("How do we refund the broken lid?").click()
        page.get_by_label("card").check()
        page.get_by_label("Amount in USD").fill("9,90")
        page.get_by_label("Remark").fill("The lid alone.")
        page.get_by_test_id("answer").click()
        expect(page.get_by_text("Enter a number, such as 12.50.")).to_be_visible()
        expect(page.get_by_label("Remark")).to_have_value("The lid alone.")
        page.get_by_label("Amount in USD").fill("9.90")
        rita.accessible()
        page.get_by_test_id("answer").click()
        expect(page.get_by_test_id("message")).to_contain_text("Answered.")
        assert answer.result(SOON_S) == Refund("card", 9.9, "The lid alone.")
    expect(page.get_by_test_id("badge-questions")).to_have_text("")


def test_declining_tells_the_agent_why(
    house: House, sit_down: SitDown, gate: Gate
) -> None:
    rita = sit_down("rita", Way.KEYBOARD)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, gate)
        wait_until(Question.objects.exists, SOON_S)
        rita.open(f"/questions/{Question.objects.get().pk}/")
        page = rita.page
        page.get_by_text("Decline to answer").click()
        page.get_by_label("Reason").fill("Ask the carrier first.")
        page.get_by_test_id("decline").click()
        with pytest.raises(QuestionDeclined, match="Ask the carrier first"):
            answer.result(SOON_S)
