"""What a policy change since the proposal means for an open request: whether an
approval would still be enough."""

from __future__ import annotations

from dataclasses import dataclass

from policies import active, tools
from policies.choices import Tier
from policies.evaluation import Evaluation
from policies.models import PolicyVersion
from reviews.executions import rechecks
from reviews.governance import ruling

from .load import LoadedRequest


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """`before` and `after` are policy version numbers; `text` says what follows."""

    before: int
    after: int
    text: str
    refuses: bool  # the check before execution would refuse an approval of this


def find_policy_change(loaded: LoadedRequest) -> PolicyChange | None:
    """None while the policy of the proposal is still active, and once the request is
    decided."""
    policy = active.find_active_policy()
    sealed = loaded.sealed
    if policy is None or policy.pk == sealed.policy_id or not loaded.waiting:
        return None
    text, refuses = _describe_change(loaded, policy)
    return PolicyChange(sealed.policy.number, policy.number, text, refuses)


_TOOL_GONE = "The tool is not in the policy any more: this cannot run."
_ARGUMENTS_INVALID = "The tool does not take these arguments any more: this cannot run."
_NEEDS_MORE_READINGS = (
    "Its rules read more than was read then: it is asked before it runs."
)
_ASKS_LESS = "It asks for less now. This request still needs what is said here."
_ASKS_SAME = "It asks for the same. Nothing changes for this request."


def _describe_change(loaded: LoadedRequest, policy: PolicyVersion) -> tuple[str, bool]:
    revision, tier = loaded.sealed.revision, Tier(loaded.request.tier)
    current = tools.find_current_tool(revision.known_tool.name, policy)
    if current is None:
        return _TOOL_GONE, True
    if tools.list_argument_errors(current, revision.args):
        return _ARGUMENTS_INVALID, True
    if ruling.is_reading_incomplete(revision, policy):
        return _NEEDS_MORE_READINGS, False
    asked = ruling.reevaluate_revision(revision, policy, now=loaded.now)
    was = Evaluation.from_json(revision.evaluation)
    if asked.tier.rank > tier.rank or _needs_more_authority(asked, was):
        return (
            f"It asks for more now: {rechecks.describe_tightening(revision, asked)}",
            True,
        )
    return (_ASKS_LESS if asked.tier.rank < tier.rank else _ASKS_SAME), False


def _needs_more_authority(asked: Evaluation, was: Evaluation) -> bool:
    """Whether the approvals asked for here may not be enough under the new policy."""
    people = sum(step.required for step in asked.steps)
    before = sum(step.required for step in was.steps)
    return people > before or (asked.step_up and not was.step_up)
