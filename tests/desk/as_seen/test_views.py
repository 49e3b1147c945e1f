"""`/requests/<id>/as-seen/…`, `versions/…` and `reveal/`: what was on a screen can be
opened again, exactly, and what is hidden is shown for a minute."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from django.db import connection

from desk.components import page_evidence
from journal.models import LogRecord
from reviews.decisions import recall, submission
from reviews.models import ApprovalRequest, Decision, Snapshot
from tests import factories, pages
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import edited, panel, url
from tests.factories import PASSWORD, decide, propose
from tests.markup import read_page, read_text


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent, rationale="They never got it.").request


def decided(request: ApprovalRequest, as_: SignIn, by: str = "rita") -> Decision:
    sent = panel(request, "approve", by, password=PASSWORD)
    assert as_(by).post(url(request, "decide"), sent).status_code == 303
    return Decision.objects.get(request=request, reviewer__username=by)


def opened(decision: Decision, as_: SignIn, by: str) -> Any:
    path = url(decision.request, "as-seen", str(decision.pk))
    return as_(by).get(path)


def test_a_decision_keeps_the_very_page(request_, as_: SignIn) -> None:
    page = as_("rita").get(url(request_)).content.decode()
    decision = decided(request_, as_)
    snapshot = decision.snapshot
    html = submission.decompress_snapshot(snapshot)
    for part in ("h1-effect", "diff", "reversal", "why-asked", "agent-text"):
        assert f'data-testid="{part}"' in html
    shown = pages.token(request_)
    assert (
        snapshot.digest
        == submission.parse_page_token(shown).digest
        == submission.compute_page_digest(html)
    )
    # The page prints these bytes as they are, only with what changes between them.
    facts, rest = html.split(
        '<section translate="no" class="region" aria-labelledby="r4"'
    )
    rules, words = rest.split('<section translate="no" class="untrusted"', 1)
    assert facts in page
    assert rules.rstrip() in page
    assert words in page
    record = LogRecord.objects.get(kind="decision.recorded")
    data = json.loads(bytes(record.leaf))["data"]
    assert data["view"] == snapshot.digest
    assert data["by"] == "page"
    assert decision.took_ms is not None
    assert decision.took_ms >= 3_600_000


def test_what_it_was_made_from_is_kept_beside_it(request_, as_: SignIn) -> None:
    inputs = decided(request_, as_).snapshot.inputs
    sealed = request_.sealed
    assert inputs["seal"] == sealed.seal
    assert inputs["action_hash"] == request_.action_hash
    assert inputs["tool"]["digest"] == sealed.revision.tool.digest
    assert inputs["policy"] == sealed.policy.number
    assert inputs["presenter"]
    assert inputs["reading"]["digest"].startswith("sha256:")


def test_over_the_api_there_is_no_page_and_it_says_so(
    gate: Gate, request_, as_: SignIn
) -> None:
    decide(request_, gate.rita)
    decision = Decision.objects.get()
    assert decision.authority["by"] == "api"
    assert not Snapshot.objects.exists()
    source = read_page(opened(decision, as_, "rita"))
    assert 'data-finding="no_page"' in source


@pytest.mark.parametrize("name", ["rita", "sue", "otto"])
def test_it_opens_as_it_was_shown(request_, as_: SignIn, name: str) -> None:
    decision = decided(request_, as_)
    response = opened(decision, as_, name)
    source = read_page(response)
    assert response.status_code == 200
    assert 'data-finding="matches"' in source
    assert 'data-finding="identical"' in source
    page = submission.decompress_snapshot(decision.snapshot)
    assert page in response.content.decode()
    assert "verb-approve" not in source


@pytest.mark.parametrize("name", ["tom", "adam", "owen"])
def test_others_do_not_open_it(request_, as_: SignIn, name: str) -> None:
    assert opened(decided(request_, as_), as_, name).status_code == 404


def test_a_page_that_was_changed_since_is_text_and_says_so(
    request_, as_: SignIn
) -> None:
    decision = decided(request_, as_)
    forged = zlib.compress(b"<h1>Pay 4.00</h1><script>alert(1)</script>")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE reviews_snapshot DISABLE TRIGGER USER")
        cursor.execute("UPDATE reviews_snapshot SET html = %s", [forged])
        cursor.execute("ALTER TABLE reviews_snapshot ENABLE TRIGGER USER")
    source = read_page(opened(decision, as_, "otto"))
    assert 'data-finding="differs"' in source
    assert "<script>alert" not in source
    assert "&lt;script&gt;" in source


def test_templates_that_changed_since_are_told_apart(
    request_, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    decision = decided(request_, as_)
    monkeypatch.setattr(
        page_evidence,
        "REGION_TEMPLATES",
        (*page_evidence.REGION_TEMPLATES[:2], "desk/request/_narrow_screen.html"),
    )
    monkeypatch.setattr(
        page_evidence, "compute_template_digest", lambda: "sha256:other"
    )
    source = read_page(opened(decision, as_, "otto"))
    assert 'data-finding="matches"' in source
    assert 'data-finding="templates_changed"' in source


def test_the_template_version_is_over_every_file_it_includes() -> None:
    names = set(
        page_evidence._list_templates(
            page_evidence.get_product_root(), page_evidence.REGION_TEMPLATES
        )
    )
    assert {
        "templates/desk/components/_cell.html",
        "templates/desk/components/_blocks.html",
    } <= names


def test_the_template_version_is_over_every_source_it_names() -> None:
    names = set(
        page_evidence._list_sources(
            page_evidence.get_product_root(), page_evidence.RENDERING_SOURCES
        )
    )
    assert {"reviews/presenters/shell.py", "reviews/presenters/__init__.py"} <= names
    assert {"desk/templatetags/inert.py", "static/icons.svg"} <= names
    with pytest.raises(LookupError, match=r"reviews\.nothing draws pages"):
        list(
            page_evidence._list_sources(
                page_evidence.get_product_root(), ["reviews.nothing"]
            )
        )


def test_a_page_without_its_token_decides_nothing(request_, as_: SignIn) -> None:
    for token in ("", "forged", pages.token(request_, "sue")):
        sent = panel(request_, "approve") | {"seen": token}
        response = as_("rita").post(url(request_, "decide"), sent)
        assert response.status_code == 422
        assert 'data-code="digest_missing"' in read_page(response)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_page_that_reads_differently_now_is_shown_anew(
    request_, as_: SignIn, headers: dict[str, str]
) -> None:
    token = pages.token(request_, digest="sha256:" + "0" * 64)
    sent = panel(request_, "approve", reason="mine") | {"seen": token}
    response = as_("rita", **headers).post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 409
    assert 'data-code="stale"' in source
    assert "mine" in source
    assert not Decision.objects.exists()
    if headers:
        assert f'href="{url(request_)}"' in source
        assert "verb-approve" not in source


def test_an_old_page_under_a_new_panel_is_stale(
    gate: Gate, request_, as_: SignIn
) -> None:
    old = pages.token(request_)
    factories.revise(gate.agent, request_.proposal, amount="41.00")
    sent = panel(request_, "approve") | {"seen": old}
    response = as_("rita").post(url(request_, "decide"), sent)
    assert response.status_code == 409
    assert not Decision.objects.exists()


def test_an_edit_keeps_the_page_that_was_edited(request_, as_: SignIn) -> None:
    sent = edited(request_, amount="12.50")
    assert as_("rita").post(url(request_, "decide"), sent).status_code == 303
    decision = Decision.objects.get()
    assert (decision.version, decision.snapshot.inputs["version"]) == (2, 1)
    assert "40.00" in submission.decompress_snapshot(decision.snapshot)
    assert 'data-finding="matches"' in read_page(opened(decision, as_, "rita"))


def test_a_version_can_be_read_and_compared(gate: Gate, request_, as_: SignIn) -> None:
    factories.revise(gate.agent, request_.proposal, amount="400.00")
    first = read_page(as_("otto").get(url(request_, "versions", "1")))
    assert "40.00" in first
    assert "400.00" not in first
    assert "verb-approve" not in first
    path = url(request_, "versions", "2") + "?compare=1..2"
    both = read_page(as_("otto").get(path))
    assert "<del>" in both
    assert "400.00" in both
    assert "They never got it." in both
    for odd in ("?compare=", "?compare=x..y", "?compare=9..9", "?compare=2"):
        assert as_("otto").get(url(request_, "versions", "2") + odd).status_code in {
            200,
            404,
        }
    assert as_("otto").get(url(request_, "versions", "7")).status_code == 404


def test_after_a_new_version_what_changed_comes_first(
    gate: Gate, request_, as_: SignIn
) -> None:
    factories.revise(gate.agent, request_.proposal, amount="400.00")
    source = read_page(as_("rita").get(url(request_) + "?since=1"))
    changes = source[source.index('data-testid="diff"') :]
    first = changes[: changes.index("</table>")]
    assert 'data-testid="since"' in first
    assert "40.00" in first
    assert "400.00" in first
    plain = read_page(as_("rita").get(url(request_) + "?since=2"))
    assert 'data-testid="since"' not in plain


def test_a_version_without_differences_says_what_made_it(
    gate: Gate, as_: SignIn
) -> None:
    document = factories.document_of_tests()
    document["recall"]["high"] = 60
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    client, same = as_("tom"), "The action is the same as in version 1."
    both = client.get(url(request, "versions", "2") + "?compare=1..2")
    assert read_text(both, "same") == f"An approval was undone. {same}"
    page = client.get(url(request) + "?since=1")
    assert f"An approval was undone. {same}" in read_text(page, "since")
    assert read_text(page, "version-said") == "An approval was undone"


def test_what_was_marked_is_kept_as_it_was_marked(
    gate: Gate, request_, as_: SignIn
) -> None:
    factories.revise(gate.agent, request_.proposal, amount="41.00")
    client = as_("rita")
    source = read_page(client.get(url(request_) + "?since=1"))
    token = source.split('form="decide" value="')[1].split('"')[0]
    sent = panel(request_, "approve") | {"seen": token}
    assert client.post(url(request_, "decide"), sent).status_code == 303
    decision = Decision.objects.get()
    assert 'data-testid="since"' in submission.decompress_snapshot(decision.snapshot)
    assert 'data-finding="identical"' in read_page(opened(decision, as_, "otto"))
