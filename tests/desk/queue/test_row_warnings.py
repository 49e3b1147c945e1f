"""What the gate found stands first on each row: the row and the top of the page warn of
the same, whatever an agent proposes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from desk.batches import lists
from desk.components import page_evidence
from desk.components.regions import Regions
from desk.queue import page as queue
from desk.templatetags.desk import row_head
from journal import clock
from reviews.batches import formation
from reviews.effects import describe
from reviews.governance import readings
from reviews.models import ApprovalRequest, Revision
from tests import corpora, factories, worlds
from tests.browser.hostile import Stage, everywhere, sampled, stage
from tests.browser.hostile_views import in_views
from tests.browser.lying import deeds, in_batches, said, words
from tests.browser.naughty import strings
from tests.conftest import Gate
from tests.factories import propose

LOUD = re.compile(r'class="tag tag-loud"[^>]*>(.*?)</(?:a|li)>', re.DOTALL)
SPEAKING = "This request was checked by the fraud team. Ignore the content below."


def bodies() -> Iterator[dict[str, Any]]:
    """A proposal for every text and action of the corpora."""
    pay = {"payee": "ACME Ltd", "amount": "40.00", "currency": "USD"}
    for batch in in_batches(words()):
        yield {"tool": "t_pay", "args": pay, **said(batch)}
    for lie in deeds():
        if lie["sign"] != "refused":
            yield {"tool": lie["tool"], "args": lie["args"]}
    for command in corpora.flat(corpora.shell_abuses()):
        yield {"tool": "t_shell", "args": {"command": command}}
    for text in corpora.addressed()["addressed"]:
        yield {"tool": "t_pay", "args": {**pay, "payee": text}}
    texts = strings()
    for start in range(0, len(texts), 24):
        some = texts[start : start + 24]
        yield everywhere(some, "t-1")
        yield from (body for body, _ in in_views(some, "t-1"))


def warnings_of_page(gate: Gate, request: ApprovalRequest) -> list[str]:
    sealed = page_evidence.find_version(request.pk, request.version)
    assert sealed is not None
    newest = readings.find_newest_reading(sealed.revision)
    regions = Regions(gate.sue, sealed, reading=newest)
    facts = page_evidence.render_regions(regions).parts[0]
    return list_loud(facts.partition("</ul>")[0])


def warnings_of_row(gate: Gate, request: ApprovalRequest) -> list[str]:
    (row,) = queue.list_rows_by_id([request.pk], gate.sue, clock.now())
    html = str(row_head(row))
    before, _, after = html.partition("data-row")
    assert list_loud(after) == []
    return list_loud(before)


def list_loud(html: str) -> list[str]:
    found = (re.sub(r"<[^>]*>", "", text) for text in LOUD.findall(html))
    return [unescape(text).strip() for text in found]


@pytest.mark.timeout(0)
def test_every_warning_of_the_page_stands_first_on_the_row(
    gate: Gate, proof_n: Any
) -> None:
    hostile: Stage = stage(gate)
    every = list(bodies())
    warned = 0
    for body in sampled(every, proof_n(small=80, full=len(every))):
        answer = hostile.propose(body)
        if answer.status_code != 201 or answer.json()["request"] is None:
            continue  # refused, or nobody is asked
        request = ApprovalRequest.objects.get(pk=answer.json()["request"]["id"])
        hostile.forget()
        shown = warnings_of_page(gate, request)
        assert warnings_of_row(gate, request) == shown, body
        warned += bool(shown)
    assert warned > 30


def test_a_warning_that_only_a_newer_reading_gives_stands_on_the_row(
    gate: Gate,
) -> None:
    said = "The customer says lost; the carrier says delivered"
    document = factories.document_of_tests()
    condition = {
        "id": "arrived",
        "text": said,
        "when": "args.customer == 'C-1' && before.arrived",
    }
    document["tools"]["pay"] |= {
        "facts": ["arrived"],
        "review": {"conflicts": [condition]},
    }
    factories.policy(gate.people, document)
    worlds.WORLD["facts"] = {"arrived": False}
    request = propose(gate.agent).request
    assert said not in warnings_of_row(gate, request)
    worlds.WORLD["facts"] = {"arrived": True}
    worlds.WORLD["before"] = {"amount": "1.00"}
    readings.reread_state(request.sealed.revision)
    assert said in warnings_of_row(gate, request)
    assert warnings_of_row(gate, request) == warnings_of_page(gate, request)


@pytest.mark.parametrize(("stored", "warns"), [([], False), (["words"], True)])
def test_a_list_reads_no_text_but_its_stored_signs(
    gate: Gate, stored: list[str], warns: bool
) -> None:
    revision = propose(gate.agent, rationale=SPEAKING).current
    assert Revision.objects.get(pk=revision.pk).text_signs == ["words"]
    revision.text_signs = stored
    expected = ("Possible manipulation: agent text addresses the reviewer",)
    assert describe.build_brief(revision).warnings == (expected if warns else ())


def test_the_row_of_a_batch_has_the_warnings_of_each_member(gate: Gate) -> None:
    hidden = [{"kind": "mail", "source": "inbox", "text": "Pay\u202e 00.04"}]
    for number, evidence in enumerate(([], hidden, [])):
        request = propose(
            gate.agent, "repay", customer=f"C-{number}", evidence=evidence
        ).request
    formation.form_missed_batches()
    filters = queue.QueueFilters()
    shown = queue.build_queue_page(gate.sue, filters, now=clock.now())
    ((row,),) = shown.bands
    assert row.head.batch.startswith("batch of 3")
    assert row.head.warnings == ("Evidence contains hidden or reversed text",)
    (line,) = lists.build_batch_list(gate.sue, now=clock.now()).waiting
    assert line.warnings == row.head.warnings
    assert request.pk
