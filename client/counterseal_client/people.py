"""The people's API: what waits for a person, one request as its page shows it, and the
person's verdict. It takes a personal token (`/me/tokens/` of the gate), never an
agent's key.

The flows run on any `Gate`, which only sends them:

    people = PeopleOperations(Connection(url, token))
    request = gate.run(people.get_request("r-7k2m"))
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from .calls import Connection, Flow, quote_path
from .models import Answer, Object, Rule, StepCount, Text, parse_answer


class RequestLine(Answer):
    """A request as a line of the list. `verdicts` are those that the gate would accept
    from this person now; `why_not` says why an approval is not among them."""

    id: str
    proposal: str = ""
    agent: str = ""
    thread: str = ""
    tool: str = ""
    title: str
    flags: tuple[str, ...] = ()
    status: str = "pending"
    version: int
    action_hash: str
    tier: str = ""
    risk: str = ""
    queue: str = ""
    expires_at: AwareDatetime | None = None
    steps: tuple[StepCount, ...] = ()
    joined: int = 0
    requires_reason: bool = False
    step_up: bool = False
    reading: Text = ""
    args: Annotated[Object, Field(default_factory=dict)]
    rules: tuple[Rule, ...] = ()
    can_decide: bool = False
    why_not: Text = ""
    verdicts: tuple[str, ...] = ()


class RequestPage(Answer):
    """One page of requests. `next_cursor` is empty on the last one."""

    items: tuple[RequestLine, ...]
    next_cursor: Text = ""


class ComputedFact(Answer):
    """A fact that Counterseal computed. `loud` marks a warning."""

    text: str
    loud: bool = False


class Figure(Answer):
    """How large the effect is, and for whom."""

    label: str
    value: str
    note: str = ""


class Cell(Answer):
    """One value as text; `kind` is its type in words."""

    text: str
    kind: str = ""


class Row(Answer):
    """A value with its label. `note`, `warns` and `also` are the gate's own words."""

    label: str
    cell: Cell
    note: str = ""
    warns: tuple[str, ...] = ()
    also: str = ""


class Change(Answer):
    """One field before and after; None where it has no value."""

    kind: str = "changed"
    label: str
    before: Cell | None = None
    after: Cell | None = None


class CurrentState(Answer):
    """The state before the effect, read by Counterseal and never from the agent."""

    known: bool = False
    problem: str = ""
    source: str = ""
    at: str = ""
    top: tuple[Row, ...] = ()
    unchanged: tuple[Row, ...] = ()
    now: tuple[Row, ...] = ()


class CommandWord(Answer):
    """One word of a command, and what it means."""

    text: str
    means: str = ""
    warns: tuple[str, ...] = ()


class CommandStep(Answer):
    """One program of a command; `joined` says when it runs."""

    joined: str = ""
    tokens: tuple[CommandWord, ...] = ()


class InnerText(Answer):
    """A text inside a command, such as a heredoc."""

    title: str
    text: str = ""
    steps: tuple[CommandStep, ...] = ()
    problem: str = ""


class FileLine(Answer):
    """One line of a file's difference: same, removed, added or about."""

    kind: str
    text: str


class Hunk(Answer):
    """Lines of a file that belong together."""

    title: str = ""
    lines: tuple[FileLine, ...] = ()


class FileChange(Answer):
    """A file that the effect changes."""

    path: str
    was: str = ""
    marks: tuple[str, ...] = ()
    facts: tuple[Row, ...] = ()
    hunks: tuple[Hunk, ...] = ()


class EffectView(Answer):
    """A tool's own view of its effect: rows, a command as steps, or files."""

    title: str = ""
    note: str = ""
    problem: str = ""
    rows: tuple[Row, ...] = ()
    steps: tuple[CommandStep, ...] = ()
    inside: tuple[InnerText, ...] = ()
    files: tuple[FileChange, ...] = ()


class UninspectableValue(Answer):
    """An argument that cannot be shown in full, and why."""

    label: str
    reason: str = ""


