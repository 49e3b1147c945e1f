"""T15: whatever an agent says beside it, the same action reads the same: in lists, in
batches, when it was announced, as it was seen, in the log and in mails. I31."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core import mail

from hitl import tasks
from journal.models import OutboxMessage
from reviews.batches import formation, similarity
from reviews.models import ApprovalRequest, Batch
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences
from tests.browser.conftest import SitDown
from tests.browser.facts import facts, ours, settled
from tests.browser.hostile import Stage, batched, everywhere, sampled, stage
from tests.browser.inspecting import Inspector
from tests.browser.lying import PAYMENT, in_batches, said, words
from tests.browser.naughty import strings
from tests.conftest import Gate
from tests.markup import flatten
from tests.reviews.batches import batching

pytestmark = [pytest.mark.browser, pytest.mark.proof, pytest.mark.timeout(0)]

WORDS = (
    *("rationale", "expected_outcome", "reversal", "alternatives", "evidence"),
    *("checkpoint", "on_behalf_of", "source", "parent"),
)
RUN = "t-same"
ALONE = "decided alone"  # what speaks to the reviewer is in no batch
PLAIN = {"rationale": "The customer asked for it."}


@pytest.fixture
def hostile(gate: Gate) -> Stage:
    """Where everybody is told of everything: a mail each, however many there are."""
    for person in gate.people.values():
        preferences.save_preferences(
            person=person, notifications=NotificationPreferences(per_hour=1000)
        )
    return stage(gate)


# What the gate warns of, which differs with what an agent says.
_WARNINGS = re.compile(r"^Warning: .*\n", re.MULTILINE)
_PERIOD = re.compile(r"(<time[^>]*>[^<]*</time>)\s+to\s+<time[^>]*>[^<]*</time>")


def test_the_same_action_reads_the_same_everywhere(
    hostile: Stage,
    sit_down: SitDown,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    desk = sit_down("sue")
    eyes = Inspector(desk.page, desk.base)
    every = list(_spoken())
    chosen = sampled(every, proof_n(small=3, full=len(every)))
    truth = _everywhere(hostile, eyes, PLAIN)
    assert all("40.00" in truth[place] for place in ("row", "look", "page", "kept"))
    for number, body in enumerate(chosen):
        found = _everywhere(hostile, eyes, body)
        for place, html in truth.items():
            alone = place == "batch" and found[place] == ALONE
            assert alone or flatten(found[place]) == flatten(html), (place, number)
    assert eyes.found.nothing, str(eyes.found)
    desk.said.clear()
    record_proof(
        "T15",
        f"{len(chosen)} proposals full of lies or naughty strings, the same action: "
        f"identical to the letter in {len(truth)} places (0 differences: at most "
        f"{3 / len(chosen):.2%})",
    )


def _spoken() -> Iterator[dict[str, Any]]:
    """Everything that an agent may say beside an action: the lies, then the strings."""
    for lies in in_batches(words()):
        yield said(lies)
    for some in batched(strings()):
        body = everywhere(some, RUN)
        yield {name: body[name] for name in WORDS}


def _everywhere(
    hostile: Stage, eyes: Inspector, body: dict[str, Any]
) -> dict[str, str]:
    """What is ours of one payment, one announced effect and one batch, by place."""
    body = {**body, "thread": RUN}
    asked = hostile.ask({**body, "tool": "t_pay", "args": PAYMENT})
    found = {"mail": _mail(asked)} | _of_request(hostile, eyes, asked)
    told = {**body, "tool": "t_told", "args": {"name": "a thing"}}
    hostile.tell(told, status="succeeded", result={})
    eyes.look("/announced/")
    found["announced"] = ours(eyes.page, "table.announced tbody tr:first-child")
    found["batch"] = _batch(hostile, eyes, body)
    hostile.forget()
    return found


def _of_request(
    hostile: Stage, eyes: Inspector, asked: ApprovalRequest
) -> dict[str, str]:
    path, found = f"/requests/{asked.pk}/", {}
    for place, address, selector in (
        ("row", "/queue/", f'tr[data-request="{asked.pk}"]'),
        ("look", f"{path}peek/", "[data-testid=peek]"),
        ("run", f"/threads/riley/{RUN}/", f'tr:has(a[href="{path}"])'),
    ):
        eyes.look(address)
        found[place] = ours(eyes.page, selector)
    for place, address in (("page", path), ("kept", hostile.rejected(asked))):
        eyes.look(address)
        found[place] = facts(eyes.page)["html"]
    eyes.look(f"/log/?q={asked.pk}")  # it lists what does not wait any more
    found["log"] = ours(eyes.page, "[data-testid=log] tbody")
    return found


def _mail(asked: ApprovalRequest) -> str:
    mail.outbox.clear()
    for one in OutboxMessage.objects.filter(
        task__endswith=".notify_people", subject=asked.pk
    ):
        getattr(tasks, one.task.rsplit(".", 1)[1])(one.pk)
    told = sorted(f"{m.to}{m.subject}{m.body}" for m in mail.outbox)
    assert told
    return settled(_WARNINGS.sub("", "\n".join(told)))


def _batch(hostile: Stage, eyes: Inspector, body: dict[str, Any]) -> str:
    for name in ("one", "two"):
        args = {"name": name, "to": "them"}
        asked = hostile.ask({**body, "tool": "t_row", "args": args})
    formation.form_missed_batches()
    if similarity.addresses_reviewer(asked.sealed):
        assert not Batch.objects.filter(items__request=asked.pk).exists()
        return ALONE
    batch = Batch.objects.get(items__request=asked.pk)
    eyes.look(f"/batches/{batch.pk}/")
    # Two proposals of one second show one time.
    html = _PERIOD.sub(r"\1", ours(eyes.page, "#batch"))
    batching.decide(batch, hostile.gate.sue, "reject", reason_code="unsafe")
    return html
