"""`POST /requests/<id>/decide/?check=1`: what an edit would lead to, and no more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import connection

from desk.components.throttle import RateLimiter
from desk.request import preview
from policies.choices import Role
from policies.models import Person
from reviews.models import ApprovalRequest, Decision
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.desk.request.test_views import edited, url
from tests.factories import propose
from tests.markup import read_page, read_text
from tests.security.world import changed, digests

ASKED: list[Mapping[str, Any]] = []
PARTS = {
    "type": "object",
    "required": ["lines"],
    "properties": {
        "lines": {
            "type": "array",
            "maxItems": 4,
            "items": {
                "type": "object",
                "required": ["sku", "count"],
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
            },
        },
        "to": {"type": "array", "items": {"type": "string", "maxLength": 9}},
        "note": {"type": "string"},
    },
}


def reader(args: Mapping[str, Any]) -> dict[str, Any]:
    """The tests' reader, which remembers being asked, and where from."""
    ASKED.append({**args, "inside": connection.in_atomic_block})
    return worlds.read(args)


def balance(args: Mapping[str, Any]) -> dict[str, Any]:
    """A reader that knows what the amount is taken from."""
    facts = {"kept": "100.00", "kept_currency": "USD"}
    return {**worlds.read(args), "facts": facts}


def owner(args: Mapping[str, Any]) -> dict[str, Any]:
    """A reader that knows to whom an account belongs, and what was paid to it."""
    name, paid = {"C-1": ("Ada Abel", "5.00"), "C-2": ("Bob Brown", "70.00")}[
        args["customer"]
    ]
    facts = {"kept": paid, "kept_currency": "USD"}
    return {**worlds.read(args), "before": {"owner": name}, "facts": facts}


def verifier(sealed: Mapping[str, Any], *, stage: str) -> None:
    raise AssertionError("a verifier was asked while somebody typed")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    ASKED.clear()
    monkeypatch.setattr(preview, "CHECK_LIMITER", RateLimiter(most=60, seconds=60))


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


@pytest.fixture
def parcel(gate: Gate) -> ApprovalRequest:
    """A request whose arguments are lists and groups."""
    document = factories.document_of_tests()
    document["tools"]["deploy"] |= {"schema": PARTS, "effect": "Send {lines}"}
    document["tools"]["deploy"] |= {"risk": "high"}
    factories.policy(gate.people, document)
    args = {"lines": [{"sku": "A", "count": 1}, {"sku": "B", "count": 2}]}
    return propose(gate.agent, "deploy", args=args).request


def check(client: Any, request: ApprovalRequest, sent: dict[str, Any], **more: Any):
    return client.post(url(request, "decide") + "?check=1", sent, **more)


def text(response: Any) -> str:
    """What a person reads of an answer."""
    source = re.sub(r"</?(bdi|span|b)\b[^>]*>", "", read_page(response))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", source))


def test_nothing_changed_says_so_and_asks_nobody(request_, as_: SignIn) -> None:
    answer = check(as_("rita", **HTMX), request_, edited(request_))
    assert answer.status_code == 200
    assert 'data-line="unchanged"' in read_page(answer)


def test_a_smaller_change_stays_and_shows_three_values(request_, as_: SignIn) -> None:
    answer = check(as_("rita", **HTMX), request_, edited(request_, amount="12.50"))
    said = text(answer)
    assert 'data-line="same"' in read_page(answer)
    assert "alone is enough" in said
    assert re.search(r"Current Proposed Yours Amount 0.00 40.00 12.50", said)
    assert "read from test world at" in said


def test_more_authority_is_said_before_it_is_asked(request_, as_: SignIn) -> None:
    answer = check(as_("rita", **HTMX), request_, edited(request_, amount="600.00"))
    said = text(answer)
    assert 'data-line="raises"' in read_page(answer)
    assert "2 supervisors" in said
    assert "Payments over 500.00 need two supervisors." in said
    assert re.search(r'data-say="[^"]*2 supervisors', read_page(answer))


