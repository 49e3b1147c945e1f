"""The parts of a submitted verdict: what was decided, on which bytes, from which page,
and proof of who decided.

A page carries a signed token that says what it showed. A copy of the page is kept with
the decision as page evidence, to be shown again exactly.

A step-up proves the person's identity again for one verdict (docs/invariants.md I16).
The proof is bound to person, request, version, bytes and verdict, is valid for five
minutes and good for one decision. Between a refusal and the next try it is kept in the
server-side session. Anything that does not match exactly is no proof.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.contrib.sessions.backends.base import SessionBase
from django.core import signing
from django.http import HttpRequest

from journal import log
from journal.errors import DigestMissing, DomainError
from policies import step_up
from policies.models import Person
from policies.people import build_actor
from policies.step_up import TypedProof
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.grants.grants import NO_CONDITIONS, GrantConditions
from reviews.models import ApprovalRequest, Decision, RequestVersion, Snapshot

PAGE_SALT = "reviews.seen"


@dataclass(frozen=True, slots=True)
class PageToken:
    """The signed token of a page: it says what the page showed, and when. `since` is
    the version that the person had read before this one, or 0. `warned` names the
    warnings that the person has already seen and may now override."""

    person: str
    request: str
    version: int
    action_hash: str
    digest: str
    rendered_at: datetime
    reading: int | None = None
    since: int = 0
    warned: tuple[str, ...] = ()

    def token(self) -> str:
        """The signed text for a hidden field; bound to person, version and content."""
        plain = {**asdict(self), "rendered_at": self.rendered_at.isoformat()}
        return signing.dumps(plain, salt=PAGE_SALT)

    def warning(self, of: str) -> PageToken:
        """The same token with one more warning marked as seen."""
        return replace(self, warned=tuple(dict.fromkeys([*self.warned, of])))

    def read_since(self, before: PageToken) -> PageToken:
        """Take over time and warnings from the previous page, if its regions are
        byte-identical and it was for the same person and request."""
        if before.digest != self.digest or not before.is_for(self.person, self.request):
            return self
        return replace(self, rendered_at=before.rendered_at, warned=before.warned)

    def took_ms(self, now: datetime) -> int:
        """How long the page has been on the screen, in milliseconds."""
        took = now - self.rendered_at
        return max(round(took.total_seconds() * 1000), 0)

    def is_for(self, person: str, request: str) -> bool:
        return (self.person, self.request) == (person, request)


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """One page as it was rendered: its regions and the data they were made from."""

    parts: tuple[str, ...]  # HTML of R1 to R3, R4, R5 and R6, in page order
    inputs: Mapping[str, Any]
    template_version: str

    @property
    def html(self) -> str:
        return "".join(self.parts)

    @property
    def digest(self) -> str:
        return compute_page_digest(self.html)


def parse_page_token(token: str) -> PageToken:
    """Parse and verify a page's token. Raises DigestMissing for an empty token and for
    one that we did not sign."""
    try:
        plain = signing.loads(token, salt=PAGE_SALT)
        at = datetime.fromisoformat(plain.pop("rendered_at"))
        warned = tuple(plain.pop("warned"))
        return PageToken(rendered_at=at, warned=warned, **plain)
    except (signing.BadSignature, TypeError, KeyError, ValueError):
        raise DigestMissing from None


def find_page_token(token: str) -> PageToken | None:
    """Parse and verify a page's token; None where `parse_page_token` raises."""
    try:
        return parse_page_token(token)
    except DigestMissing:
        return None


def compute_page_digest(html: str) -> str:
    """The view digest: SHA-256 over exactly the bytes of the regions."""
    return f"sha256:{hashlib.sha256(html.encode()).hexdigest()}"


def build_snapshot(decision: Decision, sight: RenderedPage) -> Snapshot:
    """Build the row that stores the page; the caller saves it with the decision."""
    return Snapshot(
        decision=decision,
        html=zlib.compress(sight.html.encode(), 9),
        inputs=dict(sight.inputs),
        template_version=sight.template_version,
        digest=sight.digest,
    )


def decompress_snapshot(snapshot: Snapshot) -> str:
    """The HTML of a stored page. Raises ValueError when its bytes are damaged."""
    try:
        return zlib.decompress(bytes(snapshot.html)).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise ValueError("the stored page is damaged") from error


def compute_files_digest(files: Iterable[tuple[str, bytes]]) -> str:
    """One SHA-256 digest over the names and contents of files, in the given order."""
    total = hashlib.sha256()
    for name, content in files:
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return f"sha256:{total.hexdigest()}"


PROOF_LIFETIME = timedelta(minutes=5)
_SESSION_KEY = "step_up"


@dataclass(frozen=True, slots=True)
class ProofScope:
    """The one verdict that a step-up proof is for."""

    person: str
    request: str
    version: int
    action_hash: str
    verdict: Verdict

    @property
    def digest(self) -> str:
        text = "\0".join(str(value) for value in asdict(self).values())
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def purpose(self) -> str:
        """What the challenge of a passkey is for that confirms this verdict."""
        return f"verdict {self.digest}"


