"""What canaries and practice items are made from: requests that people approved, and
the defects that fit one of them.

The clone of a practice item is a version that is never stored. It exists only while a
page is built from it, so nothing could ever execute it.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, QuerySet

from journal.errors import DomainError
from journal.operations import operation
from policies import tools
from policies.choices import Tier
from policies.models import Person, PolicyVersion
from reviews import permissions
from reviews.choices import REVERSAL_SOURCE, DefectKind, RequestStatus
from reviews.governance.ruling import ProposedAction, Ruling, govern, read_claims
from reviews.models import (
    ApprovalRequest,
    Canary,
    Decision,
    PracticeItem,
    RequestVersion,
    Revision,
)
from reviews.requests import versions
from reviews.requests.revisions import draft_revision
from reviews.tool_services import readers
from reviews.tool_services.readers import ToolReading

from . import defects
from .defects import BY_KIND, CloneSubject, PlantedDefect, list_plantable

REMEMBERED = timedelta(days=7)  # a reviewer may recognise what they read lately
LATELY = timedelta(days=90)
NEWEST = 200  # requests that may be cloned


def select_sources(person: Person, now: datetime) -> QuerySet[ApprovalRequest]:
    """Requests that people approved in this person's queues, newest first: none that
    they decided or practised on within a week, or met as a canary."""
    me, since = person.public_id, now - REMEMBERED
    request = OuterRef("pk")
    decided = Decision.objects.filter(request=request, reviewer=person, at__gt=since)
    practised = PracticeItem.objects.filter(
        version__request=request,
        practice__reviewer=person,
        practice__started_at__gt=since,
    )
    met = Canary.objects.filter(source=OuterRef("proposal"), reviewer=person)
    requests = ApprovalRequest.objects.filter(
        ~Exists(decided),
        ~Exists(practised),
        ~Exists(met),
        status=RequestStatus.AUTHORIZED,
        tier=Tier.APPROVE,
        settled_at__gt=now - LATELY,
        queue__in=permissions.queues_of(person),
    )
    requests = requests.exclude(
        proposal__kept_out__contains=[me]
    )  # guard: source-kept-out
    return (
        requests.exclude(barred__contains=[me])
        .exclude(proposal__source=REVERSAL_SOURCE)
        .select_related("proposal")
        .order_by("-settled_at")
    )


def load_versions(
    sources: QuerySet[ApprovalRequest], chance: random.Random
) -> list[RequestVersion]:
    """The approved versions of the newest of these requests, in random order. One
    query."""
    newest = sources.order_by("-settled_at").values("pk")[:NEWEST]
    approved = list(
        RequestVersion.objects.filter(
            request__in=newest,
            number=F("request__version"),
            revision__removed_after=None,
        ).select_related("request__proposal", "revision__tool")
    )
    chance.shuffle(approved)
    return approved


def list_fitting_defects(
    revision: Revision,
    *,
    uses: Mapping[str, int],
    weights: Mapping[DefectKind, int],
    chance: random.Random,
) -> Sequence[PlantedDefect]:
    """The defects that fit a revision, in the order of their use. `uses` says how often
    each kind was used so far, and `weights` how often it is to be used; a kind of
    weight 0 is left out."""
    subject = build_subject(revision)
    fitting = list(list_plantable(subject)) if subject else []
    fitting = [planted for planted in fitting if weights[planted.defect.kind]]
    chance.shuffle(fitting)
    fitting.sort(
        key=lambda planted: (
            (uses.get(planted.defect.kind, 0) + 1) / weights[planted.defect.kind]
        )
    )
    return fitting


def build_subject(revision: Revision) -> CloneSubject | None:
    """The parts of a revision that a defect may change; None without a tool."""
    if revision.tool is None:
        return None
    return CloneSubject(
        tools.load_definition(revision.tool), revision.args, revision.rationale
    )


def build_action(
    revision: Revision, planted: PlantedDefect, *, proposal: str
) -> ProposedAction:
    """The action of a clone, under this id of a proposal."""
    source = revision.proposal
    return ProposedAction(
        proposal=proposal,
        tool=source.tool_name,
        args=planted.change.args,
        agent=source.agent,
        thread=source.thread,
        preconditions=revision.preconditions,
        reading=ToolReading.from_json(revision.reading),
        uncertain=revision.uncertain,
        unattended=bool(revision.facts["agent"]["unattended"]),
        agent_version=revision.agent_version,
        **read_claims(revision),
    )


def govern_clone(
    action: ProposedAction, now: datetime, policy: PolicyVersion | None = None
) -> Ruling | None:
    """What a policy, by default the active one, says about a clone. None unless it asks
    for one approval."""
    try:
        ruling = _govern(action, now, policy)
    except DomainError:  # the tool changed since, and takes other arguments
        return None
    if ruling.tool is None or ruling.tier is Tier.BLOCK:
        return None
    asked = versions.compute_asked_tier(ruling.evaluation)
    return ruling if asked is Tier.APPROVE else None


@operation(entry="assurance.insertion.plant_canary", writes="none: it only reads")
def _govern(
    action: ProposedAction, now: datetime, policy: PolicyVersion | None
) -> Ruling:
    return govern(action, now=now, policy=policy, firmly=False)


def build_planted_version(
    sealed: RequestVersion, kind: DefectKind
) -> tuple[RequestVersion, PlantedDefect] | None:
    """A version with one defect, as the policy of its source would have asked for it
    when it was proposed; None where the defect does not fit. It is not stored."""
    revision = sealed.revision
    subject = build_subject(revision)
    planted = defects.find_planted_defect(subject, BY_KIND[kind]) if subject else None
    if planted is None:
        return None
    action = build_action(revision, planted, proposal=revision.proposal_id)
    ruling = govern_clone(action, revision.created_at, revision.policy)
    if ruling is None:
        return None
    version = copy.copy(sealed)
    version.pk = None
    version.revision = draft_revision(revision, action, ruling)
    version.revision.rationale = planted.change.rationale
    version.risk = ruling.evaluation.risk
    version.rules = [rule.as_json() for rule in ruling.evaluation.rules]
    return version, planted


def read_anew(action: ProposedAction, source: Revision) -> ProposedAction | None:
    """The same action with the state that the tool's reader finds now, as for a call of
    an agent; None where the reader fails. Caller holds no transaction."""
    definition = tools.load_definition(source.known_tool)
    if definition.reader is None and definition.dry_run is None:
        return action
    asker = readers.Asker(action.agent, action.thread)
    reading = readers.read_state(definition, action.args, asker=asker)
    return None if reading.problem else replace(action, reading=reading)
