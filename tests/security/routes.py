"""Every route of the product: who may read it, who may write it, and a write that
works. A route that is not in this table fails tests/security/test_bypass_matrix.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from agents import representation
from agents.models import Agent, SettingsChange
from desk.account import passkey_views
from journal import clock
from policies import versions
from policies.choices import Risk, Role
from policies.documents.source import write_source
from policies.models import Person, PolicyVersion
from reviews import permissions, recovery
from reviews.models import Hold, NotificationDrill
from tests import factories, pages
from tests.agents.adapters.authzen.conftest import access, denied
from tests.factories import PASSWORD
from tests.notifications.channels.browsers import RFC_AUTH, RFC_KEY
from tests.reviews.batches import batching
from tests.reviews.questions.asking import FORM
from tests.security.world import AGENTS, ALL, PEOPLE, Who, World

NONE: frozenset[Who] = frozenset()
BEARERS = AGENTS | {Who.TOKEN}
# Who is told of the first agent's request, and who of its runs.
SEES = frozenset(
    {Who.REVIEWER, Who.SUPERVISOR, Who.ADMINISTRATOR, Who.AUDITOR, Who.OWNER}
)
SEES_BY_API = SEES | {Who.TOKEN}
SEES_BATCH = SEES - {Who.OWNER}  # its members may be of several runs and people
DECIDES = frozenset({Who.REVIEWER, Who.SUPERVISOR})
STOPS = frozenset({Who.SUPERVISOR, Who.ADMINISTRATOR, Who.OWNER})
PAUSES = STOPS | {Who.REVIEWER}
LIFTS = frozenset({Who.SUPERVISOR, Who.ADMINISTRATOR})
READS_POLICY = PEOPLE - {Who.OWNER, Who.OTHER_OWNER}
READS_LOG = SEES - {Who.REVIEWER}
READS_ALARMS = frozenset({Who.SUPERVISOR, Who.ADMINISTRATOR, Who.AUDITOR})
READS_LETTERS = READS_ALARMS | {Who.OWNER}
POSTS = frozenset({Who.ADMINISTRATOR, Who.OWNER})  # of the first agent
SETTLES = frozenset({Who.SUPERVISOR})
UPKEEP = frozenset({Who.SUPERVISOR, Who.ADMINISTRATOR, Who.AUDITOR})
# The one who decided, and who checks; others once it is settled.
AS_SEEN = frozenset({Who.REVIEWER, Who.AUDITOR})
EXPORTS = frozenset({Who.AUDITOR})
OWNS = frozenset({Who.OWNER, Who.OTHER_OWNER})
ASKS = frozenset({Who.ADMINISTRATOR})  # for a dataset
SEES_PEOPLE = ASKS | {Who.AUDITOR}
SEES_DATASETS = ASKS | {Who.AUDITOR}  # who owns those of the world
REVEALS = frozenset({Who.SUPERVISOR})
HERSELF = frozenset({Who.REVIEWER})
FIRST_AGENT = frozenset({Who.AGENT})

STEPPED_UP = {"reason": "A new team.", "password": PASSWORD}
AUTHORITY = {"email": "new@example.org", "role": "reviewer", **STEPPED_UP}
INVITED = {**AUTHORITY, "full_name": "Ines Example", "username": "ines"}

PRESET_REASONS = (
    "place.approve.verified",
    "place.modify.wrong_amount",
    "place.reject.unsafe",
    "place.escalate.policy",
)

Body = Callable[[World], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """`sees`: for everybody else the thing is not there (404, not 403). `ids` names
    what fills the address; `body` makes a write that works, once `first` was done."""

    get: frozenset[Who] = NONE
    post: frozenset[Who] = NONE
    sees: frozenset[Who] = ALL
    ids: dict[str, str] = field(default_factory=dict)
    query: str = ""
    body: Body = lambda world: {}
    first: Callable[[World], None] | None = None
    writes: bool = True


def _rest_drills(world: World) -> None:
    """The last drill was long ago."""
    earlier = clock.now() - timedelta(hours=2)
    NotificationDrill.objects.update(started_at=earlier)


def _offer_to_caller(world: World) -> None:
    person = world.people[world.caller]
    Hold.objects.filter(pk=world.ids["taken"]).update(offered_to=person)


def _offer_of_caller(world: World) -> None:
    person = world.people[world.caller]
    Hold.objects.filter(pk=world.ids["taken"]).update(
        holder=person, offered_to=world.gate.tom
    )


def _begin_passkey(world: World) -> None:
    """The caller has proved who they are."""
    session = world.clients[world.caller].session
    until = clock.now() + timedelta(minutes=5)
    session[passkey_views.ADDING] = ["Key", until.isoformat()]
    session.save()


def _employ_colleague(world: World) -> None:
    role = permissions.find_deciding_role(world.people[world.caller])
    factories.person("nora", role or Role.REVIEWER)


def _absence(world: World) -> dict[str, Any]:
    person = Person.objects.filter(username="nora").first()
    return {
        "substitute": person.public_id if person else "",
        "queues": ["mail"],
        "until": f"{clock.now() + timedelta(days=3):%Y-%m-%dT%H:%M}",
        "password": PASSWORD,
    }


def _edit(world: World) -> dict[str, Any]:
    world.waiting.refresh_from_db()
    args = {**world.waiting.sealed.revision.args, "amount": "5.00"}
    hash_ = world.waiting.action_hash
    return {"version": world.waiting.version, "action_hash": hash_, "args": args}


def _activation(world: World) -> dict[str, Any]:
    draft = PolicyVersion.objects.get(number=world.ids["draft"])
    shown = asdict(versions.build_shown_versions(draft))
    return {**shown, "reason": "quarterly review", "password": PASSWORD}


def _verdict(world: World) -> dict[str, Any]:
    world.waiting.refresh_from_db()
    return {
        "verdict": "approve",
        "version": world.waiting.version,
        "action_hash": world.waiting.action_hash,
        "password": PASSWORD,
    }


def _on_page(world: World) -> dict[str, Any]:
    """The same from the caller's own page, as far as they have one."""
    return {**_verdict(world), "seen": pages.token(world.waiting, _caller(world))}


