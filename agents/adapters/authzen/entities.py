"""Subject, resource, action and context of AuthZEN, and the action that they mean.

A resource of type `tool` is the tool itself, and the properties of the action are its
arguments. Any other resource is what a tool named `<type>.<action name>` acts upon; its
arguments are the resource's id as `id` and the properties of resource and action. Every
member becomes part of the action, so people see all that they approve.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from agents.models import Agent
from agents.schemas.authzen import AccessRequestIn, EvaluationIn
from agents.schemas.proposals import CheckpointIn, OnBehalfOf, ProposalIn
from journal import canonical
from journal.errors import DomainError, InvalidInput, build_field_error
from policies.documents import TOOL_NAME

TOOL_TYPE = "tool"
TOOL_ACTIONS = ("invoke", "tools/call")
# Members of `context` that are part of the action. The others are not compared.
CONTEXT_MEMBERS = ("preconditions", "thread")
_KINDS = {"identity": "user"}  # subject types that `on_behalf_of` calls otherwise
JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AccessTuple:
    """What is evaluated: the members of a body that an approval is bound to."""

    subject: JsonObject
    resource: JsonObject
    action: JsonObject
    context: JsonObject

    def build_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "resource": self.resource,
            "action": self.action,
            "context": self.context,
        }

    def compute_hash(self) -> str:
        """The profile's `binding_hash` (its section "Binding Token Integrity")."""
        digest = hashlib.sha256(canonical.encode(self.build_json())).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The tool that a tuple means, and its arguments."""

    tool: str
    args: JsonObject


def build_access_tuple(body: EvaluationIn | AccessRequestIn) -> AccessTuple:
    """Build the tuple of a body. The actor is left out of the subject, as in the
    profile: the key says which agent it is."""
    subject = body.subject.model_dump(exclude_unset=True)
    if "act" in subject.get("properties", {}):
        properties = {k: v for k, v in subject["properties"].items() if k != "act"}
        subject = {**subject, "properties": properties}
        if not properties:
            del subject["properties"]
    context = body.context.model_dump(exclude_unset=True, exclude_none=True)
    return AccessTuple(
        subject=subject,
        resource=body.resource.model_dump(exclude_unset=True),
        action=body.action.model_dump(exclude_unset=True),
        context={k: context[k] for k in CONTEXT_MEMBERS if k in context},
    )


def find_tool_call(access: AccessTuple) -> ToolCall:
    """The tool and the arguments that a tuple means. Raises InvalidInput."""
    resource, action = access.resource, access.action
    kind, name = resource["type"], action["name"]
    held, given = resource.get("properties", {}), action.get("properties", {})
    if kind == TOOL_TYPE:
        if name not in TOOL_ACTIONS:
            raise _refuse("action.name", f"must be {' or '.join(TOOL_ACTIONS)}")
        if held:
            rule = "must be empty: a tool's arguments are action.properties"
            raise _refuse("resource.properties", rule)
        return ToolCall(_check_tool_name(resource["id"], "resource.id"), given)
    tool = _check_tool_name(f"{kind}.{name}", "resource.type")
    return ToolCall(tool, _merge_args({"id": resource["id"]}, held, given))


def _check_tool_name(name: str, path: str) -> str:
    if not re.fullmatch(TOOL_NAME, name):
        rule = (
            "must name a tool: letters, digits, dots, dashes and _, beginning with a "
            "letter, at most 64 characters"
        )
        raise _refuse(path, rule)
    return name


def _merge_args(named: JsonObject, held: JsonObject, given: JsonObject) -> JsonObject:
    for path, first, second in (
        ("resource.properties", named, held),
        ("action.properties", {**named, **held}, given),
    ):
        for twice in sorted(first.keys() & second.keys()):
            raise _refuse(f"{path}.{twice}", "is given twice: rename one of them")
    return {**named, **held, **given}


def replace_action(
    access: AccessTuple, args: JsonObject, preconditions: JsonObject
) -> AccessTuple:
    """The tuple that means the same tool with other arguments and preconditions, such
    as those that a reviewer changed."""
    context = _replace_member(access.context, "preconditions", preconditions)
    if access.resource["type"] == TOOL_TYPE:
        action = _replace_member(access.action, "properties", args)
        return replace(access, action=action, context=context)
    given = access.action.get("properties", {})
    action_args = {k: v for k, v in args.items() if k in given}
    resource_args = {k: v for k, v in args.items() if k not in given and k != "id"}
    resource = _replace_member(access.resource, "properties", resource_args)
    return replace(
        access,
        resource={**resource, "id": args.get("id")},
        action=_replace_member(access.action, "properties", action_args),
        context=context,
    )


def _replace_member(entity: JsonObject, name: str, value: JsonObject) -> JsonObject:
    """An empty object stays left out where it was left out."""
    if not value and name not in entity:
        return entity
    return {**entity, name: dict(value)}


def check_actor(agent: Agent, body: EvaluationIn | AccessRequestIn) -> None:
    """Raise InvalidInput for an actor that the key does not prove: another agent, or a
    chain of several actors."""
    act = body.subject.properties.get("act")
    if act is not None:
        path = "subject.properties.act"
        sub = act.get("sub") if isinstance(act, dict) else None
        nested = act.get("act") if isinstance(act, dict) else None
        _check_own_name(agent, sub, f"{path}.sub")
        _check_no_chain(nested, f"{path}.act")
    actor = body.client.actor if isinstance(body, AccessRequestIn) else None
    if actor is not None:
        _check_own_name(agent, actor.id, "client.actor.id")
        _check_no_chain(actor.act, "client.actor.act")


def _check_own_name(agent: Agent, name: Any, path: str) -> None:
    if name != agent.slug:
        raise _refuse(path, f"must be {agent.slug}, the agent of this key")


def _check_no_chain(nested: Any, path: str) -> None:
    if nested is not None:
        rule = "cannot be verified: a key proves one actor; leave the chain out"
        raise _refuse(path, rule)


def build_proposal(
    agent: Agent,
    access: AccessTuple,
    evaluation_id: str,
    *,
    rationale: str = "",
    urgent: bool = False,
    checkpoint: CheckpointIn | None = None,
) -> ProposalIn:
    """Build the body of the proposal that a tuple means. Without `context.thread` the
    run is the evaluation's own. Raises InvalidInput."""
    call = find_tool_call(access)
    return ProposalIn(
        thread=access.context.get("thread", evaluation_id),
        tool=call.tool,
        args=dict(call.args),
        preconditions=dict(access.context.get("preconditions", {})),
        rationale=rationale,
        on_behalf_of=_build_on_behalf_of(agent, access.subject),
        priority="critical" if urgent else "normal",
        checkpoint=checkpoint,
    )