@dataclass(frozen=True, slots=True)
class StepUpProof:
    """Proof of identity for one verdict or one form: the method, the time and the
    scope."""

    method: str
    at: datetime
    bound: str  # a `ProofScope.digest`, or the purpose of a form

    def holds(self, bound: str, now: datetime) -> bool:
        """Whether the proof is valid for this scope now. A future time is invalid."""
        return self.bound == bound and self.at <= now <= self.at + PROOF_LIFETIME


def prove_identity(
    http: HttpRequest,
    person: Person,
    typed: TypedProof,
    bound: ProofScope,
    now: datetime,
) -> StepUpProof | None:
    """Check the password, the code of an authenticator app or the answer of a passkey,
    and return a proof; None for none of them, which is no try. Wrong ones count towards
    the login lockout. Raises ReauthenticationRequired for a wrong one, and always for a
    person without it."""
    if not any(typed):
        return None
    method = step_up.confirm_identity(http, person, typed, bound.purpose)
    return StepUpProof(method, now, bound.digest)


def store_proof(session: SessionBase, proof: StepUpProof) -> None:
    """Keep the proof in the session until its decision is made. It replaces the one
    before."""
    session[_SESSION_KEY] = {**asdict(proof), "at": proof.at.isoformat()}


def find_stored_proof(
    session: SessionBase, bound: str, now: datetime
) -> StepUpProof | None:
    """The stored proof, if it is for exactly this scope and still valid; else None."""
    try:
        plain = session[_SESSION_KEY]
        proof = StepUpProof(
            plain["method"], datetime.fromisoformat(plain["at"]), plain["bound"]
        )
    except (KeyError, TypeError, ValueError):
        return None
    return proof if proof.holds(bound, now) else None


def discard_proof(session: SessionBase) -> None:
    session.pop(_SESSION_KEY, None)


class EditExaminer(Protocol):
    """What a page asks about the version that an edit makes. `examined` is the page
    evidence with the answers, once that version was examined."""

    examined: PageEvidence | None

    def examine(self, made: RequestVersion) -> PageEvidence:
        """Compare what was answered with what this version asks."""


@dataclass(frozen=True, slots=True)
class PageEvidence:
    """What a page showed when a verdict was given on it, and how it was used."""

    # In a batch, which has one page for all its items, only the first item has it.
    rendered: RenderedPage | None = None
    took_ms: int | None = None  # from the page to the commit
    # The attention check: its question, the answers and which one is right.
    check: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    # The page's own refusal; `checks.check_deferred_refusal` raises it.
    deferred_refusal: DomainError | None = None
    edit: EditExaminer | None = None  # for MODIFY, which is asked about what it makes

    @property
    def answered(self) -> Mapping[str, Any]:
        """The attention check with its answers, also that of an edit."""
        examined = self.edit.examined if self.edit else None
        return (examined or self).check

    @property
    def digest(self) -> str:
        """The view digest, or "" without a rendered page."""
        return self.rendered.digest if self.rendered else ""


@dataclass(frozen=True, slots=True)
class VerdictSubmission:
    """A person's verdict: on which version and bytes, why, and the proof of who they
    are. `page` is None for a verdict through the API."""

    request_id: str
    person: Person
    verdict: Verdict
    version: int
    action_hash: str
    # Which reading of the business state was shown: 0 for the revision's own, None
    # where none was. A verdict on an outdated state is refused.
    reading: int | None = None
    reason_code: str = ""
    reason: str = ""
    args: Mapping[str, Any] | None = None  # the edited arguments, for MODIFY
    pause: bool = False  # with a rejection: also pause the run
    conditions: GrantConditions = NO_CONDITIONS  # of an approval
    step_up: StepUpProof | None = None
    hold: str = ""  # token of the hold that the person knew of
    # In a batch: {"batch", "digest", "position", "by", "view"}; otherwise empty.
    batch: Mapping[str, Any] = field(default_factory=dict)
    page: PageEvidence | None = None

    @property
    def actor(self) -> log.Actor:
        return build_actor(self.person)

    @property
    def commits(self) -> bool:
        return VERDICT_SPECS[self.verdict].commits

    @property
    def bound(self) -> ProofScope:
        """The scope that a step-up proof of this verdict must have."""
        return ProofScope(
            self.person.public_id,
            self.request_id,
            self.version,
            self.action_hash,
            self.verdict,
        )

    @property
    def by(self) -> str:
        """Where the verdict was given: `page` or `api`."""
        return str(self.batch.get("by", "page" if self.page is not None else "api"))

    @property
    def view(self) -> str:
        """The digest of the page, or "". A batch has one page for all its items."""
        shown = self.page.digest if self.page else ""
        return shown or str(self.batch.get("view", ""))

    def is_stale(self, request: ApprovalRequest) -> bool:
        """Whether the verdict is about another version or other bytes."""
        meant = (self.version, self.action_hash)
        return meant != (request.version, request.action_hash)
