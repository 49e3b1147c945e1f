"""A gate with one of everything, and everyone who may knock at it."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from http.cookies import SimpleCookie
from typing import Any, Literal

from django.core import signing
from django.db import connection
from django.test import Client
from guardian.shortcuts import assign_perm

from agents import keys, registry
from agents.adapters.authzen import tasks
from agents.models import Agent, Delivery
from agents.registry import AgentChange
from agents.schemas.authzen import AccessRequestIn
from agents.webhooks import delivery, endpoints, enqueue
from agents.webhooks.delivery import AttemptResult
from assurance import library, practice, second_reviews
from assurance.datasets import files
from desk.log import exports
from hitl import client_wheel
from journal import clock
from journal.models import LogPosition, LogRecord, OutboxMessage
from notifications.on_call import drills, shifts
from policies import first_administrator, versions
from policies.choices import Risk, Role
from policies.models import Person, ProvisioningToken, Queue
from reviews import deadlines
from reviews.administration import authority, provisioning_tokens
from reviews.batches import formation
from reviews.choices import AuthorityKind, DefectKind, SampleCause, Scope, Verdict
from reviews.evidence import files as evidence_files
from reviews.evidence import reveals
from reviews.executions import claims, record, redeem, run
from reviews.grants.tokens import load_token
from reviews.holds import take
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Batch,
    Decision,
    Execution,
    Grant,
    PersonalToken,
    Practice,
    PracticeItem,
    Proposal,
    Repair,
)
from reviews.people import preferences, tokens
from reviews.standing_grants import issuance
from reviews.stops import incidents, stops
from reviews.tool_services.executors import EffectOutcome
from tests import factories, worlds
from tests.agents.adapters.authzen.conftest import access, denied
from tests.assurance.datasets.asking import ask, consent
from tests.assurance.planting import plant
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.notifications.channels import browsers
from tests.reviews import states
from tests.reviews.batches import batching
from tests.reviews.evidence.hostile_files import build_png
from tests.reviews.questions.asking import ask as ask_people

BACKEND = "django.contrib.auth.backends.ModelBackend"


class Who(StrEnum):
    """Everyone who may knock: people by session, and three kinds of key."""

    NOBODY = "nobody"
    REVIEWER = "reviewer"
    STRANGER = "reviewer of another queue"
    SUPERVISOR = "supervisor"
    ADMINISTRATOR = "administrator"
    AUDITOR = "auditor"
    OWNER = "owner"
    OTHER_OWNER = "owner of another agent"
    AGENT = "agent key"
    OTHER_AGENT = "other agent's key"
    TOKEN = "personal token"


PEOPLE = frozenset(
    {
        Who.REVIEWER,
        Who.STRANGER,
        Who.SUPERVISOR,
        Who.ADMINISTRATOR,
        Who.AUDITOR,
        Who.OWNER,
        Who.OTHER_OWNER,
    }
)
AGENTS = frozenset({Who.AGENT, Who.OTHER_AGENT})
ALL = frozenset(Who)


@dataclass(frozen=True)
class FreshPass:
    """What a reveal of a file gives its person, made whenever an address needs it."""

    person: Person
    request: str
    sha256: str

    def __str__(self) -> str:
        held = [self.person.public_id, self.request, self.sha256]
        return signing.dumps(held, salt=reveals.PASS_SALT)


@dataclass
class World:
    """`ids` fill the addresses of the first agent's things."""

    gate: Gate
    people: dict[Who, Person]
    clients: dict[Who, Client] = field(default_factory=dict)
    ids: dict[str, Any] = field(default_factory=dict)
    waiting: Any = None
    batch: Any = None
    token: str = ""
    caller: Who = Who.REVIEWER  # who knocks just now


