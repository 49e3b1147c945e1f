"""Schemas of the AuthZEN endpoints: what an enforcement point sends and what
Counterseal answers.

Both specifications oblige a receiver to ignore members that it does not know, so these
bodies are not `Strict`. The types of the known members are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool

from .proposals import THREAD_PATTERN, check_thread_name
from .types import LongText, ShortText, Timestamp

MAX_TOKEN_LENGTH = 4096  # of a binding token, which carries a hash and no arguments
MAX_STATE_LENGTH = 512 * 1024  # of an approval's state, which carries the arguments
Text = Annotated[str, Field(min_length=1, max_length=1024)]


class _Lenient(Schema):
    """Base of the bodies: unknown members are ignored, values are not converted."""

    model_config = ConfigDict(extra="ignore", strict=True)


class AccessSubject(_Lenient):
    """Who wants the effect. `type` is `agent`, `user`, `identity`, `customer` or
    `schedule`."""

    type: Literal["agent", "user", "identity", "customer", "schedule"]
    id: Annotated[ShortText, Field(min_length=1)]
    properties: dict[str, Any] = {}


class AccessResource(_Lenient):
    """A tool (`type` is `tool`, `id` its name), or what a tool named
    `<type>.<action name>` acts upon."""

    type: Text
    id: Text
    properties: dict[str, Any] = {}


class AccessAction(_Lenient):
    """`invoke` or `tools/call` for a tool; otherwise the second part of the tool's
    name. `properties` are its arguments."""

    name: Text
    properties: dict[str, Any] = {}


class ApprovalReference(_Lenient):
    """The `approval` of a completed task, unchanged."""

    id: Annotated[str, Field(min_length=1, max_length=40)]
    state: Annotated[str, Field(max_length=MAX_STATE_LENGTH)] | None = None


class AccessContext(_Lenient):
    """`thread` names the run, `preconditions` are as in a proposal: both are part of
    what people approve. Other members are not."""

    thread: (
        Annotated[str, Field(pattern=THREAD_PATTERN), AfterValidator(check_thread_name)]
        | None
    ) = None
    preconditions: dict[str, Any] | None = None
    business_justification: LongText = ""
    approval: ApprovalReference | None = None


class EvaluationIn(_Lenient):
    """`POST /access/v1/evaluation`."""

    subject: AccessSubject
    resource: AccessResource
    action: AccessAction
    context: AccessContext = AccessContext()


class DenialIn(_Lenient):
    """The denial that the access request answers, echoed from its decision."""

    evaluation_id: Annotated[str, Field(max_length=40)] | None = None
    expires_at: Annotated[str, Field(max_length=40)]
    binding_token: Annotated[str, Field(max_length=MAX_TOKEN_LENGTH)] | None = None


class RequestedAccess(_Lenient):
    """`emergency` puts the request first in its risk band; it changes no authority."""

    emergency: StrictBool = False


class AccessActor(_Lenient):
    """The actor that submits the request: the agent to which the key belongs."""

    id: Text
    act: dict[str, Any] | None = None


class AccessClient(_Lenient):
    actor: AccessActor | None = None


def _refuse_items(_: Any) -> None:
    raise ValueError("is not supported: send one access request for each item")


def _refuse_callback(_: Any) -> None:
    raise ValueError(
        "is not supported: poll task.status_endpoint, or register a webhook endpoint"
    )


class AccessRequestIn(_Lenient):
    """`POST /access/v1/requests`: the members of the denied evaluation again, with the
    denial."""

    subject: AccessSubject
    resource: AccessResource
    action: AccessAction
    context: AccessContext = AccessContext()
    denial: DenialIn | None = None
    requested_access: RequestedAccess = RequestedAccess()
    client: AccessClient = AccessClient()
    items: Annotated[None, BeforeValidator(_refuse_items)] = None
    callback: Annotated[None, BeforeValidator(_refuse_callback)] = None


class EvaluationOut(Schema):
    """A decision. `context` of a denial says what to do next (`next_action`), that of a
    permit carries the obligation to redeem the grant."""

    decision: bool
    context: dict[str, Any]


class TaskProgress(Schema):
    """The first step of the request that still lacks approvals, counted from 1."""

    current_step: int
    total_steps: int
    step_name: str


class TaskOut(Schema):
    """A task handle. `id` is the proposal's id."""

    id: str
    status: Literal["pending", "approved", "denied", "expired", "cancelled"]
    status_endpoint: str
    expires_at: Timestamp | None = None
    progress: TaskProgress | None = None
    display: dict[str, str]
    links: dict[str, str] | None = None


class TaskResponse(Schema):
    """The answer about an access request. `result` goes with `approved`."""

    task: TaskOut
    result: dict[str, Any] | None = None