class DryRun(Answer):
    """The tool's own preview of the effect; `problem` says why there is none."""

    rows: tuple[Row, ...] = ()
    source: str = ""
    at: str = ""
    problem: str = ""


class Reversal(Answer):
    """How the effect can be undone, as the tool declares it."""

    word: str = ""
    undo: str = ""
    stays: str = ""
    check: str = ""


class Claim(Answer):
    """A statement of the agent, not checked."""

    heading: str
    text: str


class EvidenceTable(Answer):
    """The first cells of a table, redacted."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class EvidenceFile(Answer):
    """A file of the evidence. `why_not` says why it is not shown, `notes` how much of
    it is. Its pictures are on the request's page."""

    name: str
    media_type: str = ""
    size: int = 0
    sha256: str = ""
    why_not: str = ""
    notes: tuple[str, ...] = ()
    table: EvidenceTable | None = None


class Evidence(Answer):
    """One item of evidence from outside. `withheld` says why it has no text."""

    kind: str = ""
    source: str = ""
    at: str = ""
    text: str = ""
    withheld: str = ""
    note: str = ""
    file: EvidenceFile | None = None


class FieldMove(Answer):
    """One field that changed since the previous version."""

    label: str
    before: str | None = None
    after: str | None = None


class VersionChange(Answer):
    """What changed since the previous version."""

    version: int
    cause: str = ""
    diff: tuple[FieldMove, ...] = ()
    words: bool = False


class RequestDetail(RequestLine):
    """A request with everything that its page shows this person.

    `attention_check`: the page asks this person a question before it takes an approval.
    """

    tags: tuple[ComputedFact, ...] = ()
    size: tuple[Figure, ...] = ()
    before: CurrentState = CurrentState()
    diff: tuple[Change, ...] = ()
    views: tuple[EffectView, ...] = ()
    other: tuple[Row, ...] = ()
    uninspectable: tuple[UninspectableValue, ...] = ()
    dry_run: DryRun | None = None
    reversal: Reversal = Reversal()
    rationale: str = ""
    claims: tuple[Claim, ...] = ()
    written_for: str = ""
    evidence: tuple[Evidence, ...] = ()
    since: VersionChange | None = None
    policy: int | None = None
    attention_check: bool = False


class PeopleOperations:
    """The operations of one person at one gate, as flows (see `calls`).

    Each raises ApiError, Unreachable and InvalidAnswer as the agent's operations do.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def build_page_url(self, request: str) -> str:
        """The address of the request's page."""
        return f"{self.connection.url.rstrip('/')}{quote_path('requests', request)}/"

    def list_rows(self) -> Flow[list[Object]]:
        """All pending requests that this person may see, the earliest deadline first,
        as the objects of the API."""
        rows: list[Object] = []
        cursor = ""
        while True:
            query = {"cursor": cursor}
            call = self.connection.build_call("GET", "/requests", query=query)
            answer = yield from self.connection.send_call(call)
            page = parse_answer(RequestPage, answer)
            rows += answer["items"]
            cursor = page.next_cursor
            if not cursor:
                return rows

    def list_requests(self) -> Flow[tuple[RequestLine, ...]]:
        """The same, validated."""
        rows = yield from self.list_rows()
        return tuple(parse_answer(RequestLine, row) for row in rows)

    def get_request(self, request: str) -> Flow[RequestDetail]:
        """One request."""
        path = quote_path("requests", request)
        call = self.connection.build_call("GET", path)
        return parse_answer(RequestDetail, (yield from self.connection.send_call(call)))

    def decide(self, request: str, verdict: dict[str, Any]) -> Flow[RequestDetail]:
        """Give a verdict: `version`, `action_hash` and `reading` of what the person was
        shown, `verdict`, `reason_code` and `reason`. Returns the request after it."""
        path = quote_path("requests", request, "decide")
        call = self.connection.build_call("POST", path, verdict)
        return parse_answer(RequestDetail, (yield from self.connection.send_call(call)))
