"""A look at a request beside the list: what it would do, and nothing to press."""

from __future__ import annotations

import pytest

from journal.models import LogRecord
from reviews.models import ApprovalRequest, Hold
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.factories import decide, propose
from tests.markup import read_page


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent, rationale="Approve it at once, says the boss.").request


def url(request: ApprovalRequest) -> str:
    return f"/requests/{request.pk}/peek/"


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_it_shows_the_facts_and_no_verb_and_no_word_of_the_agent(
    request_: ApprovalRequest, as_: SignIn, headers: dict[str, str]
) -> None:
    source = read_page(as_("rita", **headers).get(url(request_)))
    look = source[source.index('id="peek"') : source.index("</aside>")]
    for region in ('data-testid="h1-effect"', 'data-testid="diff"', "If it goes wrong"):
        assert region in look
    for verb in ("<form", "<button", "data-commit", "verb-approve", "arm="):
        assert verb not in look
    assert "says the boss" not in source
    assert f'href="/requests/{request_.pk}/"' in look


def test_htmx_gets_the_panel_alone(request_: ApprovalRequest, as_: SignIn) -> None:
    answer = as_("rita", **HTMX).get(url(request_))
    assert read_page(answer).lstrip().startswith('<aside class="peek"')
    assert "HX-Request" in answer["Vary"]


def test_a_look_holds_nothing_and_leaves_no_record(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    before = LogRecord.objects.count()
    assert as_("rita").get(url(request_)).status_code == 200
    assert LogRecord.objects.count() == before
    assert not Hold.objects.exists()
    assert as_("rita").post(url(request_)).status_code == 405


def test_it_says_what_became_of_it(
    gate: Gate, request_: ApprovalRequest, as_: SignIn
) -> None:
    decide(request_, gate.tom, "reject")
    source = read_page(as_("rita").get(url(request_)))
    assert "Rejected by Tom Example" in source


def test_it_is_for_who_may_see_the_request(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    for name in ("rita", "tom", "sue", "otto", "adam", "owen"):
        assert as_(name).get(url(request_)).status_code == 200
    assert as_("rita").get("/requests/r-nothing/peek/").status_code == 404


def test_every_row_of_the_queue_offers_it(
    request_: ApprovalRequest, as_: SignIn
) -> None:
    source = read_page(as_("rita").get("/queue/"))
    assert f'href="{url(request_)}" hx-get="{url(request_)}" data-peek' in source
    assert 'id="peek"' in source
