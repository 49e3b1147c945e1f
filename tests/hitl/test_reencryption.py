"""All six keys turn one after the other, and everything is still read."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from agents import acknowledgements, checkpoints, proposals, representation
from agents.choices import ThreadResult
from agents.models import (
    Acknowledgement,
    Agent,
    Checkpoint,
    Delivery,
    Endpoint,
    Thread,
)
from agents.webhooks import endpoints
from hitl import reencryption
from hitl.stored_values import STORED_VALUES
from journal import clock, encryption, known_keys
from policies import second_factors
from policies.models import Person
from reviews.evidence import files
from reviews.executions import record, run
from reviews.grants import approvers
from reviews.models import Dataset, EvidenceFile, EvidencePicture, Execution
from tests import factories
from tests.conftest import Gate

pytestmark = pytest.mark.django_db
BLOB = {"summary": "x", "blob": "c2VjcmV0", "resume_at": "execute"}
SECRET = "whsec_bWVtb3J5IG9mIGEgdGVzdA=="


def turn(settings: Any, **keys: Any) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=keys)


def rotate() -> str:
    out = StringIO()
    call_command("rotate_keys", stdout=out)
    return out.getvalue()


def store_all(gate: Gate) -> str:
    """A value in every registered column; returns the executed proposal."""
    proposal = factories.propose(gate.agent, checkpoint=BLOB)
    factories.decide(proposal.request, gate.rita, "approve")
    run.run_execution(proposal.executions.get().pk)
    store_others(gate.agent, gate.adam, gate.alma)
    return proposal.pk


def store_others(agent: Agent, adam: Person, alma: Person) -> None:
    """Values of the columns that no proposal fills."""
    second_factors.begin_enrolment(adam)
    now = clock.now()
    endpoint = Endpoint(agent=agent, url="https://a.example/", created_at=now)
    place = endpoints.format_seal_context(endpoint.pk)
    endpoint.secret = encryption.encrypt_stored(SECRET.encode(), place)
    endpoint.former, endpoint.former_until = endpoint.secret, now + timedelta(1)
    endpoint.save()

    def seal(part: str, data: bytes) -> bytes:
        return encryption.encrypt_stored(data, files.format_place("riley", "s", part))

    file = EvidenceFile.objects.create(
        agent="riley",
        sha256="s",
        media_type="text/csv",
        size=4,
        body=seal("body", b"body"),
        shown=seal("shown", b'{"table":{"rows":[]}}'),
        uploaded_at=now,
    )
    EvidencePicture.objects.create(file=file, number=1, body=seal("picture 1", b"webp"))
    dataset = Dataset(
        status="asked",
        purpose="p",
        asked_by=adam,
        owner=adam,
        tools=["pay"],
        since=now - timedelta(2),
        until=now - timedelta(1),
        train=80,
        validation=10,
        test=10,
        asked_at=now,
    )
    dataset.save()
    Dataset.objects.update(
        status="running",
        settled_by=alma,
        settled_at=now,
        key=encryption.wrap_key(bytes(32), dataset.pk),
    )


def read_all(proposal: str) -> None:
    checkpoint = Checkpoint.objects.get(proposal=proposal)
    assert checkpoints.decrypt_blob(checkpoint) == b"secret"
    assert record.decrypt_result(Execution.objects.get(proposal=proposal)) is not None
    assert endpoints.list_secrets(Endpoint.objects.get(), clock.now()) == [SECRET] * 2
    file = EvidenceFile.objects.get()
    assert files.load_body(file) == b"body"
    assert files.load_picture(file, 1) == b"webp"
    assert files.load_table(file) == {"rows": []}
    dataset = Dataset.objects.get()
    assert encryption.unwrap_key(bytes(dataset.key or b""), dataset.pk) == bytes(32)
    assert second_factors.find_pending_secret(dataset.owner)


def test_every_key_turns_in_sequence(gate: Gate, settings: Any) -> None:
    proposal = store_all(gate)
    waiting = factories.propose(gate.agent, thread="t-waiting")
    factories.decide(waiting.request, gate.rita, "approve")
    assert known_keys.check_keys() == []
    for stored in STORED_VALUES:
        rows = stored.model._default_manager
        assert rows.filter(**{f"{stored.column}__isnull": False}).exists(), stored.name

    former = settings.COUNTERSEAL.data_key
    turn(settings, data_key=encryption.create_key(), data_keys_retired=[former])
    read_all(proposal)
    text = rotate()
    assert "agents_endpoint.secret: 1 of 1" in text
    assert "10 values" in text or "9 values" in text
    assert "is still needed for 1 votes" in text
    read_all(proposal)
    assert not approvers.without_votes([waiting.request])
    run.run_execution(waiting.executions.get().pk)
    assert "can go" in rotate()
    turn(settings, data_keys_retired=[])
    assert known_keys.check_keys() == []
    read_all(proposal)
    assert "0 values were encrypted again" in rotate()

    outcome = find_outcome(proposal)
    former = settings.COUNTERSEAL.tag_key
    turn(settings, tag_key=encryption.create_key(), tag_keys_retired=[former])
    assert known_keys.check_keys() == []
    acknowledge(gate, proposal, outcome)
    assert find_outcome(proposal) == outcome  # not a new one
    assert "1 acknowledgements" in rotate()
    turn(settings, tag_keys_retired=[])
    assert known_keys.check_keys() == []
    assert Acknowledgement.objects.filter(pk=find_outcome(proposal)).exists()

    here = settings.COUNTERSEAL
    turn(
        settings,
        secret_key="n" * 50,
        secret_key_fallbacks=[here.secret_key],
        grant_key=encryption.create_key(),
        grant_keys_retired=[here.grant_key],
    )
    assert known_keys.check_keys() == []
    read_all(proposal)


def find_outcome(proposal: str) -> str:
    return representation.compute_ended_id(proposal, "succeeded", 1)


def acknowledge(gate: Gate, proposal: str, outcome: str) -> None:
    acknowledgements.acknowledge_outcome(
        agent=gate.agent, proposal_id=proposal, outcome=outcome
    )


def test_what_cannot_be_read_is_counted_and_left(gate: Gate, settings: Any) -> None:
    store_all(gate)
    lost = Thread.objects.get()
    turn(settings, data_key=encryption.create_key())  # the former key is gone
    with pytest.raises(CommandError, match=r"1 values in agents_thread\.wrapped_key"):
        call_command("rotate_keys", stdout=StringIO())
    assert Thread.objects.get().wrapped_key == lost.wrapped_key


@pytest.mark.django_db(transaction=True)
def test_a_locked_row_is_left_for_later(gate: Gate, settings: Any) -> None:
    store_all(gate)
    former = settings.COUNTERSEAL.data_key
    turn(settings, data_key=encryption.create_key(), data_keys_retired=[former])
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            other.set_autocommit(False)
            cursor.execute("SELECT 1 FROM agents_thread FOR UPDATE")
            done = reencryption.rotate_keys(lambda *_: None)
            other.rollback()
    finally:
        other.close()
    assert done.busy["agents_thread.wrapped_key"] == 1
    assert done.written["agents_endpoint.secret"] == 1
    again = reencryption.rotate_keys(lambda *_: None)
    assert not again.busy["agents_thread.wrapped_key"]
    assert again.written.total() == 1


def test_many_rows_are_walked_in_pieces_and_a_second_run_goes_on(
    gate: Gate, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        factories.propose(gate.agent, thread=f"t-{number}", checkpoint=BLOB)
    former = settings.COUNTERSEAL.data_key
    turn(settings, data_key=encryption.create_key(), data_keys_retired=[former])
    monkeypatch.setattr(reencryption, "BATCH", 2)
    pieces: list[int] = []
    encrypt_batch = reencryption.encrypt_batch

    def record(stored: Any, keys: list[Any]) -> tuple[int, int]:
        if len(pieces) == 1:
            pieces.append(0)
            raise KeyboardInterrupt
        pieces.append(len(keys))
        return encrypt_batch(stored, keys)

    monkeypatch.setattr(reencryption, "encrypt_batch", record)
    with pytest.raises(KeyboardInterrupt):
        rotate()
    assert "agents_thread.wrapped_key: 3 of 3" in rotate()
    assert pieces == [2, 0, 2, 1]


def test_an_outcome_that_was_read_keeps_its_name_until_it_is_acknowledged(
    gate: Gate, settings: Any
) -> None:
    known_keys.check_keys()
    proposal = factories.propose(gate.agent)
    factories.decide(proposal.request, gate.rita, "reject")
    read = representation.compute_settled_id(proposal.pk)
    former = settings.COUNTERSEAL.tag_key
    new = encryption.create_key()
    for ring in ([former, new], [new, former]):  # host by host
        turn(settings, tag_key=ring[0], tag_keys_retired=[ring[1]])
        known_keys.check_keys()
        assert representation.compute_settled_id(proposal.pk) == read
    assert "still needed for 1 outcomes that their agents have not" in rotate()
    later = factories.propose(gate.agent, thread="t-later")
    factories.decide(later.request, gate.rita, "reject")
    acknowledge(gate, proposal.pk, read)
    assert "TAG_KEY" in rotate()
    assert "can go" in rotate()
    named = representation.compute_settled_id(later.pk)
    turn(settings, tag_keys_retired=[])
    assert representation.compute_settled_id(later.pk) == named


def test_a_run_that_its_agent_has_finished_needs_no_former_key(
    gate: Gate, settings: Any
) -> None:
    known_keys.check_keys()
    proposal = factories.propose(gate.agent)
    factories.decide(proposal.request, gate.rita, "reject")
    former = settings.COUNTERSEAL.tag_key
    turn(settings, tag_key=encryption.create_key(), tag_keys_retired=[former])
    proposals.finish_thread(
        agent=gate.agent, name=proposal.thread, result=ThreadResult.COMPLETED
    )
    assert "can go" in rotate()


def test_a_dead_webhook_needs_the_key_of_its_outcome(gate: Gate, settings: Any) -> None:
    known_keys.check_keys()
    proposal = factories.propose(gate.agent)
    factories.decide(proposal.request, gate.rita, "reject")
    now = clock.now()
    endpoint = Endpoint(agent=gate.agent, url="https://a.example/", created_at=now)
    endpoint.secret = encryption.encrypt_stored(
        SECRET.encode(), endpoints.format_seal_context(endpoint.pk)
    )
    endpoint.save()
    outcome = representation.compute_settled_id(proposal.pk)
    Delivery.objects.create(
        event=outcome,
        kind="proposal.settled",
        proposal=proposal.pk,
        thread=proposal.thread,
        endpoint=endpoint,
        url=endpoint.url,
        payload={},
        status="waiting",
        next_at=now,
        give_up_at=now,
        created_at=now,
    )
    Delivery.objects.update(status="dead", ended_at=now)
    former = settings.COUNTERSEAL.tag_key
    turn(settings, tag_key=encryption.create_key(), tag_keys_retired=[former])
    assert "still needed for 1 outcomes in webhooks" in rotate()
    acknowledge(gate, proposal.pk, outcome)
    assert "can go" in rotate()
