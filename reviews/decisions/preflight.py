"""Calls to other services before a verdict is recorded, outside any transaction: the
tool's reader for edited arguments, and verifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Subquery

from journal import clock
from journal.errors import InvalidArgs, InvalidInput, NotFound, VerifierRefused
from journal.operations import operation
from journal.prepared_queries import Parameter, PreparedQuery
from policies import active, tools
from policies.choices import Tier
from policies.models import PolicyVersion
from reviews import permissions
from reviews.choices import RequestStatus, Verdict
from reviews.governance import readings
from reviews.governance.ruling import ProposedAction, govern, read_claims
from reviews.models import ApprovalRequest, RequestVersion
from reviews.requests.revisions import draft_version
from reviews.tool_services import readers, verifiers
from reviews.tool_services.readers import ToolReading

from .submission import VerdictSubmission

_ACTIVE = PolicyVersion.objects.filter(status="active")
_NEWEST = PreparedQuery(
    lambda: (
        RequestVersion.objects.select_related(
            "request__proposal", "request__queue", "revision__tool"
        )
        .filter(request_id=Parameter("request"), number=F("request__version"))
        .annotate(
            active_policy=Subquery(_ACTIVE.values("pk")),
            active_digest=Subquery(_ACTIVE.values("digest")),
        )
    )
)


@dataclass(frozen=True, slots=True)
class Preflight:
    """The results of the calls before the transaction: a reading and the verifiers'."""

    # Whether the request was open in exactly this version; if not, nothing was called.
    current: bool = True
    reading: ToolReading | None = None
    least: Tier = Tier.AUTO  # the tier that a verifier demands
    # Whether that is more than this version asks for: then an approval becomes an
    # escalation, and an edit is sealed with at least that tier.
    raised: bool = False
    version: RequestVersion | None = None  # the newest, as read before the lock
    queue: str = ""  # whose verifiers were asked about an edit; empty if none were

    def reuse_version(self, request: ApprovalRequest) -> None:
        """Spare the locked request a query for its version, if it still has this one:
        a version never changes."""
        if self.version is not None and self.version.number == request.version:
            self.version.request = request
            request.sealed = self.version


def run_preflight(submission: VerdictSubmission) -> Preflight:
    """Read the state for edited arguments and call the verifiers, before any lock.

    Nothing is called for a person who may not decide this, or for arguments that break
    the schema. A stale verdict is refused later, under the lock.

    Raises NotFound, NotPermitted, InvalidArgs, VerifierRefused.
    """
    version = _NEWEST.fetch_first(request=submission.request_id)
    if version is None:
        raise NotFound
    request = version.request
    request.sealed = version
    if not submission.commits:
        return Preflight(version=version)
    if request.status != RequestStatus.PENDING or submission.is_stale(request):
        return Preflight(current=False, version=version)
    if request.canary:  # no service hears of one
        return _preflight_canary(submission, version)
    return _ask_services(submission, version)


def _ask_services(submission: VerdictSubmission, version: RequestVersion) -> Preflight:
    """Call the reader and the verifiers. Raises NotPermitted, InvalidArgs,
    InvalidInput, VerifierRefused."""
    if submission.verdict is Verdict.MODIFY and submission.args is not None:
        return _ask_about_edit(submission, version)
    if not _list_verifiers(version, version):
        return Preflight(version=version)
    permissions.check_can_decide(submission.person, version.request, version)
    least = _ask_verifiers(submission, version, version)
    raised = least.rank > Tier(version.tier).rank
    return Preflight(least=least, raised=raised, version=version)


def _ask_about_edit(
    submission: VerdictSubmission, version: RequestVersion
) -> Preflight:
    """Read the state for the edited arguments, and ask the verifiers of the version
    that the edit makes: it may go to another queue."""
    request, args = version.request, submission.args or {}
    permissions.check_can_decide(submission.person, request, version)
    _check_edited_args(args, version)
    definition = tools.load_definition(version.revision.known_tool)
    asker = readings.build_asker(request.proposal)
    reading = readers.read_state(definition, args, asker=asker)
    made = _draft_edit(submission, version, reading)
    if made is None:  # the policy forbids it, which is said under the lock
        return Preflight(reading=reading, version=version)
    least = _ask_verifiers(submission, version, made)
    return Preflight(
        reading=reading, least=least, version=version, queue=made.queue.name
    )