def test_less_authority_says_that_ones_own_approval_is_enough(
    gate: Gate, as_: SignIn
) -> None:
    request = propose(gate.agent, amount="899.00").request
    client = as_("sue", **HTMX)
    lower = check(client, request, edited(request, amount="450.00"))
    assert 'data-line="lowers"' in read_page(lower)
    assert "alone is enough" in text(lower)
    same = check(client, request, edited(request, amount="600.00"))
    assert 'data-line="same"' in read_page(same)
    assert "2 supervisors" in text(same)
    assert "alone is enough" not in text(same)


def test_balances_are_compared_too(gate: Gate, as_: SignIn) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"] |= {
        "presenter": "money",
        "facts": ["kept", "kept_currency"],
        "balances": [{"fact": "kept", "label": "Kept by us", "moves": "down"}],
        "reader": {"kind": "callable", "path": f"{__name__}.balance"},
    }
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    answer = check(as_("rita", **HTMX), request, edited(request, amount="12.50"))
    assert "Kept by us 100.00 USD 60.00 USD 87.50 USD" in text(answer)


def test_an_edit_that_names_another_record_shows_that_record(
    gate: Gate, as_: SignIn
) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"] |= {
        "presenter": "money",
        "facts": ["kept", "kept_currency"],
        "balances": [{"fact": "kept", "label": "Paid so far", "moves": "up"}],
        "reader": {"kind": "callable", "path": f"{__name__}.owner"},
    }
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    sent = edited(request, customer="C-2", amount="12.50")
    said = text(check(as_("rita", **HTMX), request, sent))
    assert re.search(r"With your changes: Pay 12.50 USD to C-2", said)
    assert "Owner Bob Brown Ada Abel Bob Brown" in said
    assert "Paid so far 70.00 USD 45.00 USD 82.50 USD" in said
    assert as_("rita").post(url(request, "decide"), sent).status_code == 303
    page = as_("tom").get(url(request))
    told = read_text(page, "version-said")
    what = "Customer, Amount, Owner and Paid so far (current record)"
    assert told == f"Another person changed {what}"
    changes = read_text(page, "edited")
    assert "Owner Ada Abel Bob Brown" in changes
    assert "Amount 40.00 USD 12.50 USD" in changes
    assert "Rita" not in told + changes  # while it is open
    both = as_("tom").get(url(request, "versions", "2") + "?compare=1..2")
    assert "Owner Ada Abel Bob Brown" in read_text(both, "version-diff")
    assert "You changed" in read_page(as_("rita").get(url(request)))


def test_what_is_forbidden_is_said_beside_its_field(request_, as_: SignIn) -> None:
    sent = edited(request_, amount="20000.00", note="keep me")
    answer = check(as_("rita", **HTMX), request_, sent)
    assert "Amount: Payments over 10,000.00 are not made." in text(answer)
    assert 'id="id_arg-amount-error"' in read_page(answer)
    redrawn = as_("rita", **HTMX, HTTP_HX_TARGET="fields")
    answer = check(redrawn, request_, sent)
    source = read_page(answer)
    assert 'value="20000.00"' in source
    assert "keep me" in source
    assert re.search(r'name="arg.amount"[^>]*aria-invalid="true"', source)


def test_ones_own_ceiling_is_said(gate: Gate, request_, as_: SignIn) -> None:
    gate.rita.ceiling_minor, gate.rita.ceiling_currency = 5000, "USD"
    gate.rita.save()
    answer = check(as_("rita", **HTMX), request_, edited(request_, amount="60.00"))
    source = read_page(answer)
    assert 'data-line="exceeds"' in source
    assert 'data-line="second_person"' in source
    said = read_text(answer, "check")
    assert "1 reviewer" in said
    assert said.count("Your approval alone is not enough.") == 1