def _caller(world: World) -> str:
    person = world.people.get(world.caller, world.people[Who.REVIEWER])
    return person.get_username()


def _stop(scope: str, mode: str) -> Body:
    return lambda world: {"target": scope, "mode": mode, "reason": "odd"}


def _noticed(world: World) -> None:
    """Another host says that an old database came back."""
    recovery.announce_restore(why="behind")


def _display(world: World) -> dict[str, Any]:
    return {
        "theme": "dark",
        "density": "compact",
        "diff": "auto",
        "advance": "off",
        "timers": "clock",
    }


def _notifications(world: World) -> dict[str, Any]:
    by_risk = {f"{w}-{r}": "now" for w in ("email", "desk") for r in Risk}
    more = {"minutes": 5, "digest_at": "08:00", "zone": "UTC", "per_hour": 9}
    return {**by_risk, **more}


def _policy(world: World) -> dict[str, Any]:
    return {"document": write_source(world.gate.policy.document)}


def _dataset(world: World) -> dict[str, Any]:
    today = clock.now().date().isoformat()
    return {
        "purpose": "a comparison",
        "owner": world.people[Who.AUDITOR].public_id,
        "tools": "pay",
        "since": today,
        "until": today,
        "train": 70,
        "validation": 15,
        "test": 15,
    }


def _browser(world: World) -> dict[str, Any]:
    address = f"https://push.example.com/{world.caller.name}"
    return {"endpoint": address, "p256dh": RFC_KEY, "auth": RFC_AUTH}


def _proposal(world: World) -> dict[str, Any]:
    return {"thread": "t-9", "tool": "look", "args": {"q": "shoes"}}


def _batch(world: World) -> dict[str, Any]:
    return {"items": [{**_proposal(world), "idempotency_key": "b-1"}]}


def _question(world: World) -> dict[str, Any]:
    return {"thread": "t-9", "to": "odd", "text": "Which card?", "schema": FORM}


def _revision(world: World) -> dict[str, Any]:
    return {"args": {"customer": "C-1", "amount": "39.00", "currency": "USD"}}


def _outcome(world: World) -> dict[str, Any]:
    return {
        "fence": world.ids["fence"],
        "status": "succeeded",
        "action_hash": world.ids["action_hash"],
    }


def _access(world: World) -> dict[str, Any]:
    return access("look", {"q": "shoes"})


def _access_request(world: World) -> dict[str, Any]:
    """What the caller itself was denied, if it is an agent."""
    slug = "other" if world.caller is Who.OTHER_AGENT else "riley"
    return denied(Agent.objects.get(slug=slug), _access(world))


def _decided_together(world: World) -> dict[str, Any]:
    meant = batching.said(world.batch, world.people[Who.REVIEWER])
    return {"digest": meant.digest, "items": meant.items, "verdict": "approve"}


def _rejected_together(world: World) -> dict[str, Any]:
    meant = batching.said(world.batch, world.people[Who.REVIEWER])
    return {
        "do": "commit",
        "verdict": "reject",
        "reason_code": "duplicate",
        "digest": meant.digest,
        "item": meant.items,
        "row": [f"{pk}~{mark}~1~" for pk, mark in meant.marks.items()],
        "seen": pages.batch_token(world.batch, _caller(world)),
    }