def build(gate: Gate) -> World:
    """The tests' gate, a second owner with an agent, and a reviewer of other mail."""
    people = {
        Who.REVIEWER: gate.rita,
        Who.STRANGER: factories.person("zoe", Role.REVIEWER),
        Who.SUPERVISOR: gate.sue,
        Who.ADMINISTRATOR: gate.adam,
        Who.AUDITOR: gate.otto,
        Who.OWNER: gate.owen,
        Who.OTHER_OWNER: factories.person("olga", Role.OWNER),
    }
    assign_perm("policies.decide", people[Who.STRANGER], Queue.objects.get(name="mail"))
    document = factories.document_of_tests()
    document["recall"]["high"] = 600  # so that there is something to recall
    document["tools"]["pay_queryable"]["sensitive"] = ["note"]
    policy = factories.policy(gate.people, document)
    other = factories.agent(people[Who.OTHER_OWNER], "other")
    draft = versions.save_draft(text_or_mapping=document, author=gate.alma)
    world = World(gate, people, ids={"policy": policy.number, "draft": draft.number})
    world.ids["retired"] = gate.policy.number
    world.ids["setup"] = first_administrator.create_token()
    world.ids["wheel"] = client_wheel.build_name()
    _fill(world, other)
    _invite(world, other)
    return world


def _fill(world: World, other: Agent) -> None:
    gate = world.gate
    checkpoint = {"summary": "waits", "state": {"step": 2}, "blob": "c2VjcmV0"}
    world.waiting = propose(gate.agent, checkpoint=checkpoint).request
    held = propose(gate.agent, customer="C-2").request
    decide(held, gate.rita)
    taken = propose(gate.agent, customer="C-9").request
    take.take_hold(request_id=taken.pk, person=gate.tom)
    secret = {"customer": "C-3", "amount": "1.00", "currency": "USD", "note": "mine"}
    hidden = propose(gate.agent, "pay_queryable", args=secret).request
    shot, _ = evidence_files.store_file(
        agent=gate.agent.slug, media_type="image/png", body=build_png()
    )
    named = {"kind": "file", "file": {"sha256": shot.sha256, "name": "shot.png"}}
    with_file = propose(gate.agent, customer="C-13", evidence=[named]).request
    propose(other, "write", thread="o-1")
    granted, claimed, unknown, failed = (_granted(gate) for _ in range(4))
    world.token = _token(granted)
    running = _redeemed(claimed)
    lost = _redeemed(unknown)
    _record(lost, "unknown")
    _record(_redeemed(failed), "failed")
    alarmed = _never_ran(gate)
    escalated = propose(gate.agent, customer="C-11").request
    decide(escalated, gate.rita, "escalate", reason_code="unsafe")
    split = propose(gate.agent, amount="700.00", customer="C-12").request
    decide(split, gate.sue)
    decide(split, gate.sam, "reject")
    view = preferences.create_saved_view(
        person=gate.rita, page="queue", name="mine", query=""
    )
    stop = stops.create_stop(
        scope=Scope.TOOL, key="decline", person=gate.sam, reason="odd"
    )
    odd = Queue.objects.get(name="odd")
    incident = incidents.declare_incident(person=gate.sue, reason="a drill", queue=odd)
    queue, now = world.waiting.queue, clock.now()
    shift = shifts.plan_shift(
        by=gate.sue,
        queue=queue,
        person=gate.tom,
        begins_at=now + timedelta(days=1),
        ends_at=now + timedelta(days=2),
    )
    drill = drills.start_drill(person=gate.sue, queue=queue, risk=Risk.HIGH)
    tokens.create_token(person=gate.rita, name="spare")
    allowed = issuance.issue_standing_grant(
        request_id=_asked_tag(gate, "t-tags").pk, person=gate.sue, reason="many"
    )
    _fill_batches(world)
    letter = _undelivered(gate)
    export = exports.create_export(
        person=gate.otto, file_format="csv", query="kind=policy"
    )
    exports.write_export(export.pk)
    asked, finished = (ask(gate, by=gate.alma) for _ in range(2))
    consent(gate, finished, by=gate.adam)
    files.write_dataset(finished.pk)
    world.ids |= {
        "list": "queue",
        "queue": "money",
        "export": export.pk,
        "asked_dataset": asked.pk,
        "dataset": finished.pk,
        "request": world.waiting.pk,
        "held": held.pk,
        "taken": taken.pk,
        "decision": Decision.objects.get(request=held).pk,
        "version": 1,
        "hidden": hidden.pk,
        "with_file": with_file.pk,
        "file": shot.sha256,
        "pass": FreshPass(gate.sue, with_file.pk, shot.sha256),
        "proposal": world.waiting.proposal_id,
        "task": _access_task(gate),
        "execution": running.pk,
        "fence": running.fence,
        "action_hash": running.grant.action_hash,
        "unknown": lost.pk,
        "doubtful": _doubtful(gate).pk,
        "done": _done(gate).pk,
        "repair": _repair(gate).pk,
        "question": ask_people(gate.agent).pk,
        "failed": failed.request.pk,
        "failed_unasked": _failed_unasked(gate).pk,
        "stop": stop.pk,
        "incident": incident.pk,
        "shift": shift.pk,
        "drill": drill.pk,
        "standing_grant": allowed.pk,
        "group": "outcomes",
        "plot": "outcome-mix",
        "second_review": _second_review(gate),
        "realism": "obvious",
        "warm_up": "warm-up",
        **_practices(world, held),
        "defect": DefectKind.AMOUNT_TENFOLD.value,
        "defect_change": _defect_change(gate),
        "agent_key": _spare_key(gate),
        "authority_change": _authority_change(gate),
        "settings_change": _settings_change(gate),
        "provisioning_token": _make_token(gate),
        "canary": _revealed_canary(gate),
        "tag_request": _asked_tag(gate, "t-1").pk,
        "reviewer": gate.tom.public_id,
        "escalated": escalated.pk,
        "split": split.pk,
        "ended": split.proposal_id,
        "letter": letter.pk,
        "endpoint": letter.endpoint_id,
        "alarm": alarmed.pk,
        "own_view": view.pk,
        "own_token": PersonalToken.objects.get(name="spare").pk,
        "browser": browsers.register(gate.rita, "https://push.example.com/own").pk,
        "record": LogRecord.objects.filter(request=world.waiting.pk).latest("pk").pk,
        "number": _numbered(world.waiting).seq,
        "agent": gate.agent.slug,
        "thread": "t-1",
    }