def test_what_the_schema_refuses_is_said_and_the_reader_is_not_asked(
    gate: Gate, as_: SignIn
) -> None:
    _with(gate, "pay", reader={"kind": "callable", "path": f"{__name__}.reader"})
    request = propose(gate.agent).request
    ASKED.clear()
    sent = edited(request, customer="C" * 41)
    answer = check(as_("rita", **HTMX), request, sent)
    assert 'data-testid="check-problem"' in read_page(answer)
    assert "Customer: " in text(answer)
    assert ASKED == []


def test_it_asks_no_verifier(gate: Gate, as_: SignIn) -> None:
    path = f"{__name__}.verifier"
    _with(gate, "pay", verifiers=[{"kind": "callable", "path": path}])
    request = propose(gate.agent).request
    answer = check(as_("rita", **HTMX), request, edited(request, amount="12.50"))
    assert 'data-line="verifiers"' in read_page(answer)


@pytest.mark.django_db(transaction=True)
def test_the_reader_is_asked_once_and_outside_any_transaction(
    gate: Gate, as_: SignIn
) -> None:
    _with(gate, "pay", reader={"kind": "callable", "path": f"{__name__}.reader"})
    request = propose(gate.agent).request
    client = as_("rita", **HTMX)
    ASKED.clear()
    check(client, request, edited(request, amount="12.50"))
    assert [(one["amount"], one["inside"]) for one in ASKED] == [("12.50", False)]


