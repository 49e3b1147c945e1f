"""Query parameters and response schemas of the request endpoints.

A response has the same values as the page, as far as the calling person may see them
there. An unknown query parameter is refused: a mistyped filter would return everything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import Field

from journal import clock
from journal.errors import InvalidInput, build_field_error

Timestamp = Annotated[
    str,
    Field(description=clock.TIMESTAMP_RULE, json_schema_extra={"format": "date-time"}),
]
CURSOR = "Send it as `cursor` for the next page; null on the last page."
CAN_DECIDE = (
    "Whether an approval by you would be accepted and count now. If not, `why_not` says"
    " why."
)
VERDICTS = (
    "The verdicts that would be accepted from you now. Above your own ceiling you may"
    " still modify, reject and escalate. Escalation is left out if nobody could decide"
    " the escalated request."
)
ATTENTION_CHECK = (
    "Whether the page asks you a question about this request before it takes your"
    " approval. This call asks none: a program that shows the request to a person sends"
    " them to the page instead."
)
CHIP = "A chip replaces each value that the schema marks as sensitive."


class RequestStepOut(Schema):
    role: str
    required: int
    given: int


class EndedParentOut(Schema):
    """The call that the agent named as the parent, and that ended without running."""

    proposal: str
    status: str = Field(
        description="`rejected`, `expired`, `withdrawn`, `superseded` or `blocked`."
    )
    at: str


class RequestLineOut(Schema):
    id: str
    proposal: str
    ended_parent: EndedParentOut | None = Field(
        description="Null without a parent, and while it may still run or has run."
    )
    agent: str
    thread: str
    tool: str
    title: str = Field(description="The effect as one sentence.")
    flags: list[str] = Field(description="Warnings, as on a row of the queue.")
    status: str
    version: int
    action_hash: str
    seal: str
    tier: str
    risk: str
    queue: str
    opened_at: Timestamp
    expires_at: Timestamp
    settled_at: Timestamp | None
    steps: list[RequestStepOut]
    joined: int = Field(
        description="How many later calls proposed the same action while it was open."
    )
    requires_reason: bool
    step_up: bool
    reading: str = Field(
        description="Digest of the business state at the last reading."
    )
    args: dict[str, Any] = Field(description=CHIP)
    rules: list[dict[str, str]]
    can_decide: bool = Field(description=CAN_DECIDE)
    why_not: str
    verdicts: list[str] = Field(description=VERDICTS)


class RequestPage(Schema):
    items: list[RequestLineOut]
    next_cursor: str | None = Field(description=CURSOR)


class TagOut(Schema):
    """A fact that Counterseal computed. `loud` marks a warning."""

    text: str
    loud: bool


class FigureOut(Schema):
    """How large the effect is, and for whom."""

    label: str
    value: str
    note: str


class CellOut(Schema):
    """One value as text. `kind` is its type in words."""

    text: str
    kind: str

    @staticmethod
    def resolve_text(cell: Any) -> str:
        """The exact text; the page shows some values in words."""
        if isinstance(cell, dict):  # ninja validates a finished response against this
            return str(cell["text"])
        return "" if cell.kind == "empty text" else str(cell.exact.text)


class RowOut(Schema):
    """A value with its label. `note` and `warns` are Counterseal's own words."""

    label: str
    path: str
    cell: CellOut
    note: str
    warns: list[str]
    also: str


class ChangeOut(Schema):
    """One field before and after; null where it has no value."""

    kind: str = Field(description="`removed`, `changed` or `added`.")
    label: str
    path: str
    before: CellOut | None
    after: CellOut | None


class UninspectableOut(Schema):
    """An argument that cannot be shown in full, and why."""

    label: str
    path: str
    reason: str


class ReversalOut(Schema):
    """How the effect can be undone, as the tool declares it."""

    word: str
    undo: str
    stays: str
    check: str


class DryRunOut(Schema):
    """The tool's own preview of the effect. `problem` says why there is none."""

    rows: list[RowOut]
    source: str
    at: str
    problem: str


class TokenOut(Schema):
    """One word of a command. `declared` is the reader's own text, not checked."""

    text: str
    means: str
    warns: list[str]
    declared: str


class ProgramOut(Schema):
    """One program of a command; `joined` says when it runs."""

    joined: str
    tokens: list[TokenOut]


class InsideOut(Schema):
    """A text inside a command: a heredoc, a `-c` string, a substitution."""

    title: str
    text: str
    steps: list[ProgramOut]
    problem: str


class LineOut(Schema):
    """One line of a file's diff, with its old and new line numbers."""

    kind: str = Field(description="`same`, `removed`, `added` or `about`.")
    old: int | None
    new: int | None
    text: str


class HunkOut(Schema):
    title: str
    lines: list[LineOut]


class FileOut(Schema):
    path: str
    was: str
    marks: list[str]
    facts: list[RowOut]
    added: int
    removed: int
    hunks: list[HunkOut]