def _build_on_behalf_of(agent: Agent, subject: JsonObject) -> OnBehalfOf | None:
    """The subject as the party for whom the agent acts, with its properties: they are
    signed with the approval, so people read them."""
    kind, name = subject["type"], subject["id"]
    properties = subject.get("properties", {})
    if (kind, name) == ("agent", agent.slug) and not properties:
        return None
    party = {"kind": _KINDS.get(kind, kind), "id": name, "properties": properties}
    try:
        return OnBehalfOf.model_validate(party)
    except ValidationError as error:
        raise _refuse("subject.properties", error.errors()[0]["msg"]) from None


@contextmanager
def rename_paths(access: AccessTuple) -> Iterator[None]:
    """Let a refusal of the proposal name the members of the AuthZEN body."""
    try:
        yield
    except DomainError as error:
        error.errors = [
            {**fault, "path": _rename_path(access, fault["path"])}
            for fault in error.errors
        ]
        raise


def _rename_path(access: AccessTuple, path: str) -> str:
    for prefix, rename in _RENAMED.items():
        if path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")):
            return rename(access, path[len(prefix) :])
    return path


def _rename_args(access: AccessTuple, rest: str) -> str:
    held = access.resource.get("properties", {})
    name = re.split(r"[.\[]", rest.removeprefix("."))[0]
    if access.resource["type"] != TOOL_TYPE and name == "id":
        return f"resource{rest}"
    return f"{'resource' if name in held else 'action'}.properties{rest}"


_RENAMED: Mapping[str, Callable[[AccessTuple, str], str]] = {
    "args": _rename_args,
    "preconditions": lambda _, rest: f"context.preconditions{rest}",
    "thread": lambda _, rest: f"context.thread{rest}",
    "on_behalf_of": lambda _, rest: f"subject{rest}",
    "rationale": lambda _, rest: f"context.business_justification{rest}",
    "tool": lambda _, rest: f"resource{rest}",
}


def _refuse(path: str, rule: str) -> InvalidInput:
    return InvalidInput(errors=[build_field_error(path, rule)])