def test_looking_writes_nothing(request_, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    before = digests(log=True)
    for amount in ("12.50", "600.00", "20000.00", "x", "1,000.00", "40.00"):
        sent = edited(request_, amount=amount) | {"password": "wrong"}
        assert check(client, request_, sent).status_code == 200
    assert changed(before, log=True) == []
    assert not Decision.objects.exists()


def test_a_password_is_never_written_back(request_, as_: SignIn) -> None:
    sent = edited(request_, amount="12.50") | {"password": "my pass word"}
    assert "my pass word" not in read_page(check(as_("rita"), request_, sent))


def test_who_checks_all_the_time_is_told_to_wait(
    request_, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "CHECK_LIMITER", RateLimiter(most=2, seconds=60))
    client = as_("rita", **HTMX)
    answers = [
        text(check(client, request_, edited(request_, amount=f"{n}.50")))
        for n in range(1, 4)
    ]
    assert ["Too many checks" in said for said in answers] == [False, False, True]


def test_a_new_version_is_said(gate: Gate, request_, as_: SignIn) -> None:
    sent = edited(request_, amount="12.50")
    factories.revise(gate.agent, request_.proposal, amount="41.00")
    answer = check(as_("rita", **HTMX), request_, sent)
    assert "changed while you were reading" in text(answer)


@pytest.mark.parametrize("name", ["otto", "owen", "adam"])
def test_who_cannot_decide_cannot_look(request_, as_: SignIn, name: str) -> None:
    answer = check(as_(name), request_, edited(request_, amount="12.50"))
    assert answer.status_code == 303


def test_a_stranger_finds_nothing(gate: Gate, request_, as_: SignIn) -> None:
    sent = edited(request_, amount="12.50")
    Person.objects.filter(pk=gate.tom.pk).update(is_active=True)
    stranger = factories.person("zoe", Role.REVIEWER)
    gate.people["zoe"] = stranger
    assert check(as_("zoe"), request_, sent).status_code == 404


class TestWithoutJavaScript:
    def test_the_button_answers_with_the_whole_page(self, request_, as_) -> None:
        sent = edited(request_, amount="600.00") | {"edit": "check"}
        answer = check(as_("rita"), request_, sent | {"reason": "typed before"})
        source = read_page(answer)
        assert "<h1" in source
        assert 'data-line="raises"' in source
        assert 'value="600.00"' in source
        assert "typed before" in source
        assert "Approve with my 1 change" in source

    def test_rows_are_added_moved_and_removed(self, parcel, as_) -> None:
        client = as_("sue")
        sent = rows(parcel)
        answer = check(client, parcel, sent | {"edit": "add:arg.lines"})
        assert 'value="0 1 n0"' in read_page(answer)
        sent |= {"arg.lines:rows": "0 1 n0", "arg.lines.n0.sku": "C"}
        answer = check(client, parcel, sent | {"edit": "up:arg.lines.n0"})
        source = read_page(answer)
        assert 'value="0 n0 1"' in source
        assert 'name="arg.lines.n0.sku"' in source
        assert 'value="C"' in source
        answer = check(client, parcel, sent | {"edit": "remove:arg.lines.0"})
        assert 'value="1 n0"' in read_page(answer)
        assert 'name="arg.lines.0.sku"' not in read_page(answer)

    def test_revert_puts_the_proposal_back(self, parcel, as_) -> None:
        sent = rows(parcel) | {"arg.lines.0.sku": "Z", "edit": "revert:arg.lines.0.sku"}
        answer = check(as_("sue"), parcel, sent)
        assert 'value="Z"' not in read_page(answer)
        assert 'data-line="unchanged"' in read_page(answer)


def test_what_was_typed_into_rows_is_what_is_decided(parcel, as_: SignIn) -> None:
    sent = rows(parcel) | {
        "arg.lines:rows": "1 n0",
        "arg.lines.n0.sku": "C",
        "arg.lines.n0.count": "3",
        "arg.note": "left at the door",
        "arg.to:rows": "n0",
        "arg.to.n0": "a@b.c",
        "reason_code": "wrong_amount",
    }
    answer = as_("rita").post(url(parcel, "decide"), sent)
    assert answer.status_code == 303, text(answer)
    parcel.refresh_from_db()
    assert parcel.sealed.revision.args == {
        "lines": [{"sku": "B", "count": 2}, {"sku": "C", "count": 3}],
        "note": "left at the door",
        "to": ["a@b.c"],
    }


def test_a_refusal_in_a_row_keeps_every_word(parcel, as_: SignIn) -> None:
    sent = rows(parcel) | {
        "arg.to:rows": "n0 n1",
        "arg.to.n0": "far too long for this",
        "arg.to.n1": "kept",
        "arg.lines.0.count": "many",
        "arg.lines.1.sku": "kept too",
        "reason": "my note",
    }
    answer = as_("rita").post(url(parcel, "decide"), sent)
    source = read_page(answer)
    assert answer.status_code == 422
    for kept in ("far too long for this", "kept", "many", "kept too", "my note"):
        assert kept in source
    assert "Count: must be a whole number" in text(answer)


def test_an_answer_moves_the_focus_to_where_it_was(parcel, as_: SignIn) -> None:
    pressed = {"HTTP_HX_TARGET": "fields", "HTTP_HX_TRIGGER": "id_arg-lines-0-down"}
    client = as_("sue", **HTMX, **pressed)
    sent = rows(parcel)
    answer = check(client, parcel, sent | {"edit": "add:arg.lines"})
    assert 'data-focus="#id_arg-lines-n0"' in read_page(answer)
    answer = check(client, parcel, sent | {"edit": "down:arg.lines.0"})
    assert 'data-focus="#id_arg-lines-0-down"' in read_page(answer)
    answer = check(client, parcel, sent | {"edit": "remove:arg.lines.0"})
    assert 'data-focus="#id_arg-lines"' in read_page(answer)


def rows(request: ApprovalRequest) -> dict[str, Any]:
    """The panel of Modify for a parcel as a browser sends it untouched."""
    sent = {
        "arg.lines:rows": "0 1",
        "arg.lines.0.sku": "A",
        "arg.lines.0.count": "1",
        "arg.lines.1.sku": "B",
        "arg.lines.1.count": "2",
        "arg.to:rows": "",
        "arg.to:is": "absent",
        "arg.note": "",
        "arg.note:is": "absent",
    }
    panel = edited(request)
    return {k: v for k, v in panel.items() if not k.startswith("arg.")} | sent


def _with(gate: Gate, tool: str, **fields: Any) -> None:
    document = factories.document_of_tests()
    document["tools"][tool] |= fields
    factories.policy(gate.people, document)
