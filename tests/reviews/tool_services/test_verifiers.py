"""A verifier may say no or ask for more; silence and nonsense are a no."""

from __future__ import annotations

import pytest

from policies.choices import Tier
from reviews.tool_services import verifiers
from reviews.tool_services.verifiers import VerifierDemand, VerifierRefusal
from tests.reviews.definitions import tool

HERE = "tests.reviews.tool_services.test_verifiers"
ARGS = {"order_id": "78291", "amount": "49.00", "currency": "USD"}
SEALED = {"request": "r-1", "version": 1, "verdict": "approve", "args": ARGS}
seen: list[str] = []


def agrees(sealed, *, stage):
    seen.append(stage)


def refuses(sealed, *, stage):
    return VerifierRefusal("policy_7", "Not on a Sunday.")


def demands(sealed, *, stage, tier):
    return VerifierDemand(Tier(tier))


def breaks(sealed, *, stage):
    raise RuntimeError(f"secret {sealed}")


def approves(sealed, *, stage):
    return True


def here(name, **options):
    return {"kind": "callable", "path": f"{HERE}.{name}", "options": options}


def shipped(name, **options):
    path = f"reviews.verifier_rules.{name}"
    return {"kind": "callable", "path": path, "options": options}


def there(url):
    return {"kind": "webhook", "url": url}


def ask(*registered, args=ARGS, stage="decision"):
    definition = tool(verifiers=list(registered))
    return verifiers.run_verifiers(
        definition.verifiers, SEALED | {"args": args}, stage=stage
    )


class TestTheAnswer:
    def test_nobody_objects(self):
        seen.clear()
        assert ask() is None
        assert ask(here("agrees"), stage="effect") is None
        assert seen == ["effect"]

    def test_the_first_refusal_ends_it(self):
        seen.clear()
        answer = ask(here("refuses"), here("agrees"))
        assert answer == VerifierRefusal("policy_7", "Not on a Sunday.")
        assert seen == []

    def test_a_refusal_beats_a_demand_and_the_highest_demand_wins(self):
        approve = here("demands", tier="approve")
        escalate = here("demands", tier="escalate")
        assert ask(escalate, here("refuses")) == VerifierRefusal(
            "policy_7", "Not on a Sunday."
        )
        assert ask(approve, escalate, here("agrees")) == VerifierDemand(Tier.ESCALATE)

    @pytest.mark.parametrize("name", ["breaks", "approves", "absent"])
    def test_what_cannot_answer_refuses_and_nothing_can_approve(self, name):
        answer = ask(here(name))
        assert isinstance(answer, VerifierRefusal)
        assert answer.code == "verifier_failed"
        assert "secret" not in answer.detail

    def test_wrong_options_refuse(self):
        assert isinstance(ask(here("agrees", unknown=1)), VerifierRefusal)


class TestWebhook:
    def test_it_sees_the_sealed_request_and_the_stage(self, service):
        service.body = {"status": "ok"}
        assert ask(there(service.url)) is None
        assert service.payloads == [SEALED | {"stage": "decision"}]

    def test_it_may_refuse_or_ask_for_more(self, service):
        service.body = {"status": "refused", "code": "sunday", "detail": "Tomorrow."}
        assert ask(there(service.url)) == VerifierRefusal("sunday", "Tomorrow.")
        service.body = {"status": "refused"}
        assert ask(there(service.url)) == VerifierRefusal("refused")
        service.body = {"status": "more_authority", "tier": "escalate"}
        assert ask(there(service.url)) == VerifierDemand(Tier.ESCALATE)
        service.body = {"status": "more_authority", "tier": "block"}
        assert isinstance(ask(there(service.url)), VerifierRefusal)

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"status": "approved"},
            {"status": "more_authority"},
            {"status": "more_authority", "tier": "none"},
            [],
            b"ok",
        ],
    )
    def test_another_answer_is_a_refusal(self, service, body):
        service.body = body
        assert isinstance(ask(there(service.url)), VerifierRefusal)

    def test_an_error_a_time_out_and_a_refused_address_refuse(self, service, settings):
        changed = settings.COUNTERSEAL.model_copy(update={"http_timeout": 0.3})
        settings.COUNTERSEAL = changed
        assert isinstance(ask(there("http://10.0.0.1/")), VerifierRefusal)
        service.status = 500
        assert isinstance(ask(there(service.url)), VerifierRefusal)
        service.status, service.trick = 200, "hang"
        assert isinstance(ask(there(service.url), there(service.url)), VerifierRefusal)
        assert len(service.requests) == 2  # after a refusal, nobody else is asked


class TestShippedRules:
    @pytest.mark.parametrize(
        ("changed", "code"),
        [
            ({}, None),
            ({"amount": "500.00"}, None),
            ({"amount": "500.01"}, "over_maximum"),
            ({"currency": "EUR"}, "other_currency"),
            ({"currency": None}, "other_currency"),
            ({"amount": "5e1"}, "amount_unreadable"),
            ({"amount": 49.0}, "amount_unreadable"),
            ({"amount": "NaN"}, "amount_unreadable"),
            ({"amount": "-1"}, "amount_unreadable"),
            ({"amount": "\u0661"}, "amount_unreadable"),
            ({"amount": None}, "amount_unreadable"),
        ],
    )
    def test_maximum_amount(self, changed, code):
        rule = shipped("maximum_amount", maximum="500.00", currency="USD")
        answer = ask(rule, args=ARGS | changed)
        assert (answer.code if answer else None) == code

    @pytest.mark.parametrize(
        ("to", "ours"),
        [
            ("dana@shop.example", True),
            ("Dana <dana@SHOP.example>", True),
            (["a@shop.example", "b@shop.example"], True),
            ([], True),
            (None, True),
            (["a@shop.example", "b@other.example"], False),
            ("dana@evil.shop.example", False),
            ("dana@shop.example.evil", False),
            ("dana@sh\u043ep.example", False),
            ("a@shop.example, b@evil.example", False),
            ("a@evil.example(b@shop.example", False),
            ('"a@shop.example" <b@evil.example>', False),
            ("b@evil.example <a@shop.example>", False),
            ("shop.example", False),
            ("@shop.example", False),
            ({"address": "a@shop.example"}, False),
        ],
    )
    def test_recipient_domains(self, to, ours):
        rule = shipped("recipient_domains", allow=["shop.example"])
        for field in ("to", "cc", "bcc"):
            answer = ask(rule, args={field: to})
            assert (answer is None) is ours

    @pytest.mark.parametrize("value", [None, "", "  ", [], {}])
    def test_required_fields(self, value):
        rule = shipped("required_fields", fields=["order_id", "amount"])
        assert ask(rule) is None
        answer = ask(rule, args=ARGS | {"amount": value})
        assert answer == VerifierRefusal("field_missing", "amount is missing or empty.")
        assert ask(rule, args=ARGS | {"amount": 0, "order_id": False}) is None
