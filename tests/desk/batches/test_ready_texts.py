"""The ready texts of a queue in the panel of a verdict on a batch."""

from __future__ import annotations

import pytest

from reviews.administration import queue_presets
from reviews.administration.queue_presets import ReadyText
from reviews.choices import VERDICT_SPECS, ReasonCode, RequestStatus, Verdict
from reviews.models import Batch, Decision
from tests.conftest import Gate
from tests.desk.batches.batch_form import Form, inputs, statuses, url
from tests.desk.conftest import HTMX, SignIn
from tests.reviews.batches.batching import formed

TEXT = "The order is a <b>duplicate</b>."
KEY = ReadyText(TEXT).key


@pytest.fixture
def batch(gate: Gate) -> Batch:
    own = {verdict: spec.reasons for verdict, spec in VERDICT_SPECS.items()}
    formed_ = formed(gate)
    queue_presets.change_preset(
        queue_name=formed_.queue.name,
        reasons={**own, Verdict.REJECT: [ReasonCode.DUPLICATE]},
        texts=[TEXT],
        reason="They write the same every day.",
        by=gate.adam,
    )
    return formed_


def test_the_panel_offers_the_reasons_and_texts_of_the_queue(
    as_: SignIn, batch: Batch
) -> None:
    form = Form(as_("rita"), batch).press("arm:reject")
    assert inputs(form.text, "reason_code") == ["duplicate"]
    assert f'<option value="{KEY}"' in form.text
    assert "The order is a &lt;b&gt;duplicate&lt;/b&gt;.</option>" in form.text


def test_without_a_note_the_chosen_text_is_the_note_of_each(
    as_: SignIn, batch: Batch
) -> None:
    form = Form(as_("rita"), batch).press("arm:reject")
    form.press("commit", reason_code="duplicate", reason=" ", ready=KEY)
    assert form.status == 303
    assert statuses() == {RequestStatus.REJECTED}
    assert {decision.reason for decision in Decision.objects.all()} == {TEXT}


def test_a_typed_note_stays_as_it_is(as_: SignIn, batch: Batch) -> None:
    form = Form(as_("rita"), batch).press("arm:reject")
    form.press("commit", reason_code="duplicate", reason="Mine.", ready=KEY)
    assert {decision.reason for decision in Decision.objects.all()} == {"Mine."}


def test_a_text_that_is_gone_is_refused_and_the_panel_stays(
    as_: SignIn, batch: Batch
) -> None:
    form = Form(as_("rita"), batch).press("arm:reject")
    form.press("commit", reason_code="duplicate", reason="", ready="gone")
    assert form.status == 422
    assert "This ready text is no longer offered" in form.text
    assert not Decision.objects.exists()


def test_a_choice_is_inserted_after_what_was_typed(as_: SignIn, batch: Batch) -> None:
    sent = {"verdict": "reject", "reason": "First.", "ready": KEY}
    address = url(batch, "decide") + "?ready=1"
    text = as_("rita", **HTMX).post(address, sent).content.decode()
    shown = TEXT.replace("<", "&lt;").replace(">", "&gt;")
    assert f">\nFirst.\n{shown}</textarea>" in text
    assert as_("otto", **HTMX).post(address, sent).status_code == 204
    assert not Decision.objects.exists()
