"""What an attempt may say is known, and what stays unknown (I20)."""

from __future__ import annotations

import inspect
import re
import socket
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from counterseal_client import grants
from reviews.tool_services import executors
from tests.reviews.definitions import tool
from tests.reviews.outbound.test_trace_context import GIVEN

CALL = executors.Call(
    tool="process_refund",
    tool_version=3,
    args={"order_id": "78291", "amount": "49.00", "currency": "USD"},
    execution="x-1",
    idempotency_key="k-1",
    fence=2,
    agent="riley",
    thread="t-1",
)
HERE = "tests.reviews.tool_services.test_executors"


def works(call):
    return {"refund": call.args["order_id"]}


def refuses(call):
    raise executors.KnownFailure("over_balance", "not enough left")


def breaks(call):
    raise RuntimeError(f"secret {call.args}")


def refuses_oddly(call):
    raise executors.KnownFailure("no\0", "half \ud800 of it")


def says_a_large_number(call):
    return {"at": 1.7e18}


def says_it_deeply(call):
    deep: dict[str, object] = {}
    for _ in range(40):
        deep = {"in": deep}
    return deep


def says_nul(call):
    return {"said": "a\0b"}


def says_nothing(call):
    return None


def says_text(call):
    return "done"


def says_nonsense(call):
    return {"object": object()}


def says_much(call):
    return {"text": "x" * executors.RESULT_LIMIT}


def knows_it(call):
    return {"status": "succeeded", "result": {"key": call.idempotency_key}}


def knows_nothing(call):
    return {"status": "not_found"}


def in_process(name, **parts):
    return tool(executor={"kind": "callable", "path": f"{HERE}.{name}"}, **parts)


def webhook(url, **parts):
    return tool(executor={"kind": "webhook", "url": url}, **parts)


class TestCallable:
    def test_what_it_returns_is_the_result(self):
        outcome = executors.perform_effect(in_process("works"), CALL)
        assert outcome == executors.EffectOutcome("succeeded", {"refund": "78291"})

    def test_only_its_own_word_makes_a_failure_known(self):
        outcome = executors.perform_effect(in_process("refuses"), CALL)
        assert (outcome.status, outcome.code) == ("failed", "over_balance")
        assert outcome.detail == "not enough left"
        assert not outcome.this_attempt_only

    def test_any_other_exception_is_unknown_and_repeats_no_argument(self):
        with capture_logs() as logs:
            outcome = executors.perform_effect(in_process("breaks"), CALL)
        assert (outcome.status, outcome.detail) == ("unknown", "RuntimeError")
        assert "secret" not in repr(outcome) + repr(logs)

    @pytest.mark.parametrize(
        "path", ["tests.no.such.module", f"{HERE}.absent", f"{HERE}.HERE"]
    )
    def test_a_function_that_is_not_there_did_nothing(self, path):
        definition = tool(executor={"kind": "callable", "path": path})
        outcome = executors.perform_effect(definition, CALL)
        assert (outcome.status, outcome.code) == ("failed", "no_such_callable")
        assert outcome.this_attempt_only, "another host may have begun it"

    def test_a_colon_before_the_function_is_read_too(self):
        path = f"{HERE}:works"
        definition = tool(executor={"kind": "callable", "path": path})
        assert executors.perform_effect(definition, CALL).status == "succeeded"

    @pytest.mark.parametrize(
        ("name", "result"),
        [
            ("says_nothing", None),
            ("says_text", {"value": "done"}),
            ("says_nonsense", {"unreadable": True}),
            ("says_a_large_number", {"unreadable": True}),
            ("says_it_deeply", {"unreadable": True}),
            ("says_nul", {"unreadable": True}),
            ("says_much", {"truncated": True, "bytes": executors.RESULT_LIMIT + 11}),
        ],
    )
    def test_an_odd_result_never_denies_the_effect(self, name, result):
        outcome = executors.perform_effect(in_process(name), CALL)
        assert (outcome.status, outcome.result) == ("succeeded", result)

    def test_what_no_column_holds_is_taken_out_of_a_failure(self):
        outcome = executors.perform_effect(in_process("refuses_oddly"), CALL)
        assert (outcome.status, outcome.code) == ("failed", "no\ufffd")
        assert outcome.detail == "half ? of it"


