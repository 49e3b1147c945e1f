"""What the members of a batch cost together, as their tool's reader says."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from desk.batches import links
from desk.queue import page as queue
from desk.queue.page import QueueFilters
from journal import clock
from policies.documents import ToolDefinition
from reviews.batches import formation
from reviews.governance import readings
from reviews.models import Batch, Revision
from reviews.tool_services.readers import ToolReading
from tests.conftest import Gate
from tests.desk.batches.batch_form import Form, url
from tests.gallery import store
from tests.markup import find_element, read_page, read_text
from tests.security.world import BACKEND

LABELS = "create_return_label"


def definition(**changes: Any) -> ToolDefinition:
    tool = store.policy()["tools"][LABELS]
    return ToolDefinition.model_validate({**tool, "name": LABELS, **changes})


def read(minor: int, currency: str = "USD") -> dict[str, Any]:
    return {"label_cost": minor, "label_cost_currency": currency, "parcel": "at home"}


def test_each_currency_has_a_sum_of_its_own() -> None:
    (cost,) = links.sum_costs(
        definition(), [read(690), read(540, "EUR"), read(710), {}, None]
    )
    assert cost.said == "5.40 EUR and 14.00 USD"
    assert (cost.known, cost.label) == (3, "Cost of the label")


def test_what_costs_nothing_has_no_sum() -> None:
    free = store.policy()["tools"][LABELS]["profile"] | {"monetary": False}
    assert links.sum_costs(definition(profile=free), [read(690)]) == []
    assert links.sum_costs(definition(), [{"label_cost": 690}, {}]) == []


@pytest.fixture
def labels(gate: Gate, tmp_path: Path) -> Batch:
    """Twelve labels of the demo's store, 6.90 USD each."""
    made = store.open_store(gate, tmp_path)
    for order in islice(made.orders, 12):
        made.ask(
            LABELS, {"order_id": order, "carrier": "Harrow Parcel"}, group="recall"
        )
    formation.form_missed_batches()
    return Batch.objects.get()


SUM = "12 return labels, cost of the label 82.80 USD"


def signed_in(gate: Gate) -> Client:
    client = Client()
    client.force_login(gate.rita, BACKEND)
    return client


def plain(text: str) -> str:
    for tag in ("<b>", "</b>", "<bdi>", "</bdi>"):
        text = text.replace(tag, "")
    return text


def test_a_batch_says_what_its_members_cost_together(gate: Gate, labels: Batch) -> None:
    client = signed_in(gate)
    for place in (url(labels), "/batches/", "/queue/"):
        assert SUM in plain(read_page(client.get(place))), place
    form = Form(client, labels)
    assert "12 of 12" in find_element(form.text, "selected")
    assert "<b>82.80 USD</b>" in find_element(form.text, "sum")
    form.items = form.items[:10]
    form.press("arm:reject")
    assert "10 of 12" in find_element(form.text, "selected")
    assert "<b>69.00 USD</b>" in find_element(form.text, "sum")
    assert "Reject 10 return labels, 69.00 USD" in form.text


def test_what_a_call_costs_is_its_amount_in_the_queue(
    gate: Gate, tmp_path: Path
) -> None:
    made = store.open_store(gate, tmp_path)
    order = next(iter(made.orders))
    made.ask(LABELS, {"order_id": order, "carrier": "Harrow Parcel"})
    page = queue.build_queue_page(
        gate.rita, QueueFilters(sort="largest"), now=clock.now()
    )
    assert [row.head.amount for band in page.bands for row in band] == ["6.90 USD"]


def test_what_a_call_costs_is_the_one_amount_that_its_columns_show() -> None:
    assert definition().cost_facts == ["label_cost"]
    review = {"facts": ["parcel", "label_cost"]}
    shown = definition(review=review, effect="Order a label for {order_id}")
    assert shown.cost_facts == ["label_cost"]
    paid = {"fact": "label_cost"}
    assert definition(amounts=[paid]).cost_facts == []


def test_a_batch_says_what_each_of_it_adds(gate: Gate, labels: Batch) -> None:
    text = read_text(signed_in(gate).get(url(labels)))
    assert "Return labels for this order 0 → 1 " in text


def test_the_newest_reading_counts_everywhere(gate: Gate, labels: Batch) -> None:
    revision = Revision.objects.earliest("pk")
    said = dict(revision.reading)
    newer = {**said["facts"], "label_cost": "7.40"}
    reading = ToolReading(
        at=clock.now(), before={**said["before"], "label_cost": "7.40"}, facts=newer
    )
    readings.create_reading(revision, reading, cause=readings.OPENED)
    client = signed_in(gate)
    for place in (url(labels), "/batches/"):
        text = plain(read_page(client.get(place)))
        assert "cost of the label 83.30 USD" in text


def test_a_narrow_page_names_columns_as_the_wide_one_does(
    gate: Gate, labels: Batch
) -> None:
    text = read_page(signed_in(gate).get(url(labels)))
    assert 'data-label="Customer"' in text
    assert 'data-label="Shipped to"' in text
    assert "Customer name" not in text
