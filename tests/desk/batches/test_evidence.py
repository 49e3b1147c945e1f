"""The page of a batch is kept with the decision on it and opened again as it was."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from desk.components import page_evidence
from journal import clock
from journal.models import LogRecord
from reviews.batches import membership
from reviews.decisions import submission
from reviews.decisions.submission import PageToken
from reviews.governance import readings
from reviews.holds import take
from reviews.models import Batch, Decision, Snapshot
from reviews.tool_services.readers import ToolReading
from tests import factories
from tests.conftest import Gate
from tests.desk.batches.batch_form import Form, inputs, url
from tests.desk.conftest import SignIn
from tests.markup import read_page
from tests.reviews.batches.batching import decide, formed, members


def approved(gate: Gate, as_: SignIn, *amounts: str, out: int = 0) -> Batch:
    """All but the first `out` of them, after the samples."""
    batch = formed(gate, *amounts)
    form = Form(as_("rita"), batch).open_samples()
    left = [member.id for member in members(batch)[:out]]
    form.items = [pk for pk in form.items if pk not in left]
    form.press("arm:approve").press("commit", stop="1")
    assert form.status == 303, form.text
    return batch


def opened(as_: SignIn, name: str, decision: Decision) -> str:
    url = f"/requests/{decision.request_id}/as-seen/{decision.pk}/"
    return read_page(as_(name).get(url))


def test_one_copy_is_kept_and_every_decision_opens_it(gate: Gate, as_: SignIn) -> None:
    batch = approved(gate, as_)
    assert Snapshot.objects.count() == 1
    pages = [opened(as_, "otto", one) for one in Decision.objects.all()]
    for page in pages:
        assert "Matches what was shown" in page
        assert 'data-finding="identical"' in page
        assert f'href="{url(batch)}"' in page
        assert "3 repayments" in page
        assert "3.4 times the median" in page
        assert page.count('class="inside"') == 3


def test_it_shows_what_was_ticked_and_can_press_nothing(
    gate: Gate, as_: SignIn
) -> None:
    batch = approved(gate, as_, *["7.00"] * 5, out=2)
    page = opened(as_, "rita", Decision.objects.filter()[0])
    kept = page[page.index('class="batch as-seen"') :]
    assert kept.count('class="tick"') == 5
    assert kept.count("disabled checked") == 3
    assert "3 of 5" in kept
    for control in ('name="', "hx-post", "hx-get", "<button", "<form"):
        assert control not in kept[: kept.index("</main>")]
    snapshot = Snapshot.objects.get()
    assert snapshot.inputs["chosen"] == [
        one.id for one in membership.load_members(batch, now=snapshot.decision.at)
    ]


def test_the_log_names_its_digest_for_each_and_for_all(gate: Gate, as_: SignIn) -> None:
    approved(gate, as_)
    digest = Snapshot.objects.get().digest
    kinds = ["decision.recorded", "batch.decided"]
    records = LogRecord.objects.filter(kind__in=kinds)
    assert records.count() == 4
    for record in records:
        data = json.loads(bytes(record.leaf))["data"]
        assert data["view"] == digest
        page = read_page(as_("otto").get(f"/log/new/{record.pk}/"))
        assert re.search(r'href="/requests/[^"]+/as-seen/[^"]+"', page)
    recorded = json.loads(bytes(records.filter(kind=kinds[0])[0].leaf))["data"]
    assert recorded["by"] == "page"


def test_it_reads_the_same_when_everything_moved_on(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate, *["7.00"] * 4)
    form = Form(as_("rita"), batch).open_samples()
    left = members(batch)[0]
    form.items.remove(left.id)
    form.press("arm:reject")
    args = {**left.version.revision.args, "amount": "70.00"}
    factories.revised(gate.agent, left.request.proposal, args)
    form.press("commit", reason_code="duplicate")
    assert form.status == 303  # what is left out may change
    page = opened(as_, "otto", Decision.objects.all()[0])
    assert "70.00" not in page
    assert 'data-finding="identical"' in page


def test_a_row_of_a_newer_reading_is_kept_with_it(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    one = members(batch)[0]
    row = readings.create_reading(
        one.version.revision,
        ToolReading(at=clock.now(), before={"amount": "1.00"}),
        cause=readings.OPENED,
    )
    form = Form(as_("rita"), batch).open_samples().press("arm:approve").press("commit")
    assert form.status == 303
    rows = {pk: reading for pk, _, reading in Snapshot.objects.get().inputs["rows"]}
    assert rows[one.id] == row.pk
    page = opened(as_, "otto", Decision.objects.all()[0])
    assert 'data-finding="identical"' in page


def test_a_hold_on_what_is_left_out_is_not_part_of_it(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate, *["7.00"] * 4)
    held = members(batch)[0]
    take.take_hold(request_id=held.id, person=gate.tom)
    form = Form(as_("rita"), batch)
    assert 'data-testid="blocked"' in form.text
    form.open_samples().press("arm:approve").press("commit")
    assert form.status == 303
    page = opened(as_, "otto", Decision.objects.all()[0])
    assert 'data-testid="blocked"' not in page
    assert 'data-finding="identical"' in page


@pytest.mark.parametrize(
    "row", ["{0}~{1}~7~", "{0}~00000000~1~", "{0}~{1}~1~99", "{0}"]
)
def test_a_page_that_was_never_ours_decides_nothing(
    gate: Gate, as_: SignIn, row: str
) -> None:
    batch = formed(gate)
    form = Form(as_("rita"), batch).open_samples().press("arm:reject")
    rows = [row.format(one.id, one.mark) for one in members(batch)]
    form.press("commit", row=rows, reason_code="duplicate")
    assert form.status == 409
    assert not Decision.objects.exists()


def test_strangers_do_not_open_it(gate: Gate, as_: SignIn) -> None:
    approved(gate, as_)
    decision = Decision.objects.all()[0]
    for name in ("tom", "owen"):
        url = f"/requests/{decision.request_id}/as-seen/{decision.pk}/"
        assert as_(name).get(url).status_code == 404


def test_a_program_leaves_no_copy(gate: Gate, as_: SignIn) -> None:
    decide(formed(gate), gate.rita)
    page = opened(as_, "otto", Decision.objects.all()[0])
    assert "No page was shown" in page


def test_what_makes_its_bytes_is_in_its_template_version(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    approved(gate, as_)
    assert (
        Snapshot.objects.get().template_version
        != page_evidence.compute_template_digest()
    )
    fresh: Any = lambda *_: "sha256:other"  # noqa: E731
    monkeypatch.setattr(page_evidence, "compute_template_digest", fresh)
    page = opened(as_, "otto", Decision.objects.all()[0])
    assert 'data-finding="identical"' in page


# How long it was on the screen.
def since(form: Form) -> datetime:
    (token,) = inputs(form.text, "seen")
    return submission.parse_page_token(token).rendered_at


def test_each_decision_says_how_long_the_page_was_on_the_screen(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate))
    first = since(form)
    form.open_samples().press("arm:approve")
    assert since(form) == first  # the same rows: still the same reading
    form.press("commit")
    decision = Decision.objects.all()[0]
    assert set(Decision.objects.values_list("took_ms", flat=True)) == {decision.took_ms}
    assert decision.took_ms is not None
    most = (decision.at - first).total_seconds() * 1000
    assert 0 < decision.took_ms <= most
    assert "On screen" in opened(as_, "otto", decision)


def test_what_changed_under_the_reader_is_read_anew(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate))
    first = since(form)
    member = members(form.batch)[1]
    args = {**member.version.revision.args, "amount": "9.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    assert since(form.press("refresh")) > first


@pytest.mark.parametrize("whose", ["nobodys", "another batch's", "another person's"])
def test_no_page_says_another_time_than_its_own(
    gate: Gate, as_: SignIn, whose: str
) -> None:
    batch = formed(gate)
    form = Form(as_("rita"), batch).open_samples().press("arm:approve")
    tokens = {
        "nobodys": ["x"],
        "another batch's": [replace(own(form), request="b-other").token()],
        "another person's": inputs(Form(as_("tom"), batch).text, "seen"),
    }
    form.press("commit", seen=tokens[whose])
    assert form.status == 409
    assert not Decision.objects.exists()


def own(form: Form) -> PageToken:
    (token,) = inputs(form.text, "seen")
    return submission.parse_page_token(token)