REQUEST = {"pk": "request"}
BATCH = {"pk": "batch"}
TAKEN = {"pk": "taken"}
ESCALATED = {"pk": "escalated"}
ALARM = {"pk": "alarm"}
LETTER = {"pk": "letter"}
ENDPOINT = {"pk": "endpoint"}
RUN = {"slug": "agent", "name": "thread"}
ROUTES: dict[str, Row] = {
    "livez": Row(get=ALL),
    "readyz": Row(get=ALL),
    "metrics": Row(),  # only with a token of its own: tests/hitl/test_metrics.py
    "jwks": Row(get=ALL),
    "manifest": Row(get=ALL),
    "authzen_metadata": Row(get=ALL),
    "docs": Row(get=ALL),
    "client": Row(get=ALL),
    "client_wheel": Row(get=ALL, ids={"name": "wheel"}),
    "reviews:help": Row(get=ALL),
    "reviews:sign_in": Row(get=ALL, post=ALL, writes=False),
    "reviews:sign_in_code": Row(get=ALL, post=ALL, writes=False),
    "reviews:sign_in_passkey": Row(post=ALL, writes=False),
    # No identity provider there: tests/desk/account/test_provider_sign_in.py.
    "reviews:provider_sign_in": Row(sees=NONE, writes=False),
    "reviews:provider_callback": Row(sees=NONE, writes=False),
    "reviews:confirm_form": Row(get=PEOPLE),  # no form waits there
    "reviews:sign_out": Row(post=PEOPLE, writes=False),
    # There is an administrator, so it is closed to all: tests/desk/setup.
    "reviews:setup": Row(sees=NONE, ids={"token": "setup"}, writes=False),
    # Not in solo mode, so it is closed to all: tests/policies/test_solo_account.py.
    # It is no token of a person who was let in: tests/desk/people.
    "reviews:password_link": Row(sees=NONE, ids={"token": "setup"}, writes=False),
    "reviews:sign_in_by_link": Row(sees=NONE, ids={"token": "setup"}, writes=False),
    # The desk
    "reviews:home": Row(get=PEOPLE),
    "reviews:queue": Row(get=PEOPLE),
    "reviews:search": Row(get=PEOPLE, query="q=refund"),
    "reviews:overview": Row(get=READS_ALARMS),
    "reviews:past_queue": Row(get=SEES_PEOPLE, ids={"name": "queue"}),
    "reviews:queue_preset": Row(
        get=SEES_PEOPLE,
        post=ASKS,
        ids={"name": "queue"},
        body=lambda world: {
            **dict.fromkeys(PRESET_REASONS, "1"),
            "texts.0": "Ask for the receipt.",
            **STEPPED_UP,
        },
    ),
    "reviews:queues": Row(get=SEES_PEOPLE),
    "health": Row(get=SEES_PEOPLE),
    "channels": Row(get=SEES_PEOPLE),
    "reviews:view_save": Row(
        post=PEOPLE,
        ids={"page": "list"},
        body=lambda world: {"name": "over", "query": "tab=done"},
    ),
    "reviews:view_delete": Row(post=HERSELF, sees=HERSELF, ids={"pk": "own_view"}),
    "reviews:queue_fresh": Row(get=PEOPLE, query="since=2026-01-01T00:00:00Z"),
    "reviews:load": Row(get=SETTLES, sees=SETTLES),
    # What expires within half an hour, if anything does.
    "reviews:load_extend": Row(post=SETTLES, sees=SETTLES, writes=False),
    "reviews:load_share": Row(
        post=SETTLES,
        sees=SETTLES,
        body=lambda world: {"to": world.gate.sam.public_id},
    ),
    "reviews:events": Row(get=PEOPLE),
    "reviews:escalations": Row(get=PEOPLE),
    "reviews:escalation": Row(get=SEES, sees=SEES, ids=ESCALATED),
    "reviews:give_back": Row(
        post=SETTLES,
        sees=SEES,
        ids=ESCALATED,
        body=lambda world: {"guidance": "look again"},
    ),
    "reviews:assign": Row(
        post=SETTLES,
        sees=SEES,
        ids=ESCALATED,
        body=lambda world: {"to": world.gate.sam.public_id},
    ),
    "reviews:show_view": Row(
        post=SETTLES,
        sees=SEES,
        ids=ESCALATED,
        writes=False,  # nothing but its record in the log
    ),
    "reviews:arbitrate": Row(
        post=SETTLES,
        sees=SEES,
        ids={"pk": "split"},
        body=lambda world: {"text": "read the date"},
    ),
    "reviews:announced": Row(get=PEOPLE),
    "reviews:announced_seen": Row(post=PEOPLE, writes=False),
    "reviews:peek": Row(get=SEES, sees=SEES, ids=REQUEST),
    "reviews:request_detail": Row(get=SEES, sees=SEES, ids=REQUEST),
    "reviews:live": Row(get=SEES, sees=SEES, ids=REQUEST),
    "reviews:decide": Row(
        get=SEES, post=DECIDES, sees=SEES, ids=REQUEST, body=_on_page
    ),
    "reviews:verdict_passkey": Row(
        post=SEES, sees=SEES, ids=REQUEST, body=_on_page, writes=False
    ),
    "reviews:send_message": Row(
        post=DECIDES,
        sees=SEES,
        ids=REQUEST,
        body=lambda world: {"panel": "ask", "version": 1, "reason": "Which order?"},
    ),
    "reviews:issue_standing_grant": Row(
        get=SEES,
        post=SETTLES,
        sees=SEES,
        ids={"pk": "tag_request"},
        body=lambda world: {"reason": "many tags"},
    ),
    "reviews:assurance": Row(get=PEOPLE),
    "reviews:second_reviews": Row(get=PEOPLE),
    "reviews:second_review": Row(
        get=DECIDES,
        post=DECIDES,
        sees=DECIDES,
        ids={"pk": "second_review"},
        body=lambda world: {"answer": "approve", "reason": "checked"},
    ),
    # Each of them has a practice open, and goes on with it.
    "reviews:practice_start": Row(
        post=DECIDES | {Who.STRANGER}, ids={"kind": "warm_up"}, writes=False
    ),
    "reviews:practice_decline": Row(post=DECIDES | {Who.STRANGER}),
    "reviews:practice": Row(get=HERSELF, sees=HERSELF, ids={"pk": "ended_practice"}),
    "reviews:practice_skip": Row(post=HERSELF, sees=HERSELF, ids={"pk": "practice"}),
    "reviews:practice_item": Row(
        get=HERSELF,
        post=HERSELF,
        sees=HERSELF,
        ids={"pk": "practice", "number": "version"},
        body=lambda world: {"answer": "approve"},
    ),
    "reviews:defects": Row(get=ASKS),
    "reviews:defect": Row(
        get=ASKS,
        post=ASKS,
        ids={"kind": "defect"},
        body=lambda world: {"weight": "2", "reason": "too rare"},
    ),
    "reviews:defect_answer": Row(
        post=ASKS, ids={"pk": "defect_change"}, body=lambda world: {"answer": "confirm"}
    ),
    "reviews:people": Row(get=SEES_PEOPLE),
    "reviews:invite": Row(get=ASKS, post=ASKS, body=lambda world: INVITED),
    "reviews:provisioning": Row(
        get=SEES_PEOPLE, post=ASKS, body=lambda world: STEPPED_UP
    ),
    "reviews:provisioning_confirm": Row(
        post=ASKS,
        ids={"pk": "provisioning_token"},
        body=lambda world: {"password": PASSWORD},
    ),
    "reviews:provisioning_revoke": Row(post=ASKS, ids={"pk": "provisioning_token"}),
    "scim:service_config": Row(),
    "scim:resource_types": Row(),
    "scim:resource_type": Row(ids={"name": "agent"}),
    "scim:schemas": Row(),
    "scim:schema": Row(ids={"name": "agent"}),
    "scim:users": Row(),
    "scim:user": Row(ids={"public_id": "reviewer"}),
    "scim:groups": Row(),
    "scim:group": Row(ids={"public_id": "reviewer"}),
    "reviews:person": Row(
        get=SEES_PEOPLE,
        post=ASKS,
        ids={"who": "reviewer"},
        body=lambda world: AUTHORITY,
    ),
    "reviews:person_access": Row(
        post=ASKS,
        ids={"who": "reviewer"},
        body=lambda world: {"act": "deactivate", **STEPPED_UP},
    ),
    "reviews:authority_answer": Row(
        post=ASKS,
        ids={"pk": "authority_change"},
        body=lambda world: {"answer": "confirm", **STEPPED_UP},
    ),
    "reviews:datasets": Row(get=SEES_DATASETS, post=ASKS, body=_dataset),
    "reviews:dataset_answer": Row(
        post=ASKS, ids={"pk": "asked_dataset"}, body=lambda world: {"answer": "consent"}
    ),
    "reviews:dataset_file": Row(
        get=SEES_DATASETS, sees=SEES_DATASETS, ids={"pk": "dataset"}
    ),
    "reviews:canary_realism": Row(
        post=HERSELF, sees=HERSELF, ids={"pk": "canary", "flag": "realism"}
    ),
    "reviews:statistics": Row(get=READS_ALARMS | OWNS),
    "reviews:statistics_group": Row(get=READS_ALARMS | OWNS, ids={"group": "group"}),
    "agents:own_statistics": Row(get=PEOPLE),
    "reviews:statistics_csv": Row(get=READS_ALARMS, ids={"slug": "plot"}),
    "reviews:standing_grants": Row(get=PEOPLE),
    "reviews:questions": Row(get=PEOPLE),
    "reviews:question": Row(
        get=SEES,
        post=DECIDES,
        sees=SEES,
        ids={"pk": "question"},
        body=lambda world: {"act": "decline", "note": "ask another"},
    ),
    "reviews:revoke_standing_grant": Row(
        post=DECIDES | {Who.ADMINISTRATOR},
        sees=DECIDES | {Who.ADMINISTRATOR, Who.AUDITOR},
        ids={"pk": "standing_grant"},
    ),
    "reviews:notices": Row(get=READS_ALARMS, sees=READS_ALARMS, ids={"pk": "request"}),
    "reviews:recall": Row(post=DECIDES, sees=SEES, ids={"pk": "held"}),
    "reviews:as_seen": Row(
        get=AS_SEEN, sees=AS_SEEN, ids={"pk": "held", "decision": "decision"}
    ),
    "reviews:version": Row(get=SEES, sees=SEES, ids={"pk": "request", "n": "version"}),
    "reviews:reveal": Row(
        get=REVEALS,
        post=REVEALS,
        sees=REVEALS,
        ids={"pk": "hidden"},
        body=lambda world: {"name": "note", "reason_code": "audit"},
        writes=False,  # nothing but its record in the log
    ),
    "reviews:evidence_picture": Row(
        get=SEES,
        sees=SEES,
        ids={"pk": "with_file", "sha256": "file", "number": "version"},
    ),
    # With the pass of a reveal only, which the supervisor has.
    "reviews:evidence_file": Row(
        get=REVEALS,
        sees=REVEALS,
        ids={"pk": "with_file", "sha256": "file"},
        query="pass={pass}",
    ),
    "reviews:retry": Row(post=DECIDES, sees=SEES, ids={"pk": "failed"}),
    "reviews:effect_retry": Row(post=DECIDES, sees=SEES, ids={"pk": "failed_unasked"}),
    # Being at it
    "reviews:hold": Row(post=DECIDES, sees=SEES, ids=REQUEST),
    "reviews:release": Row(post=DECIDES, sees=SEES, ids=REQUEST, writes=False),
    "reviews:extend": Row(post=DECIDES, sees=SEES, ids=REQUEST),
    "reviews:ask_hold": Row(post=DECIDES, sees=SEES, ids=TAKEN),
    "reviews:accept_hold": Row(
        post=DECIDES, sees=SEES, ids=TAKEN, first=_offer_to_caller
    ),
    "reviews:decline_offer": Row(
        post=DECIDES, sees=SEES, ids=TAKEN, first=_offer_to_caller
    ),
    "reviews:withdraw_offer": Row(
        post=DECIDES, sees=SEES, ids=TAKEN, first=_offer_of_caller
    ),
    "reviews:break_hold": Row(
        get=SETTLES,
        post=SETTLES,
        sees=SEES,
        ids=TAKEN,
        body=lambda world: {"reason": "gone home"},
    ),
    "reviews:hand_over": Row(
        get=DECIDES,
        post=DECIDES,
        sees=SEES,
        ids=REQUEST,
        body=lambda world: {"to": world.gate.sam.public_id},
    ),
    "reviews:move": Row(
        get=SETTLES,
        post=SETTLES,
        sees=SEES,
        ids=REQUEST,
        body=lambda world: {"queue": "mail", "reason": "they know the customer"},
    ),
    "reviews:draft": Row(
        post=DECIDES,
        sees=SEES,
        ids=REQUEST,
        body=lambda world: {"verdict": "reject", "reason": "so far"},
    ),
    "reviews:note": Row(
        post=DECIDES, sees=SEES, ids=REQUEST, body=lambda world: {"text": "odd"}
    ),
    "reviews:queue_next": Row(post=PEOPLE, writes=False),
    "reviews:unknown": Row(get=PEOPLE),
    "reviews:unknown_one": Row(
        get=SEES,
        post=SETTLES,
        sees=SEES,
        ids={"pk": "unknown"},
        body=lambda world: {"happened": "yes", "reason": "seen in the ledger"},
    ),
    "reviews:unknown_look_up": Row(post=SETTLES, sees=SEES, ids={"pk": "doubtful"}),
    "reviews:batches": Row(get=PEOPLE),
    "reviews:batch": Row(get=SEES_BATCH, sees=SEES_BATCH, ids=BATCH),
    "reviews:batch_live": Row(get=SEES_BATCH, sees=SEES_BATCH, ids=BATCH),
    "reviews:batch_item": Row(
        get=SEES_BATCH, sees=SEES_BATCH, ids={"pk": "batch", "item": "member"}
    ),
    "reviews:batch_decide": Row(
        post=DECIDES, sees=SEES_BATCH, ids=BATCH, body=_rejected_together
    ),
    "reviews:batch_recall": Row(
        post=DECIDES, sees=SEES_BATCH, ids={"pk": "held_batch"}
    ),
    "reviews:batch_retry": Row(
        post=DECIDES, sees=SEES_BATCH, ids={"pk": "halted_batch"}
    ),
    "reviews:batch_run": Row(post=DECIDES, sees=SEES_BATCH, ids={"pk": "halted_batch"}),
    "reviews:log": Row(get=PEOPLE),
    "reviews:log_record": Row(get=READS_LOG, sees=READS_LOG, ids={"seq": "number"}),
    "reviews:log_new": Row(get=READS_LOG, sees=READS_LOG, ids={"pk": "record"}),
    "reviews:exports": Row(
        get=EXPORTS, post=EXPORTS, body=lambda world: {"format": "csv"}
    ),
    "reviews:export_file": Row(get=EXPORTS, ids={"pk": "export"}),
    "reviews:me": Row(get=PEOPLE),
    "reviews:display": Row(get=PEOPLE, post=PEOPLE, body=_display),
    "reviews:keys": Row(get=PEOPLE, post=PEOPLE, body=lambda world: {"on": "on"}),
    "reviews:notifications": Row(get=PEOPLE, post=PEOPLE, body=_notifications),
    "reviews:send_test": Row(post=PEOPLE, writes=False),
    "reviews:register_browser": Row(post=PEOPLE, body=_browser),
    "reviews:remove_browser": Row(post=HERSELF, sees=HERSELF, ids={"pk": "browser"}),
    "reviews:own_password": Row(
        get=PEOPLE,
        post=PEOPLE,
        body=lambda world: {
            "present": PASSWORD,
            **dict.fromkeys(("password", "again"), "another long password"),
        },
    ),
    "reviews:second_factor": Row(
        get=PEOPLE,
        post=PEOPLE,
        body=lambda world: {"act": "begin", "password": PASSWORD},
    ),
    "reviews:passkeys": Row(
        get=PEOPLE,
        post=PEOPLE,
        body=lambda world: {"act": "begin", "name": "Key", "password": PASSWORD},
        writes=False,
    ),
    "reviews:new_passkey": Row(post=PEOPLE, first=_begin_passkey, writes=False),
    "reviews:form_passkey": Row(post=PEOPLE, writes=False),
    # Each has but the one there: tests/desk/account/test_sessions.py.
    "reviews:sessions": Row(
        get=PEOPLE, post=PEOPLE, body=lambda world: {"end": "others"}, writes=False
    ),
    "reviews:substitute": Row(
        get=PEOPLE,
        post=DECIDES | {Who.STRANGER},
        first=_employ_colleague,
        body=_absence,
    ),
    "reviews:tokens": Row(get=PEOPLE, post=PEOPLE, body=lambda world: {"name": "new"}),
    "reviews:token_revoke": Row(post=HERSELF, sees=HERSELF, ids={"pk": "own_token"}),
    # Stop
    "reviews:stop": Row(
        get=SEES,
        post=PAUSES - {Who.OWNER},  # an owner has a Stop page of their own
        sees=SEES,
        query="agent=riley&thread=t-1",
        body=_stop("thread:riley/t-1", "paused"),
    ),
    "reviews:stopped": Row(get=PEOPLE, ids={"pk": "stop"}),
    "reviews:stopped_live": Row(get=PEOPLE, ids={"pk": "stop"}),
    "reviews:lift": Row(
        post=LIFTS, ids={"pk": "stop"}, body=lambda world: {"reason": "fine"}
    ),
    "reviews:alarms": Row(get=READS_ALARMS),
    "reviews:alarm": Row(get=READS_ALARMS, sees=READS_ALARMS, ids=ALARM),
    "reviews:alarm_acknowledge": Row(post=SETTLES, sees=READS_ALARMS, ids=ALARM),
    "reviews:alarm_close": Row(
        post=SETTLES,
        sees=READS_ALARMS,
        ids=ALARM,
        body=lambda world: {"note": "asked again"},
    ),
    "reviews:revoke": Row(
        get=LIFTS,
        post=LIFTS,
        sees=LIFTS,
        ids={"who": "reviewer"},
        body=lambda world: {"reason": "their account was stolen"},
    ),
    "reviews:incidents": Row(
        get=PEOPLE,
        post=LIFTS,
        body=lambda world: {"queue": "every", "reason": "disk on fire"},
    ),
    "reviews:restored": Row(
        get=PEOPLE,
        post=LIFTS,
        first=_noticed,
        body=lambda world: {"reason": "the disk was lost"},
    ),
    "reviews:on_call": Row(
        get=READS_POLICY,
        post=SETTLES,
        body=lambda world: {
            "queue": world.waiting.queue.name,
            "person": world.gate.rita.public_id,
            "begins_at": f"{clock.now() + timedelta(days=1):%Y-%m-%dT%H:%M}",
            "ends_at": f"{clock.now() + timedelta(days=2):%Y-%m-%dT%H:%M}",
        },
    ),
    "reviews:shift_end": Row(post=SETTLES, ids={"pk": "shift"}),
    "reviews:drill_start": Row(
        post=SETTLES,
        first=_rest_drills,
        body=lambda world: {"queue": world.waiting.queue.name, "risk": "high"},
    ),
    "reviews:drill": Row(
        get=SEES - {Who.OWNER},
        post=DECIDES,
        sees=SEES - {Who.OWNER},
        ids={"pk": "drill"},
        query="by=email",
    ),
    "reviews:incident_end": Row(post=LIFTS, ids={"pk": "incident"}),
    # Agents and policies
    "agents:agents": Row(get=PEOPLE),
    "agents:runs": Row(get=SEES - {Who.REVIEWER} | {Who.OTHER_OWNER}),
    "agents:agent": Row(get=SEES, sees=SEES, ids={"slug": "agent"}),
    "agents:stop_agent": Row(
        get=SEES,
        post=STOPS,
        sees=SEES,
        ids={"slug": "agent"},
        body=_stop("agent:riley", "stopped"),
    ),
    "agents:register_agent": Row(
        get=ASKS,
        post=ASKS,
        body=lambda world: {
            "slug": "new",
            "name": "New",
            "owner": world.gate.owen.public_id,
            "risk_ceiling": "high",
            "reason": "It answers mails.",
            "password": PASSWORD,
        },
    ),
    "agents:settings_change": Row(
        get=ASKS,
        post=ASKS,
        sees=SEES,
        ids={"slug": "agent", "pk": "settings_change"},
        body=lambda world: {
            "answer": "confirm",
            "digest": SettingsChange.objects.get().digest,
            "password": PASSWORD,
        },
    ),
    "agents:agent_settings": Row(
        get=ASKS,
        post=ASKS,
        sees=SEES,
        ids={"slug": "agent"},
        body=lambda world: {
            "owner": world.gate.owen.public_id,
            "tools": "pay",
            "risk_ceiling": "high",
            "password": PASSWORD,
        },
    ),
    "agents:agent_keys": Row(
        get=POSTS,
        post=POSTS,
        sees=SEES,
        ids={"slug": "agent"},
        body=lambda world: {"password": PASSWORD},
    ),
    "agents:revoke_key": Row(
        get=POSTS,
        post=POSTS,
        sees=SEES,
        ids={"slug": "agent", "pk": "agent_key"},
        body=lambda world: {"password": PASSWORD},
    ),
    "agents:endpoints": Row(
        get=READS_LETTERS,
        post=POSTS,
        sees=READS_LETTERS,
        ids={"slug": "agent"},
        body=lambda world: {"url": "https://agent.example/more"},
    ),
    "agents:deliveries": Row(
        get=READS_LETTERS | {Who.OTHER_OWNER}, sees=READS_LETTERS | {Who.OTHER_OWNER}
    ),
    "agents:delivery": Row(get=READS_LETTERS, sees=READS_LETTERS, ids=LETTER),
    "agents:delivery_again": Row(post=POSTS, sees=READS_LETTERS, ids=LETTER),
    "agents:endpoint_again": Row(post=POSTS, sees=READS_LETTERS, ids=ENDPOINT),
    "agents:endpoint_secret": Row(post=POSTS, sees=READS_LETTERS, ids=ENDPOINT),
    # It writes to the log alone: tests/agents/webhooks/test_trial.py.
    "agents:endpoint_test": Row(
        post=POSTS, sees=READS_LETTERS, ids=ENDPOINT, writes=False
    ),
    "agents:endpoint_switch": Row(
        post=POSTS,
        sees=READS_LETTERS,
        ids=ENDPOINT,
        body=lambda world: {"to": "on"},
    ),
    "agents:thread": Row(get=SEES, sees=SEES, ids=RUN),
    "agents:stop_thread": Row(
        get=SEES,
        post=PAUSES,
        sees=SEES,
        ids=RUN,
        body=_stop("thread:riley/t-1", "paused"),
    ),
    "agents:reversal": Row(
        get=SEES,
        post=DECIDES,
        sees=SEES,
        ids={"pk": "done"},
        body=lambda world: {"reason": "it was the wrong one"},
    ),
    "agents:repairs": Row(get=UPKEEP, sees=UPKEEP),
    "agents:repair": Row(
        get=UPKEEP,
        post=frozenset({Who.ADMINISTRATOR}),
        sees=UPKEEP,
        ids={"pk": "repair"},
        body=lambda world: {"do": "confirm"},
    ),
    "agents:repair_run": Row(
        get=UPKEEP,
        post=SETTLES,
        sees=UPKEEP,
        ids=RUN,
        body=lambda world: {
            "change": "checkpoint",
            "reason": "it went on from the wrong place",
            "resume_at": "refund",
            "state": "{}",
        },
    ),
    "policies:policies": Row(get=READS_POLICY, sees=READS_POLICY),
    "policies:tools": Row(get=READS_POLICY, sees=READS_POLICY),
    "policies:new_policy": Row(get=ASKS, post=ASKS, body=_policy),
    "policies:check_draft": Row(post=ASKS, body=_policy, writes=False),
    "policies:activate": Row(
        post=ASKS, sees=READS_POLICY, ids={"number": "draft"}, body=_activation
    ),
    "policies:waiting": Row(get=ASKS, sees=READS_POLICY, ids={"number": "draft"}),
    "policies:refuse": Row(
        post=ASKS,
        sees=READS_POLICY,
        ids={"number": "draft"},
        body=lambda world: {"reason": "not now"},
    ),
    "policies:restore": Row(post=ASKS, sees=READS_POLICY, ids={"number": "retired"}),
    "policies:policy": Row(
        get=READS_POLICY, sees=READS_POLICY, ids={"number": "policy"}
    ),
    # The API: agents
    "api:openapi-json": Row(get=ALL),
    "api:api-root": Row(),
    "api:propose": Row(post=AGENTS, body=_proposal),
    "api:propose_batch": Row(post=AGENTS, body=_batch),
    "api:upload_evidence": Row(post=AGENTS),
    "api:list_proposals": Row(get=AGENTS),
    "api:list_tools": Row(get=AGENTS),
    "api:whoami": Row(get=AGENTS),
    "api:get_proposal": Row(get=FIRST_AGENT, ids={"proposal_id": "proposal"}),
    "api:revise": Row(
        post=FIRST_AGENT, ids={"proposal_id": "proposal"}, body=_revision
    ),
    "api:send_message": Row(
        post=FIRST_AGENT,
        ids={"proposal_id": "proposal"},
        body=lambda world: {"kind": "question", "text": "Card or voucher?"},
    ),
    "api:ask_question": Row(post=AGENTS, body=_question),
    "api:get_question": Row(get=FIRST_AGENT, ids={"question_id": "question"}),
    "api:withdraw_question": Row(post=FIRST_AGENT, ids={"question_id": "question"}),
    "api:withdraw": Row(post=FIRST_AGENT, ids={"proposal_id": "proposal"}),
    "api:acknowledge": Row(
        post=FIRST_AGENT,
        ids={"proposal_id": "ended"},
        body=lambda world: {
            "outcome": representation.compute_settled_id(world.ids["ended"])
        },
    ),
    "api:redeem": Row(post=FIRST_AGENT, body=lambda world: {"token": world.token}),
    "api:report_outcome": Row(
        post=FIRST_AGENT, ids={"execution_id": "execution"}, body=_outcome
    ),
    "api:resume": Row(get=FIRST_AGENT, ids={"thread": "thread"}),
    "api:finish": Row(
        post=FIRST_AGENT,
        ids={"thread": "thread"},
        body=lambda world: {"result": "completed"},
    ),
    # AuthZEN
    "api:evaluate_access": Row(post=AGENTS, body=_access, writes=False),
    "api:request_access": Row(post=AGENTS, body=_access_request),
    "api:get_task": Row(get=FIRST_AGENT, ids={"task_id": "task"}),
    "api:cancel_task": Row(post=FIRST_AGENT, ids={"task_id": "task"}),
    # The API: people
    "api:list_requests": Row(get=PEOPLE | {Who.TOKEN}),
    "api:get_request": Row(
        get=SEES_BY_API, sees=SEES_BY_API, ids={"request_id": "request"}
    ),
    "api:list_batches": Row(get=PEOPLE | {Who.TOKEN}),
    "api:get_batch": Row(
        get=SEES_BATCH | {Who.TOKEN},
        sees=SEES_BATCH | {Who.TOKEN},
        ids={"batch_id": "batch"},
    ),
    "api:decide_batch": Row(
        post=DECIDES | {Who.TOKEN},
        sees=SEES_BATCH | {Who.TOKEN},
        ids={"batch_id": "batch"},
        body=_decided_together,
    ),
    "api:decide": Row(
        post=DECIDES | {Who.TOKEN},
        sees=SEES_BY_API,
        ids={"request_id": "request"},
        body=_verdict,
    ),
    "api:list_standing_grants": Row(get=PEOPLE | {Who.TOKEN}),
    "api:create_standing_grant": Row(
        post=SETTLES,
        sees=SEES_BY_API,
        ids={"request_id": "tag_request"},
        body=lambda world: {"reason": "many tags"},
    ),
    "api:revoke_standing_grant": Row(
        post=DECIDES | {Who.ADMINISTRATOR, Who.TOKEN},
        sees=DECIDES | {Who.ADMINISTRATOR, Who.AUDITOR, Who.TOKEN},
        ids={"grant_id": "standing_grant"},
    ),
    "api:preview_edit": Row(
        post=DECIDES | {Who.TOKEN},
        sees=SEES_BY_API,
        ids={"request_id": "request"},
        body=_edit,
        writes=False,
    ),
    "api:write_to_agent": Row(
        post=DECIDES | {Who.TOKEN},
        sees=SEES_BY_API,
        ids={"request_id": "request"},
        body=lambda world: {"kind": "question", "version": 1, "text": "Which order?"},
    ),
}
OF_AGENTS = {
    name
    for name, row in ROUTES.items()
    if name.startswith("api:") and (row.get | row.post) & {Who.AGENT} and row.get != ALL
}
ABSENT = {
    "request": "r-00000000000000000000",
    "held": "r-00000000000000000000",
    "letter": "d-00000000000000000000",
    "endpoint": "w-00000000000000000000",
    "ended": "p-00000000000000000000",
    "member": "r-00000000000000000000",
    "batch": "b-00000000000000000000",
    "held_batch": "b-00000000000000000000",
    "halted_batch": "b-00000000000000000000",
    "proposal": "p-00000000000000000000",
    "task": "p-00000000000000000000",
    "execution": "x-00000000000000000000",
    "unknown": "x-00000000000000000000",
    "repair": "f-00000000000000000000",
    "question": "q-00000000000000000000",
    "done": "x-00000000000000000000",
    "doubtful": "x-00000000000000000000",
    "agent": "nemo",
    "thread": "t-404",
    "stop": 987654321,
    "incident": 987654321,
    "shift": 987654321,
    "drill": 987654321,
    "practice": 987654321,
    "ended_practice": 987654321,
    "reviewer": "u-00000000000000000000",
    "alarm": 987654321,
    "own_token": 987654321,
    "browser": 987654321,
    "own_view": 987654321,
    "escalated": "r-00000000000000000000",
    "split": "r-00000000000000000000",
    "record": 987654321,
    "number": 987654321,
    "policy": 987654321,
}