def _asked_tag(gate: Gate, thread: str) -> ApprovalRequest:
    """A request from which calls can be allowed in advance."""
    args = {"label": "asked"}
    request: ApprovalRequest = propose(
        gate.agent, "tag", args=args, thread=thread
    ).request
    return request


def _access_task(gate: Gate) -> str:
    """The task of an access request that waits."""
    args = {"customer": "C-41", "amount": "1.00", "currency": "USD"}
    asked = denied(gate.agent, access("pay", args))
    body = AccessRequestIn.model_validate(asked)
    return tasks.submit_request(gate.agent, "arq-1", body).proposal


def _numbered(waiting: ApprovalRequest) -> LogPosition:
    """The first record of a request, in its place of the log."""
    first = LogRecord.objects.filter(request=waiting.pk).earliest("pk")
    return LogPosition.objects.create(seq=7, record=first, leaf_hash=b"-")


def _undelivered(gate: Gate) -> Delivery:
    """A letter to an endpoint that said that it is gone."""
    url = "https://agent.example/hook"
    endpoints.register_endpoint(agent=gate.agent, url=url, by=gate.owen)
    propose(gate.agent, customer="C-31")
    told = OutboxMessage.objects.filter(topic="proposal.told").latest("pk")
    (letter,) = enqueue.enqueue_deliveries(message=told)
    delivery.claim_delivery(delivery_id=letter)
    gone = AttemptResult(410, "status 410")
    delivery.record_attempt(delivery_id=letter, attempt=1, answer=gone)
    return Delivery.objects.get(pk=letter)


def _approved(gate: Gate, tool: str, customer: str) -> Execution:
    """What waits to be run, its recall window over."""
    request = propose(gate.agent, tool, customer=customer).request
    decide(request, gate.rita)
    factories.window_over(request)
    return Execution.objects.get(proposal=request.proposal_id)


def _never_ran(gate: Gate) -> Alarm:
    """An approved payment whose window went by."""
    execution = _approved(gate, "pay", "C-21")
    Grant.objects.filter(execution=execution).update(expires_at=clock.now())
    run.run_execution(execution.pk)
    return Alarm.objects.get(subject=execution.pk)


def _second_review(gate: Gate) -> int:
    """A second review of a decision of Tom's."""
    request = propose(gate.agent, customer="C-51", thread="t-51").request
    decide(request, gate.tom, "reject")
    key: int = Decision.objects.get(request=request).pk
    second_reviews.choose_decision(decision_id=key, cause=SampleCause.SAMPLE)
    return key


