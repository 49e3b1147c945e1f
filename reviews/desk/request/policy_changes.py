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

from .load import Loaded


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """`before` and `after` are policy version numbers; `text` says what follows."""

    before: int
    after: int
    text: str
    refuses: bool  # the check before execution would refuse an approval of this


def of(loaded: Loaded) -> PolicyChange | None:
    """None while the policy of the proposal is still active, and once the request is
    decided."""
    policy = active.active_or_none()
    sealed = loaded.sealed
    if policy is None or policy.pk == sealed.policy_id or not loaded.waiting:
        return None
    text, refuses = _meaning(loaded, policy)
    return PolicyChange(sealed.policy.number, policy.number, text, refuses)


_GONE = "The tool is not in the policy any more: this cannot run."
_OTHER = "The tool does not take these arguments any more: this cannot run."
_UNREAD = "Its rules read more than was read then: it is asked before it runs."
_LESS = "It asks for less now. This request still needs what is said here."
_SAME = "It asks for the same. Nothing changes for this request."


def _meaning(loaded: Loaded, policy: PolicyVersion) -> tuple[str, bool]:
    revision, tier = loaded.sealed.revision, Tier(loaded.request.tier)
    current = tools.current(revision.known_tool.name, policy)
    if current is None:
        return _GONE, True
    if tools.validate(current, revision.args):
        return _OTHER, True
    if ruling.lacking(revision, policy):
        return _UNREAD, False
    asked = ruling.reevaluate(revision, policy, now=loaded.now)
    was = Evaluation.from_json(revision.evaluation)
    if asked.tier.rank > tier.rank or _asks_more(asked, was):
        return f"It asks for more now: {rechecks.cause_of(revision, asked)}", True
    return (_LESS if asked.tier.rank < tier.rank else _SAME), False


def _asks_more(asked: Evaluation, was: Evaluation) -> bool:
    """Whether the approvals asked for here may not be enough under the new policy."""
    people = sum(step.required for step in asked.steps)
    before = sum(step.required for step in was.steps)
    return people > before or (asked.step_up and not was.step_up)
