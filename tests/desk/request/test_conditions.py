"""The conditions of an approval on the review page, and for programs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from agents import keys
from journal import clock
from reviews.grants.grants import GrantConditions
from reviews.models import ApprovalRequest, Decision, Grant
from reviews.people import preferences, tokens
from tests import worlds
from tests.conftest import Gate
from tests.desk.api.test_people import call, verdict
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import panel, url
from tests.factories import decide, propose
from tests.markup import read_page


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


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("field", ["not_before", "not_after"])
@pytest.mark.parametrize("typed", ["0001-01-01T00:00", "9999-12-31T23:59"])
def test_a_time_at_an_end_of_the_calendar_is_refused_in_any_zone(
    gate: Gate,
    request_: ApprovalRequest,
    as_: SignIn,
    zone: str,
    field: str,
    typed: str,
) -> None:
    kept = preferences.load_preferences(gate.rita)
    display = kept.display.model_copy(update={"zone": zone})
    preferences.save_preferences(person=gate.rita, display=display)
    client = as_("rita", **HTMX)
    client.get("/queue/")  # the session learns the zone
    sent = panel(request_, "approve", **{field: typed})
    answer = client.post(url(request_, "decide"), sent)
    assert answer.status_code == 422
    assert "The year must be from 2000 to 2100." in read_page(answer)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("stored", ["0001-01-01 BC", "infinity"])
def test_a_time_that_python_lacks_breaks_neither_page_nor_list(
    gate: Gate, request_: ApprovalRequest, as_: SignIn, zone: str, stored: str
) -> None:
    """As another program may have stored it."""
    first = datetime(1, 1, 1, tzinfo=timezone.get_fixed_timezone(14 * 60))
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE reviews_grant DROP CONSTRAINT grant_years")
    decide(request_, gate.rita, conditions=GrantConditions(not_before=first))
    kept = preferences.load_preferences(gate.rita)
    display = kept.display.model_copy(update={"zone": zone})
    preferences.save_preferences(person=gate.rita, display=display)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE reviews_grant SET not_before = %s", [stored])
        cursor.execute("UPDATE reviews_execution SET due_at = %s", [stored])
        cursor.execute("SET LOCAL session_replication_role = origin")
    client = as_("rita")
    for path in ("/queue/?tab=done", url(request_)):
        assert client.get(path).status_code == 200
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    for path in ("/proposals", f"/proposals/{request_.proposal_id}"):
        assert call(path, token=key).status_code == 200


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
        ({"not_before": "0001-01-01T00:00:00+14:00"}, "conditions.not_before"),
        ({"not_before": "1999-12-31T23:59:59Z"}, "conditions.not_before"),
        ({"not_after": "9999-12-31T23:59:59-14:00"}, "conditions.not_after"),
        ({"not_after": "2101-01-01T00:00:00Z"}, "conditions.not_after"),
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
