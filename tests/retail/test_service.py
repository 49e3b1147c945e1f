"""The store's service: one effect a key, whatever happens to it or to its callers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from policies.choices import Tier
from policies.documents import parse_document
from reviews.outbound import webhooks
from tests.retail import policy, tasks
from tests.retail.books import NOT_FOUND, Books, Counts, Effect
from tests.retail.run import store_service
from tests.retail.store import EFFECTS
from tests.retail.tasks import Call
from world.services import KeyReused

TOOL = "cancel_pending_order"


@pytest.fixture
def books(data: Path, tmp_path: Path) -> Books:
    return Books.open_new(tmp_path / "store.sqlite", tasks.world(data))


@pytest.fixture
def call(data: Path) -> Call:
    """The first cancellation of the tasks, which the store grants."""
    return next(call for call in tasks.calls(data) if call.tool == TOOL)


def test_a_key_takes_effect_once_and_is_answered_alike(
    books: Books, call: Call
) -> None:
    first = books.perform(TOOL, call.args, "k")
    assert first["status"] == "succeeded"
    assert books.perform(TOOL, call.args, "k") == first
    assert books.counts() == {"k": Counts(asked=2, looked_up=0, effects=1)}
    order = books.world().orders[call.args["order_id"]]
    assert order == first["result"]["order"]


def test_a_refusal_is_kept_and_has_no_effect(books: Books, call: Call) -> None:
    books.perform(TOOL, call.args, "k")
    second = books.perform(TOOL, call.args, "l")
    assert second["error"]["code"] == "not_pending"
    assert books.perform(TOOL, call.args, "l") == second
    assert books.counts()["l"] == Counts(asked=2, looked_up=0, effects=0)
    assert len(books.load(Effect)) == 1


def test_a_key_is_of_one_call(books: Books, call: Call) -> None:
    books.perform(TOOL, call.args, "k")
    with pytest.raises(KeyReused):
        books.perform(TOOL, {**call.args, "reason": "ordered by mistake"}, "k")


def test_many_at_once_under_one_key_are_one_effect(books: Books, call: Call) -> None:
    with ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(books.perform, TOOL, call.args, "k") for _ in range(8)]
        answers = [future.result() for future in tries]
    assert all(answer == answers[0] for answer in answers)
    assert books.counts() == {"k": Counts(asked=8, looked_up=0, effects=1)}


def test_a_look_up_tells_what_became_of_a_key(books: Books, call: Call) -> None:
    assert books.look_up(TOOL, "k") == NOT_FOUND
    answer = books.perform(TOOL, call.args, "k")
    assert books.look_up(TOOL, "k") == answer
    assert books.look_up("modify_user_address", "k") == NOT_FOUND


@pytest.mark.usefixtures("loopback")
def test_a_killed_service_remembers(data: Path, tmp_path: Path, call: Call) -> None:
    with store_service(tmp_path, data) as (url, books):
        first = signed(url, call)
        assert first.document()["status"] == "succeeded"
    with store_service(tmp_path, data) as (url, books):
        assert signed(url, call) == first
    assert books.counts() == {"k": Counts(asked=2, looked_up=0, effects=1)}


def test_an_unsigned_call_has_no_effect(data: Path, tmp_path: Path, call: Call) -> None:
    with store_service(tmp_path, data) as (url, books):
        answer = httpx2.post(f"{url}/{TOOL}", json=body(call), trust_env=False)
    assert answer.status_code == 401
    assert books.counts() == {}


def test_the_policy_asks_one_reviewer_for_each_of_the_eight_tools(data: Path) -> None:
    document = parse_document(policy.document(data, "http://127.0.0.1:1"))
    assert set(document.tools) == set(EFFECTS)
    assert {tool.base for tool in document.tools.values()} == {Tier.APPROVE}
    (step,) = document.steps[Tier.APPROVE]
    assert (step.role, step.required) == ("reviewer", 1)
    assert set(document.recall.values()) == {0}


def signed(url: str, call: Call) -> webhooks.WebhookReply:
    return webhooks.post_signed_json(
        f"{url}/{TOOL}", body(call), timeout=5, headers={"Idempotency-Key": "k"}
    )


def body(call: Call) -> dict[str, Any]:
    return {"tool": TOOL, "args": call.args, "idempotency_key": "k"}