class ViewOut(Schema):
    """One part of a tool's own view: rows under a heading, a command as steps, or files
    line by line."""

    title: str
    note: str = ""
    problem: str = ""
    rows: list[RowOut] = Field(default_factory=list)
    steps: list[ProgramOut] = Field(default_factory=list)
    inside: list[InsideOut] = Field(default_factory=list)
    files: list[FileOut] = Field(default_factory=list)


class BeforeOut(Schema):
    """The state before the effect, from the tool's reader and never from the agent.
    Fields in `diff` are not repeated here."""

    known: bool
    problem: str = Field(description="Why the state is not known.")
    source: str
    at: str
    top: list[RowOut] = Field(description="The fields that matter most.")
    unchanged: list[RowOut]
    now: list[RowOut] = Field(description="Fields that no argument concerns.")


class ClaimOut(Schema):
    heading: str
    text: str


class EvidenceTableOut(Schema):
    """The first cells of a table, redacted."""

    columns: list[str]
    rows: list[list[str]]


class ShownFileOut(Schema):
    """A file of the evidence. `why_not` says why nobody is shown it unasked; `notes`
    say how much of it is shown. Its pictures are on the request's page."""

    name: str
    media_type: str
    size: int
    sha256: str
    sensitive: bool
    why_not: str
    notes: list[str]
    table: EvidenceTableOut | None


class EvidenceOut(Schema):
    """One item of evidence, redacted. `withheld` says why it has no text."""

    kind: str
    source: str
    at: str
    text: str
    withheld: str
    size: int
    redactions: int
    digest: str
    note: str
    file: ShownFileOut | None


class MovedOut(Schema):
    """One field that changed since the previous version."""

    label: str
    before: str | None
    after: str | None


class SinceOut(Schema):
    """What changed since the previous version. `words` says whether the agent's text
    changed too."""

    version: int
    cause: str
    diff: list[MovedOut]
    words: bool


class RequestMessageOut(Schema):
    """What a person or the agent said about the request. It decides nothing."""

    sender: str = Field(
        alias="from", description="A person's role, or `agent`: then not checked."
    )
    kind: str = Field(description="`question`, `answer` or `guidance`.")
    text: str
    at: Timestamp
    round: int = Field(description="An answer has the round of its question.")


class EditPreviewOut(Schema):
    """What an edit would need. Nothing is decided, and no verifier is asked."""

    tier: str
    risk: str
    steps: list[dict[str, Any]]
    rules: list[str] = Field(description="The rules that apply only to the edit.")
    counts: bool = Field(
        description="Whether the edit would also be your approval of what it makes."
    )
    second_person: list[str] = Field(
        description="Why the edit needs another person, such as `it raises the amount`."
    )
    exceeds: bool = Field(description="Whether it is more than you may decide.")
    requires_reason: bool
    step_up: bool
    written_answer: str = Field(
        description="What the request's page asks to be answered in writing, or empty."
    )


EDIT = (
    "`second_person`: an edit that raises an amount, or changes the currency, a key or"
    " whom the effect reaches, is decided by another person than its editor. `alone`:"
    " the policy does not ask for one."
)


class RequestDetailOut(RequestLineOut):
    tags: list[TagOut]
    size: list[FigureOut]
    before: BeforeOut
    diff: list[ChangeOut]
    views: list[ViewOut]
    other: list[RowOut] = Field(description="Arguments that do not change a field.")
    uninspectable: list[UninspectableOut]
    dry_run: DryRunOut | None
    reversal: ReversalOut
    rationale: str = Field(description="The agent's words, not checked, redacted.")
    claims: list[ClaimOut] = Field(description="The agent's other statements.")
    said_at: Timestamp
    written_for: str = Field(description="The version it was written for, if another.")
    evidence: list[EvidenceOut] = Field(description="From outside, not checked.")
    since: SinceOut | None
    policy: int
    edit: str = Field(description=EDIT)
    barred_by_claims: int = Field(
        description="How many people of the queue may not decide by the agent's claims."
    )
    attention_check: bool = Field(description=ATTENTION_CHECK)
    returned_at: Timestamp | None = Field(
        description="Since when it is with its agent for revision; it can be decided."
    )
    messages: list[RequestMessageOut]


BODY = "body"  # argument name of the JSON body in every endpoint

Endpoint = Callable[..., HttpResponse]


def reject_unknown_parameters(call: Endpoint) -> Endpoint:
    """Wrap an endpoint so that it raises Invalid for an unknown query parameter."""

    @wraps(call)
    def checked(request: HttpRequest, **values: Any) -> HttpResponse:
        path = request.resolver_match.kwargs if request.resolver_match else {}
        known = [name for name in values if name not in path and name != BODY]
        unknown = sorted(request.GET.keys() - set(known))
        if unknown:
            takes = f"allowed are {', '.join(known)}" if known else "it takes none"
            message = f"not a query parameter of this call; {takes}"
            raise InvalidInput(
                errors=[build_field_error(name[:64], message) for name in unknown[:20]]
            )
        return call(request, **values)

    return checked
