"""Where the gate performs, reads, verifies, looks up and undoes an effect, as a policy
declares it for a tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from .names import CALLABLE, SOURCE_PATTERN, WEB_ADDRESS, DocumentPart, Name, ToolName


class CallableTarget(DocumentPart):
    """A Python function that runs in the gate's own process, by dotted path."""

    kind: Literal["callable"]
    path: str = Field(pattern=CALLABLE)


class CallableVerifier(DocumentPart):
    """A Python function that may refuse, by dotted path. `options` are its keyword
    arguments."""

    kind: Literal["callable"]
    path: str = Field(pattern=CALLABLE)
    options: dict[str, Any] = {}


class WebhookTarget(DocumentPart):
    """A signed HTTP call to a service."""

    kind: Literal["webhook"]
    url: str = Field(pattern=WEB_ADDRESS, max_length=500)


class AgentTarget(DocumentPart):
    """The agent redeems the grant and performs the effect itself."""

    kind: Literal["agent"]


class LookUp(DocumentPart):
    """Where the gate looks up what became of an effect, by its own reference: a url or
    the path of a Python function."""

    url: str | None = Field(default=None, pattern=WEB_ADDRESS, max_length=500)
    path: str | None = Field(default=None, pattern=CALLABLE)

    @model_validator(mode="after")
    def _one_place(self) -> LookUp:
        if bool(self.url) == bool(self.path):
            raise ValueError("set either url or path")
        return self


class ToolReader(DocumentPart):
    """A tool of tier `auto` that only reads, called through its own executor.

    `args` are as in a compensation, but only from `$args`. Its result is the
    before-state. Each declared key, fact and precondition is the member of the result
    with the same name, or the one that `take` names: `customer: $result.owner.id`.
    """

    kind: Literal["tool"]
    tool: ToolName
    args: dict[str, Any] = {}
    take: dict[Name, str] = {}

    @cached_property
    def sources(self) -> dict[str, tuple[str, str]]:
        """Argument -> ("args" or "result", path), as `parse_sources`."""
        return parse_sources(self.args)


def parse_sources(args: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Argument -> ("args" or "result", path), for the arguments whose value refers to
    another one, such as `$args.order`. Literal values are left out."""
    matches = {
        name: SOURCE_PATTERN.fullmatch(value)
        for name, value in args.items()
        if isinstance(value, str)
    }
    return {name: (at[1], at[2]) for name, at in matches.items() if at}


def _add_tool_kind(value: Any) -> Any:
    """`reader: {tool: get_file}` needs no kind."""
    if isinstance(value, Mapping) and "tool" in value and "kind" not in value:
        return {**value, "kind": "tool"}
    return value


Executor = Annotated[
    CallableTarget | WebhookTarget | AgentTarget, Field(discriminator="kind")
]
Rehearsal = Annotated[CallableTarget | WebhookTarget, Field(discriminator="kind")]
Reader = Annotated[
    Annotated[CallableTarget | WebhookTarget | ToolReader, Field(discriminator="kind")],
    BeforeValidator(_add_tool_kind),
]
Verifier = Annotated[CallableVerifier | WebhookTarget, Field(discriminator="kind")]


class Retry(DocumentPart):
    """How often the gate tries again after a failure that certainly changed nothing,
    and how long it waits: `base_seconds`, doubled after each attempt, at most
    `most_seconds`."""

    attempts: int = Field(default=5, ge=1, le=10, strict=True)
    base_seconds: int = Field(default=2, ge=1, le=3600, strict=True)
    most_seconds: int = Field(default=300, ge=1, le=86400, strict=True)

    def after(self, attempts: int) -> timedelta:
        """How long to wait after this many attempts."""
        doubled = self.base_seconds * 2 ** min(max(attempts - 1, 0), 20)
        return timedelta(seconds=min(doubled, self.most_seconds))


class Compensation(DocumentPart):
    """The tool that undoes an effect, and the sources of its arguments: `$args.order`
    is from the effect's own arguments, `$result.id` from its result, and any other
    value is literal."""

    tool: ToolName
    args: dict[str, Any] = {}

    @cached_property
    def sources(self) -> dict[str, tuple[str, str]]:
        """Argument -> ("args" or "result", path), as `parse_sources`."""
        return parse_sources(self.args)
