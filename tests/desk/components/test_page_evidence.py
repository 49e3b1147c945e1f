"""The seen regions are a function of what is shown: any other argument, another
digest; anything that changes by itself, the same digest."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desk.components import page_evidence
from desk.components.regions import Regions
from journal import canonical, clock, errors
from policies.choices import Role
from reviews.decisions import submission
from reviews.models import ApprovalRequest, Revision
from tests import factories, pages
from tests.conftest import Gate
from tests.factories import decide, propose

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
)


def digest(gate: Gate, request: ApprovalRequest, revision: Revision) -> str:
    sealed = page_evidence.find_version(request.pk, 1)
    assert sealed is not None
    sealed.revision = revision
    return page_evidence.render_regions(Regions(gate.rita, sealed)).digest


def with_args(revision: Revision, args: dict[str, Any]) -> Revision:
    """The same revision with other bytes, and the hash that is still the old one: so
    that only what is shown of them can make the difference."""
    found = Revision.objects.select_related("tool", "proposal").get(pk=revision.pk)
    body = {**json.loads(bytes(found.canonical)), "args": args}
    found.canonical = canonical.encode(body)
    return found


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent, args=ARGS).request


ARGS = {"customer": "C-1", "amount": "40.00", "currency": "USD", "note": "hello"}


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(sorted(ARGS)), texts)
def test_another_leaf_gives_another_digest(
    request_, gate: Gate, name: str, text: str
) -> None:
    revision = request_.sealed.revision
    before = digest(gate, request_, with_args(revision, ARGS))
    after = digest(gate, request_, with_args(revision, {**ARGS, name: text}))
    assert (before == after) == (ARGS[name] == text)


def test_a_hidden_leaf_changes_it_too(gate: Gate) -> None:
    """A chip has only four digits to tell values apart by; the action's hash is there
    beside it."""
    document = factories.document_of_tests()
    document["tools"]["pay"]["sensitive"] = ["note"]
    factories.policy(gate.people, document)
    found = set()
    for number in range(3):
        args = {**ARGS, "note": f"hello {number}"}
        request = propose(gate.agent, args=args).request
        html = page_evidence.render_regions(Regions(gate.rita, request.sealed)).html
        assert "hello" not in html
        assert request.action_hash in html
        found.add(submission.compute_page_digest(html))
    assert len(found) == 3


def test_it_is_the_same_for_one_person_whatever_happens_beside_it(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    before = pages.seen(request, "sue").digest
    decide(request, gate.sam)
    ApprovalRequest.objects.filter(pk=request.pk).update(
        expires_at=request.expires_at + timedelta(seconds=61)
    )
    gate.tom.is_active = False
    gate.tom.save()
    assert pages.seen(request, "sue").digest == before


def test_from_memory_it_is_the_same_for_all_who_may_follow_its_links(
    gate: Gate, request_
) -> None:
    owner = factories.person("olga", Role.OWNER)
    made = {}
    for person in (gate.rita, gate.tom, owner):
        regions = Regions(person, request_.sealed)
        kept = [page_evidence.load_cached_regions(regions) for _ in range(2)]
        assert kept == [page_evidence.render_regions(regions)] * 2
        assert kept[0].inputs["person"] == person.public_id
        made[person.username] = kept[0].html
    assert made["rita"] == made["tom"] != made["olga"]


def test_what_an_auditor_opens_is_never_from_memory(gate: Gate, request_) -> None:
    regions = Regions(gate.rita, request_.sealed)
    shown = page_evidence.load_cached_regions(regions)
    changed = Regions(gate.rita, request_.sealed)
    changed.revision = with_args(request_.sealed.revision, {**ARGS, "note": "other"})
    assert page_evidence.load_cached_regions(changed).html == shown.html
    assert page_evidence.render_regions(changed).digest != shown.digest


def test_nothing_of_the_request_is_in_it(gate: Gate, request_) -> None:
    html = page_evidence.render_regions(Regions(gate.rita, request_.sealed)).html
    for word in ("csrf", "autofocus", "hx-get", "hx-post", "data-until", "<form"):
        assert word not in html
    assert "{%" not in html
    assert "{{" not in html


def test_a_token_comes_back_as_it_was_made(gate: Gate, request_) -> None:
    page = pages.seen(request_).warning("fast")
    assert submission.parse_page_token(page.token()) == page
    assert page.warning("fast") == page


@pytest.mark.parametrize("text", ["", "x", "a:b:c", "{}", "\0", "é" * 5000])
def test_what_is_not_ours_is_no_token(text: str) -> None:
    with pytest.raises(errors.DigestMissing):
        submission.parse_page_token(text)
    assert submission.find_page_token(text) is None


def test_a_changed_token_is_none(gate: Gate, request_) -> None:
    token = pages.token(request_)
    for place in (0, len(token) // 2, -1):
        letter = "A" if token[place] != "A" else "B"
        changed = token[:place] + letter + (token[place + 1 :] if place != -1 else "")
        assert submission.find_page_token(changed) is None


def test_only_the_same_bytes_have_been_read_since(gate: Gate, request_) -> None:
    before = pages.seen(request_)
    now = pages.seen(request_, rendered_at=clock.now())
    assert now.read_since(before).rendered_at == before.rendered_at
    other = pages.seen(request_, digest="sha256:other")
    assert now.read_since(other) == now
    stranger = pages.seen(request_, person="u-other")
    assert now.read_since(stranger) == now
