"""What stands for a grant outside: a signed token, made whenever it is asked for, and
bound to everything that its row says. The row is the authority.

Before it is redeemed a token is good for redeeming, and for nothing else: only what is
given out by a claim, after every check, names the fence that a tool's service asks for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from django.conf import settings

from journal.errors import GrantExpired, NotFound
from policies import tools
from reviews import grant_keys
from reviews.models import Grant


def claims(grant: Grant, *, fence: int = 0) -> dict[str, Any]:
    """What a token says: which effect, upon what, for whom, and until when; with the
    fence of the claim it was given out by. Times are whole seconds, never later than
    the row's."""
    revision, execution = grant.revision, grant.execution
    tool = revision.known_tool
    issued = int(grant.issued_at.timestamp())
    found = {
        "iss": settings.HOLDPOINT.base_url,
        "aud": tools.definition(tool).destination,
        "jti": grant.pk,
        "iat": issued,
        "nbf": issued,
        "exp": int(grant.expires_at.timestamp()),
        "proposal": grant.proposal_id,
        "revision": revision.number,
        "action_hash": grant.action_hash,
        "tool": tool.name,
        "tool_version": tool.version,
        "policy_version": revision.policy_number,
        "agent": grant.proposal.agent,
        "thread": grant.proposal.thread,
        # What the tool's own reader said the effect is upon.
        "target": revision.reading.get("keys") or {},
        "idempotency_key": execution.idempotency_key,
        "execution": execution.pk,
    }
    return {**found, "fence": fence} if fence else found


def mint(grant: Grant, *, fence: int = 0) -> str:
    """The token of a grant, by the key that signs now."""
    return grant_keys.sign(claims(grant, fence=fence))


def token(grant_id: str) -> str:
    """What the agent redeems a stored grant with. Raises NotFound."""
    return mint(_load(grant_id))


def find(value: str, *, agent: str) -> Grant:
    """The grant that this agent redeems with a token.

    Raises NotFound, and GrantExpired for a token of a window that was moved since.
    """
    grant = _signed(value) if value.count(".") == 2 else _tagged(value)
    if grant.proposal.agent != agent:
        raise NotFound
    return grant


def _signed(value: str) -> Grant:
    try:
        said = grant_keys.read(value)
    except grant_keys.Forged:
        raise NotFound from None
    grant = _load(said.get("jti"))
    known = claims(grant)
    differ = {name for name in {*said, *known} if said.get(name) != known.get(name)}
    if differ == {"exp"}:
        raise GrantExpired("Its window was moved. Ask for the proposal's new token.")
    if differ:  # guard: token-row
        raise NotFound
    return grant


def _load(grant_id: Any, **more: str) -> Grant:
    rows = Grant.objects.select_related("proposal", "revision__tool", "execution")
    grant = rows.filter(pk=grant_id, **more).first()
    if grant is None:
        raise NotFound
    return grant


# The previous release redeems `<grant id>.<MAC>` and finds a grant by the hash of it.
# While one release takes over from the other, each redeems what that one gave out.
def tag(grant_id: str) -> str:
    mac = hmac.new(settings.HOLDPOINT.grant_key, grant_id.encode(), hashlib.sha256)
    return f"{grant_id}.{base64.urlsafe_b64encode(mac.digest()).decode().rstrip('=')}"


def token_hash(value: str) -> str:
    return "sha256:" + hashlib.sha256(value.encode()).hexdigest()


def _tagged(value: str) -> Grant:
    return _load(value.partition(".")[0], token_hash=token_hash(value))