class TestWebhook:
    def test_the_service_gets_everything_and_its_word_counts(self, service):
        service.body = {"status": "succeeded", "result": {"id": "r-9"}}
        outcome = executors.perform_effect(webhook(service.url), CALL)
        assert outcome == executors.EffectOutcome("succeeded", {"id": "r-9"})
        assert service.payloads == [
            {
                "tool": "process_refund",
                "tool_version": 3,
                "args": CALL.args,
                "execution": "x-1",
                "idempotency_key": "k-1",
                "fence": 2,
                "agent": "riley",
                "thread": "t-1",
                "preconditions": {},
                "grant": "",
            }
        ]
        headers = {n.lower(): v for n, v in service.requests[0][1].items()}
        assert headers["idempotency-key"] == "k-1"
        assert headers["webhook-id"] == "x-1"

    def test_the_trace_of_the_agent_goes_on(self, service):
        traced = replace(CALL, traceparent=GIVEN)
        executors.perform_effect(webhook(service.url), traced)
        executors.look_up_webhook(service.url, traced)
        executors.perform_effect(webhook(service.url), CALL)
        found = [
            {n.lower(): v for n, v in headers.items()}.get("traceparent")
            for _, headers, _ in service.requests
        ]
        assert found == [GIVEN, GIVEN, None]

    def test_a_failure_it_states_is_known(self, service):
        error = {"code": "over_total", "detail": "More than the order."}
        service.body = {"status": "failed", "error": error}
        outcome = executors.perform_effect(webhook(service.url), CALL)
        assert (outcome.status, outcome.code) == ("failed", "over_total")
        assert not outcome.this_attempt_only
        for odd in (None, "text", {"code": 7}, {"code": "x" * 999, "detail": []}):
            service.body = {"status": "failed", "error": odd}
            outcome = executors.perform_effect(webhook(service.url), CALL)
            assert outcome.status == "failed"
            assert 0 < len(outcome.code) <= 64

    @pytest.mark.parametrize("status", [201, 202, 204, 302, 400, 404, 409, 422, 500])
    def test_another_status_is_unknown_even_when_the_body_is_plain(
        self, service, status
    ):
        service.status = status
        for body in ({"status": "succeeded"}, {"status": "failed"}):
            service.body = b"" if status == 204 else body
            outcome = executors.perform_effect(webhook(service.url), CALL)
            assert (outcome.status, outcome.code) == ("unknown", "ambiguous")

    @pytest.mark.parametrize(
        "body",
        [
            {},
            [],
            None,
            "failed",
            {"status": "Failed"},
            {"status": True},
            b"<html>",
            b"",
        ],
    )
    def test_an_answer_that_does_not_say_it_is_unknown(self, service, body):
        service.body = body
        assert executors.perform_effect(webhook(service.url), CALL).status == "unknown"

    @pytest.mark.parametrize("trick", ["reset", "hang", "cut"])
    def test_what_breaks_after_sending_is_unknown(self, service, settings, trick):
        changed = settings.COUNTERSEAL.model_copy(update={"http_timeout": 0.3})
        settings.COUNTERSEAL = changed
        service.trick = trick
        assert executors.perform_effect(webhook(service.url), CALL).status == "unknown"
        assert len(service.requests) == 1

    def test_what_never_left_is_known_for_this_attempt_only(self, networks):
        refused = executors.perform_effect(webhook("http://127.0.0.1:8000/"), CALL)
        assert (refused.status, refused.code) == ("failed", "address_refused")
        networks("127.0.0.1/32")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
            unsent = executors.perform_effect(webhook(url), CALL)
        assert (unsent.status, unsent.code) == ("failed", "not_sent")
        assert refused.this_attempt_only
        assert unsent.this_attempt_only

    def test_a_result_over_64_kib_is_replaced_and_one_over_1_mib_unknown(self, service):
        service.body = {"status": "succeeded", "result": {"text": "x" * 100_000}}
        outcome = executors.perform_effect(webhook(service.url), CALL)
        assert outcome.status == "succeeded"
        assert outcome.result == {"truncated": True, "bytes": 100_011}
        service.body["result"]["text"] = "x" * 1_100_000
        assert executors.perform_effect(webhook(service.url), CALL).status == "unknown"


def test_a_tool_that_its_agent_performs_is_never_performed_here():
    with pytest.raises(ValueError, match="agent"):
        executors.perform_effect(tool(), CALL)


class TestLookUp:
    def test_the_service_is_asked_by_our_key(self, service):
        definition = tool(look_up={"url": service.url})
        service.body = {"status": "succeeded", "result": {"id": "r-9"}}
        outcome = executors.look_up_effect(definition, CALL)
        found = executors.EffectOutcome("succeeded", {"id": "r-9"}, looked_up=True)
        assert outcome == found
        assert service.payloads == [
            {
                "tool": "process_refund",
                "idempotency_key": "k-1",
                "agent": "riley",
                "thread": "t-1",
            }
        ]

    def test_never_seen_is_a_known_failure_with_its_own_code(self, service):
        service.body = {"status": "not_found"}
        outcome = executors.look_up_effect(tool(look_up={"url": service.url}), CALL)
        assert (outcome.status, outcome.code) == ("failed", "not_found")

    def test_a_function_can_look_up(self):
        known = tool(look_up={"path": f"{HERE}.knows_it"})
        assert executors.look_up_effect(known, CALL).result == {"key": "k-1"}
        absent = tool(look_up={"path": f"{HERE}.knows_nothing"})
        assert executors.look_up_effect(absent, CALL).code == "not_found"

    @pytest.mark.parametrize("name", ["breaks", "absent", "says_text", "says_nothing"])
    def test_not_being_able_to_ask_is_unknown(self, name):
        definition = tool(look_up={"path": f"{HERE}.{name}"})
        outcome = executors.look_up_effect(definition, CALL)
        assert (outcome.status, outcome.code) == ("unknown", "look_up_failed")

    def test_nothing_sent_says_nothing_about_the_earlier_attempt(self, networks):
        definition = tool(look_up={"url": "http://127.0.0.1:8000/"})
        assert executors.look_up_effect(definition, CALL).status == "unknown"
        assert executors.look_up_effect(tool(), CALL).status == "unknown"

    @pytest.mark.parametrize("body", [{}, {"status": "pending"}, {"status": 1}, []])
    def test_no_final_answer_is_unknown(self, service, body):
        service.body = body
        definition = tool(look_up={"url": service.url})
        assert executors.look_up_effect(definition, CALL).status == "unknown"


def test_what_a_service_says_of_a_refused_grant_is_what_the_client_says() -> None:
    source = inspect.getsource(grants)
    codes = set(re.findall(r'InvalidGrant\(\s*"(\w+)"', source))
    assert {f"grant_{code}" for code in codes} == executors.GRANT_REFUSAL_CODES