def _revealed_canary(gate: Gate) -> str:
    """A canary that Rita caught."""
    request = plant(gate)
    decide(request, gate.rita, "reject")
    return str(request.pk)


def _practices(world: World, source: ApprovalRequest) -> dict[str, int]:
    """Rita's practice that ended, and one that is open for each person who decides, in
    which Rita's is the one that is named."""
    gate = world.gate
    ended = _practice(gate.rita, source)
    practice.record_answer(
        practice_id=ended.pk, number=1, person=gate.rita, verdict=Verdict.APPROVE
    )
    own = _practice(gate.rita, source)
    for who in (Who.STRANGER, Who.SUPERVISOR):
        _practice(world.people[who], source)
    return {"ended_practice": ended.pk, "practice": own.pk}


def _practice(person: Person, source: ApprovalRequest) -> Practice:
    """As rows: to start one takes ten requests that others approved."""
    found = Practice.objects.create(reviewer=person, started_at=clock.now())
    PracticeItem.objects.create(practice=found, number=1, version=source.sealed)
    return found


def _defect_change(gate: Gate) -> int:
    """A change of the library that Alma proposed."""
    change = library.propose_change(
        person=gate.alma, kind=DefectKind.EXTRA_BCC, weight=0, reason="too easy"
    )
    return int(change.pk)


def _spare_key(gate: Gate) -> int:
    """A key of the first agent that nobody uses."""
    text = keys.issue_key(agent=gate.agent, by=gate.adam)
    return int(keys.authenticate_key(text).pk)


def _make_token(gate: Gate) -> int:
    """A token of the identity provider that waits for the world's administrator."""
    provisioning_tokens.make_token(reason="Our directory.", by=gate.alma)
    return ProvisioningToken.objects.get().pk


def _authority_change(gate: Gate) -> int:
    """A new password for Sam, which Alma proposed."""
    change = authority.propose_access(
        person=gate.sam, kind=AuthorityKind.RESET, reason="lost", by=gate.alma
    )
    return int(change.pk)


def _settings_change(gate: Gate) -> int:
    """Every tool for Riley, for which Alma asked."""
    change = registry.change_agent(
        agent=gate.agent, change=AgentChange(tools=["*"]), reason="all", by=gate.alma
    )
    assert change is not None
    return int(change.pk)


def _fill_batches(world: World) -> None:
    """One batch that waits, one whose recall window is open, and one that halted."""
    gate = world.gate
    worlds.WORLD["declined"] = {"C-0"}
    halted = _batch(gate, "g-1")
    batching.decide(halted, gate.rita)
    ApprovalRequest.objects.filter(batch_items__batch=halted).update(
        recall_until=clock.now()
    )
    deadlines.close_recall_windows()
    batching.ran(halted)
    recallable = _batch(gate, "g-2")
    batching.decide(recallable, gate.rita)
    world.batch = _batch(gate, "g-3")
    world.ids |= {
        "batch": world.batch.pk,
        "member": batching.members(world.batch)[0].id,
        "held_batch": recallable.pk,
        "halted_batch": halted.pk,
    }


def _batch(gate: Gate, group: str) -> Batch:
    for number in range(3):
        thread, customer = f"{group}-{number}", f"C-{number}"
        propose(gate.agent, "repay", customer=customer, thread=thread, group=group)
    formation.form_missed_batches()
    return Batch.objects.get(group=group)


def _granted(gate: Gate) -> Proposal:
    """An effect that the agent performs itself, approved by two."""
    proposal = propose(gate.agent, "deploy", thread="t-2")
    decide(proposal.request, gate.sue)
    decide(proposal.request, gate.sam)
    return proposal


def _token(proposal: Proposal) -> str:
    return load_token(proposal.executions.get().grant_id)


def _redeemed(proposal: Proposal) -> Execution:
    redeem.redeem_grant(token=_token(proposal), agent=proposal.agent)
    return Execution.objects.select_related("grant").get(proposal=proposal)


def _repair(gate: Gate) -> Repair:
    """A change by hand that waits for a second person."""
    execution = _approved(gate, "pay_queryable", "C-21")
    claims.claim_execution(execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR)
    return states.repair_of(execution, gate)


def _done(gate: Gate) -> Execution:
    """An effect that happened, and that its tool can undo."""
    execution: Execution = propose(gate.agent, "tag").executions.get()
    run.run_execution(execution.pk)
    return execution