class Route(NamedTuple):
    """A name and an address pattern of the resolver."""

    name: str
    pattern: str


def registered() -> Iterator[Route]:
    """Every route that the resolver knows."""
    yield from _walk(get_resolver(), (), "")


def _walk(
    resolver: URLResolver, spaces: tuple[str, ...], before: str
) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        pattern = before + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield Route(":".join([*spaces, entry.name or ""]), pattern)
        else:
            inner = (*spaces, entry.namespace) if entry.namespace else spaces
            yield from _walk(entry, inner, pattern)


def address(name: str, ids: dict[str, Any]) -> str:
    """The address of a listed route with these things in it."""
    row = ROUTES[name]
    path = reverse(name, kwargs={slot: ids[what] for slot, what in row.ids.items()})
    return f"{path}?{row.query.format(**ids)}" if row.query else path


def send(world: World, who: Who, method: str, name: str, path: str) -> Any:
    """One call as this caller sends it: forms to pages, JSON to the API."""
    world.caller = who
    client, body = world.clients[who], ROUTES[name].body(world)
    if method in {"GET", "HEAD", "OPTIONS"}:
        return client.generic(method, path)
    if not name.startswith("api:"):
        return getattr(client, method.lower())(path, body)
    return client.generic(
        method,
        path,
        json.dumps(body).encode(),
        content_type="application/json",
        headers={"Idempotency-Key": "k-1"},
    )
