"""The conditions of an approval on the review page, and for programs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from journal import clock
from reviews.models import ApprovalRequest, Decision, Grant
from reviews.people import preferences, tokens
from tests import worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.markup import read_page
from tests.reviews.api.test_people import call, verdict
from tests.reviews.desk.conftest import HTMX, SignIn
from tests.reviews.desk.request.test_views import panel, url


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    found: ApprovalRequest = propose(gate.agent).request
    return found


def read_fold(source: str) -> str:
    """The part of a panel with the conditions, as HTML."""
    place = source.index('data-testid="conditions"')
    return source[source.rindex("<details", 0, place) :]


def local(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


def test_the_panel_of_approve_has_folded_conditions(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    client = as_("rita")
    source = read_page(client.get(url(request_, "decide") + "?arm=approve"))
    fold = read_fold(source)
    assert "open" not in fold[: fold.index(">")]
    assert 'name="expect" value="amount"' in fold
    assert 'name="not_before" type="datetime-local"' in fold
    source = read_page(client.get(url(request_, "decide") + "?arm=reject"))
    assert 'data-testid="conditions"' not in source


def test_conditions_are_recorded_and_stand_in_words(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    client, begins = as_("rita"), clock.now() + timedelta(hours=1)
    sent = panel(request_, "approve", not_before=local(begins), expect=["amount"])
    assert client.post(url(request_, "decide"), sent).status_code == 303
    grant = Grant.objects.get()
    assert grant.not_before == begins.replace(second=0, microsecond=0)
    assert grant.expected == [{"field": "amount", "value": "0.00"}]
    source = read_page(client.get(url(request_)))
    assert "Authorized, runs from" in source
    assert "Not before" in source
    assert "Only if amount is" in source
    assert "approved with conditions" in source


def test_times_are_in_the_readers_zone(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    kept = preferences.load_preferences(gate.rita)
    display = kept.display.model_copy(update={"zone": "Asia/Tokyo"})
    preferences.save_preferences(person=gate.rita, display=display)
    client = as_("rita")
    client.get("/queue/")  # the session learns the zone
    source = read_page(client.get(url(request_, "decide") + "?arm=approve"))
    assert "Asia/Tokyo" in source
    begins = clock.now() + timedelta(hours=1)
    there = timezone.localtime(begins, preferences.load_zone("Asia/Tokyo"))
    sent = panel(request_, "approve", not_before=local(there))
    client.post(url(request_, "decide"), sent)
    assert Grant.objects.get().not_before == begins.replace(second=0, microsecond=0)


@pytest.mark.parametrize(
    ("typed", "rule"),
    [
        ("soon", "Enter a date and a time, such as 2026-11-25 14:00."),
        ("2020-01-01T10:00", "must be later than now"),
    ],
)
def test_a_wrong_time_is_named_at_its_field_and_kept(
    request_: ApprovalRequest, as_: SignIn, typed: str, rule: str
) -> None:
    sent = panel(
        request_, "approve", not_after=typed, expect=["amount"], reason="as agreed"
    )
    answer = as_("rita", **HTMX).post(url(request_, "decide"), sent)
    source = read_page(answer)
    assert answer.status_code == 422
    fold = read_fold(source)
    assert "open" in fold[: fold.index(">")]
    assert rule in fold
    assert f'value="{typed}"' in fold
    assert "checked" in fold[fold.index('value="amount"') :][:60]
    assert "as agreed" in source
    assert not Decision.objects.exists()


def test_the_values_of_a_reader_are_inert(gate: Gate, as_: SignIn) -> None:
    worlds.WORLD["before"] = {"owner": "<b>Ann</b>"}
    request = propose(gate.agent).request
    source = read_page(as_("rita").get(url(request, "decide") + "?arm=approve"))
    assert "<b>Ann</b>" not in source
    worlds.WORLD.clear()


@pytest.fixture
def token(gate: Gate) -> str:
    return tokens.create_token(person=gate.rita, name="script")


def test_a_token_approves_with_conditions(
    request_: ApprovalRequest, token: str
) -> None:
    ends = clock.now() + timedelta(minutes=5)
    conditions = {
        "not_after": ends.isoformat(),
        "expect": [{"field": "row_version", "value": 1}],
    }
    body = verdict(request_, conditions=conditions)
    said = call(f"/requests/{request_.pk}/decide", body, token=token)
    assert said.status_code == 200, said.content
    grant = Grant.objects.get()
    assert grant.expires_at == ends
    assert grant.expected == [{"field": "row_version", "value": 1}]


@pytest.mark.parametrize(
    ("conditions", "path"),
    [
        ({"not_before": "2026-11-25T14:00"}, "conditions.not_before"),
        ({"not_after": "2020-01-01T10:00:00Z"}, "conditions.not_after"),
        ({"expect": [{"field": "colour", "value": 1}]}, "conditions.expect.0.field"),
        ({"until": 5}, "conditions.until"),
    ],
)
def test_a_wrong_condition_names_its_place(
    request_: ApprovalRequest, token: str, conditions: dict[str, Any], path: str
) -> None:
    body = verdict(request_, conditions=conditions)
    said = call(f"/requests/{request_.pk}/decide", body, token=token)
    assert (said.status_code, said.json()["code"]) == (422, "invalid")
    assert [one["path"] for one in said.json()["errors"]] == [path]
    assert not Decision.objects.exists()
