"""The policy that a gate begins with.

A policy takes two administrators: one writes it, another activates it. In a gate where
nobody has an account yet, the gate itself does both, once. Nobody is its author.
"""

from __future__ import annotations

from journal import clock
from journal.errors import Conflict
from journal.operations import operation

from . import callables, locks, tools, versions
from .active import compute_digest, to_plain_data
from .documents import parse_document
from .first_administrator import SETUP
from .models import Person, PolicyVersion


def is_untouched() -> bool:
    """Whether this gate has neither a policy nor a person."""
    return not (PolicyVersion.objects.exists() or Person.objects.exists())


@operation(
    locks="policy versions (advisory)",
    writes="PolicyVersion, Queue, Tool",
    logs="policy.saved, policy.activated",
)
def activate_first_policy(text: str) -> PolicyVersion:
    """Save this document and activate it. Nobody needs to be admitted to its queues
    yet. Raises Conflict in a gate that has a policy or a person, and InvalidPolicy."""
    document = parse_document(text, further=callables.list_problems)
    locks.lock_policy_versions()
    if not is_untouched():  # guard: first-policy
        raise Conflict("This gate has people or a policy already. Nothing was changed.")
    data, now = to_plain_data(document), clock.now()
    version = PolicyVersion(number=1, document=data, digest=compute_digest(data))
    members, machine = {"digest": version.digest}, versions.machine
    version = machine.create(version, "save", actor=SETUP, now=now, data=members)
    tools.sync_tools(document)
    changes = {"activated_at": now}
    return machine.apply(
        version, "activate", actor=SETUP, now=now, changes=changes, data=members
    )
