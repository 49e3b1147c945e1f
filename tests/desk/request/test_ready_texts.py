"""The ready texts of a queue in the panel of a verdict."""

from __future__ import annotations

import re

import pytest

from reviews.administration import queue_presets
from reviews.administration.queue_presets import ReadyText
from reviews.choices import VERDICT_SPECS, ReasonCode, Verdict
from reviews.models import ApprovalRequest, Decision
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import panel, url
from tests.factories import propose
from tests.markup import read_page

LONG = "Ask the customer for the receipt and a picture of what arrived broken. " * 3
SHORT = "The order is a <b>duplicate</b>."


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    own = {verdict: spec.reasons for verdict, spec in VERDICT_SPECS.items()}
    queue_presets.change_preset(
        queue_name="money",
        reasons={**own, Verdict.REJECT: [ReasonCode.DUPLICATE]},
        texts=[LONG, SHORT],
        reason="They write the same every day.",
        by=gate.adam,
    )
    return propose(gate.agent).request


def key(text: str) -> str:
    return ReadyText(text.strip()).key


def test_a_panel_lists_them_in_short(as_: SignIn, request_: ApprovalRequest) -> None:
    page = read_page(as_("rita").get(url(request_, "decide") + "?arm=approve"))
    options = re.findall(r'<option value="\w*"[^>]*>([^<]*)</option>', page)
    assert "The order is a &lt;b&gt;duplicate&lt;/b&gt;." in options
    assert any(option.endswith("…") and len(option) == 81 for option in options)


def test_without_a_note_the_chosen_one_is_the_note(
    as_: SignIn, request_: ApprovalRequest
) -> None:
    sent = panel(request_, "reject", reason="", reason_code="duplicate")
    answer = as_("rita").post(url(request_, "decide"), sent | {"ready": key(SHORT)})
    assert answer.status_code in {302, 303}
    assert Decision.objects.get().reason == SHORT


def test_a_typed_note_stays_as_it_is(as_: SignIn, request_: ApprovalRequest) -> None:
    sent = panel(request_, "reject", reason="Mine.", reason_code="duplicate")
    as_("rita").post(url(request_, "decide"), sent | {"ready": key(SHORT)})
    assert Decision.objects.get().reason == "Mine."


def test_one_that_is_gone_is_refused_and_the_panel_stays(
    as_: SignIn, request_: ApprovalRequest
) -> None:
    sent = panel(request_, "reject", reason="", reason_code="duplicate")
    answer = as_("rita").post(url(request_, "decide"), sent | {"ready": key("gone")})
    assert answer.status_code == 422
    assert "This ready text is no longer offered" in read_page(answer)
    assert not Decision.objects.exists()


def test_a_reason_that_is_not_offered_stays_chosen(
    as_: SignIn, request_: ApprovalRequest
) -> None:
    """Whoever opened the panel before the change loses nothing."""
    sent = panel(request_, "reject", reason="", reason_code="other")
    answer = as_("rita").post(url(request_, "decide"), sent)
    assert answer.status_code == 422
    page = read_page(answer)
    assert re.findall(r'name="reason_code" value="(\w+)"', page) == [
        "duplicate",
        "other",
    ]


@pytest.mark.parametrize(
    ("note", "made"),
    [("", SHORT), ("First.", f"First.\n{SHORT}"), (f"Yes. {SHORT}", f"Yes. {SHORT}")],
)
def test_a_choice_is_inserted_after_what_was_typed(
    as_: SignIn, request_: ApprovalRequest, note: str, made: str
) -> None:
    sent = {"verdict": "reject", "reason": note, "ready": key(SHORT)}
    address = url(request_, "decide") + "?ready=1"
    answer = as_("rita", **HTMX).post(address, sent)
    assert answer.status_code == 200
    text = answer.content.decode()
    assert text.count("<textarea") == 1
    shown = made.replace("<", "&lt;").replace(">", "&gt;")
    assert f">\n{shown}</textarea>" in text
    assert not Decision.objects.exists()


def test_who_cannot_decide_gets_nothing_inserted(
    as_: SignIn, request_: ApprovalRequest
) -> None:
    sent = {"verdict": "reject", "reason": "", "ready": key(SHORT)}
    address = url(request_, "decide") + "?ready=1"
    assert as_("otto", **HTMX).post(address, sent).status_code == 204
