"""The agent for which a private gate is ready: `counterseal up` tells the programs of
this machine its key, and it may propose calls of every tool."""

from __future__ import annotations

import getpass
import re

from django.conf import settings

from journal import bearer_tokens
from policies.documents import EVERY_TOOL
from policies.models import Person

from . import keys, registry
from .models import Agent, AgentKey
from .registry import NewAgent

LONGEST_NAME = 40


def find_user_name() -> str:
    """The user of this machine who runs this process, in letters that every name here
    may have."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in a container
        name = ""
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:LONGEST_NAME] or "me"


def find_ready_agent() -> Agent | None:
    """The agent whose key this installation keeps, while the key is good."""
    prefix, _ = bearer_tokens.parse_token(keys.MARK, settings.COUNTERSEAL.agent_key)
    known = AgentKey.objects.select_related("agent").filter(prefix=prefix)
    row = known.filter(revoked_at__isnull=True).first() if prefix else None
    return row.agent if row else None


def ensure_ready_agent(*, owner: Person, by: Person) -> None:
    """Register the agent where its key is new. A key that people revoked stays so.
    Raises NotPermitted as `registry.register_agent`."""
    text = settings.COUNTERSEAL.agent_key
    prefix, _ = bearer_tokens.parse_token(keys.MARK, text)
    if not text or AgentKey.objects.filter(prefix=prefix).exists():
        return
    name = find_user_name()
    unfinished = Agent.objects.filter(owner=owner, keys__isnull=True)
    agent = unfinished.filter(slug=name).first()
    if agent is None:
        taken = Agent.objects.filter(slug=name).exists()
        agent = registry.register_agent(
            new=NewAgent(
                slug=f"{name}-{prefix}" if taken else name,
                name=name,
                owner=owner,
                tools=[EVERY_TOOL],
            ),
            by=by,
        )
    keys.issue_key(agent=agent, by=by, text=text)