def _failed_unasked(gate: Gate) -> Execution:
    """An effect that asked nobody, and is known not to have happened."""
    execution: Execution = propose(gate.agent, "tag").executions.get()
    claims.claim_execution(execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR)
    execution.refresh_from_db()
    _record(execution, "failed")
    return execution


def _doubtful(gate: Gate) -> Execution:
    """An effect of which nobody knows, and whose service can be asked."""
    execution = _approved(gate, "pay_queryable", "C-20")
    claims.claim_execution(execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR)
    Grant.objects.filter(execution=execution).update(expires_at=clock.now())
    execution.refresh_from_db()
    _record(execution, "unknown")
    return execution


def _record(execution: Execution, status: Literal["unknown", "failed"]) -> None:
    record.record_outcome(
        execution_id=execution.pk,
        fence=execution.fence,
        outcome=EffectOutcome(status, code="lost", detail="nobody knows"),
        actor=claims.EXECUTOR_ACTOR,
    )


def _invite(world: World, other: Agent) -> None:
    for who, person in world.people.items():
        world.clients[who] = Client(raise_request_exception=False)
        world.clients[who].force_login(person, BACKEND)
    bearers = {
        Who.AGENT: keys.issue_key(agent=world.gate.agent, by=world.gate.owen),
        Who.OTHER_AGENT: keys.issue_key(agent=other, by=other.owner),
        Who.TOKEN: tokens.create_token(person=world.gate.rita, name="script"),
    }
    for who, text in bearers.items():
        world.clients[who] = Client(
            raise_request_exception=False, headers={"Authorization": f"Bearer {text}"}
        )
    world.clients[Who.NOBODY] = Client(raise_request_exception=False)


def again(world: World) -> World:
    """As it was built, for another test: who went somewhere since was never there."""
    clients = {who: _unmoved(client) for who, client in world.clients.items()}
    found = copy.deepcopy(replace(world, clients={}))
    found.clients |= clients
    return found


def _unmoved(client: Client) -> Client:
    found = copy.copy(client)
    found.cookies = cookies_of(client)
    return found


def cookies_of(client: Client) -> SimpleCookie:
    """As they are now, to go back to."""
    return SimpleCookie({name: one.value for name, one in client.cookies.items()})


# What changes by merely being here, and says nothing about the gate.
NOT_THE_GATE = ("django_", "axes_", "pg_", "policies_signin")
LOG = ("journal_logrecord", "journal_logpayload", "journal_logposition")
NOTED_ON_THE_WAY = ["last_login", "last_used_at"]


def digests(*, log: bool, of: Iterable[str] | None = None) -> dict[str, str]:
    """A hash of every row of every table of the gate, or `of` these; with or without
    its log."""
    tables = [
        name
        for name in (connection.introspection.table_names() if of is None else of)
        if not name.startswith(NOT_THE_GATE) and (log or name not in LOG)
    ]
    if not tables:
        return {}
    parts = [
        f"SELECT '{name}', md5(coalesce(string_agg(row, '' ORDER BY row), ''))"
        f" FROM (SELECT (to_jsonb(t) - %s::text[])::text AS row FROM {name} t) AS rows"
        for name in tables
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), [NOTED_ON_THE_WAY] * len(parts))
        return dict(cursor.fetchall())


def changed(
    before: dict[str, str], *, log: bool, since: dict[str, int] | None = None
) -> list[str]:
    """The tables that are not as they were; with `since`, what had been `written` then,
    only those that were written to are looked at."""
    of = None
    if since is not None:
        of = [name for name, rows in written().items() if rows != since.get(name, 0)]
    after = digests(log=log, of=of)
    return sorted(name for name in after if before[name] != after[name])


def written() -> dict[str, int]:
    """By table of the gate, how many rows this transaction has written in all: where
    that stands still nothing has changed, and no row need be looked at. What a part of
    the log counts is the log's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del"
            " FROM pg_stat_xact_user_tables"
        )
        rows = cursor.fetchall()
    counts: Counter[str] = Counter()
    for name, n in rows:
        if not name.startswith(NOT_THE_GATE):
            whole = name.rpartition("_")[0]
            counts[whole if whole in LOG else name] += n
    return counts