@operation(
    entry="reviews.decisions.decide.decide_request", writes="none: it only reads"
)
def _draft_edit(
    submission: VerdictSubmission, version: RequestVersion, reading: ToolReading
) -> RequestVersion | None:
    """The version that the edit would make now, or None where the policy forbids it. It
    reads the sums and locks none: the edit is judged again under the lock."""
    action = build_edited_action(submission, version, reading)
    ruling = govern(action, now=clock.now(), firmly=False)
    return None if ruling.tier is Tier.BLOCK else draft_version(version, action, ruling)


def build_edited_action(
    submission: VerdictSubmission, version: RequestVersion, reading: ToolReading | None
) -> ProposedAction:
    """The action with the edited arguments. Raises InvalidInput when nothing
    changed."""
    before, proposal = version.revision, version.request.proposal
    if submission.args is None or dict(submission.args) == before.args:
        raise InvalidInput(
            "Nothing changed. Use Approve.",
            errors=[{"path": "args", "message": "at least one change"}],
        )
    return ProposedAction(
        proposal=proposal.pk,
        tool=proposal.tool_name,
        args=submission.args,
        agent=proposal.agent,
        thread=proposal.thread,
        preconditions=before.preconditions,
        reading=reading,
        uncertain=before.uncertain,
        earlier_tool=before.known_tool,
        **read_claims(before),
        agent_version=before.agent_version,
        unattended=bool(before.facts.get("agent", {}).get("unattended")),
    )


def _list_verifiers(
    version: RequestVersion, judged: RequestVersion
) -> list[verifiers.Verifier]:
    queue = judged.queue.name if judged is not version else version.request.queue.name
    return verifiers.list_verifiers(
        tools.load_definition(judged.revision.known_tool),
        [judged.revision.evaluation["queue"], queue],
        _load_active_policy(version),
    )


def _ask_verifiers(
    submission: VerdictSubmission, version: RequestVersion, judged: RequestVersion
) -> Tier:
    """The tier that the verifiers of the judged version demand. Raises
    VerifierRefused."""
    demand = verifiers.run_verifiers(
        _list_verifiers(version, judged),
        _build_verifier_input(submission, version, judged),
        stage="decision",
    )
    if isinstance(demand, verifiers.VerifierRefusal):
        raise VerifierRefused(demand.detail, verifier=demand.code)
    return demand.tier if demand else Tier.AUTO


def _preflight_canary(
    submission: VerdictSubmission, version: RequestVersion
) -> Preflight:
    """The checks of an edit that call nothing: the state is that of the request that
    the canary was cloned from. Raises InvalidArgs."""
    if submission.verdict is Verdict.MODIFY and submission.args is not None:
        _check_edited_args(submission.args, version)
    own = ToolReading.from_json(version.revision.reading)
    return Preflight(reading=own, version=version)


def _check_edited_args(args: Mapping[str, Any], version: RequestVersion) -> None:
    if problems := tools.list_argument_errors(version.revision.known_tool, args):
        raise InvalidArgs(errors=problems)


def _load_active_policy(version: Any) -> PolicyVersion | None:
    if version.active_policy is None:
        return None
    return active.load_policy(version.active_policy, version.active_digest)


def _build_verifier_input(
    submission: VerdictSubmission, version: RequestVersion, judged: RequestVersion
) -> dict[str, Any]:
    """The input of a verifier: facts about the request, never the agent's words.
    `judged` is the version that an edit makes, otherwise the version itself."""
    return {
        "request": version.request_id,
        "version": version.number,
        "seal": version.seal,
        "tool": version.revision.known_tool.name,
        "tier": str(judged.tier),
        "risk": str(judged.risk),
        "verdict": submission.verdict.value,
        "args": dict(judged.revision.args),
        "action_hash": judged.revision.action_hash,
    }
