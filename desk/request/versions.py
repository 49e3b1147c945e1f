"""The page of one sealed version of a request, and the difference between two
versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from journal.errors import NotFound
from policies.models import Person
from reviews.effects import changes, describe
from reviews.effects.wording import format_required_people
from reviews.models import RequestVersion

from ..components import page_evidence, visibility
from ..components.regions import CAUSE_WORDS, Regions


@dataclass(frozen=True, slots=True)
class ComparedText:
    """A text that differs, in both versions."""

    label: str
    before: str
    after: str


@dataclass(frozen=True)
class VersionPage:
    """A version, and what differs from the older one if there is one."""

    person: Person
    sealed: RequestVersion
    older: RequestVersion | None

    @property
    def id(self) -> str:
        return self.sealed.request_id

    @property
    def number(self) -> int:
        return self.sealed.number

    @property
    def numbers(self) -> range:
        return range(1, self.sealed.request.version + 1)

    @property
    def cause(self) -> str:
        return CAUSE_WORDS.get(self.sealed.cause, self.sealed.cause)

    @property
    def was(self) -> str:
        """The heading of the column with the older version; empty without one."""
        return f"Version {self.older.number}" if self.older else ""

    @property
    def is_now(self) -> str:
        return f"Version {self.number}"

    @property
    def asked(self) -> str:
        return format_required_people(self.sealed.steps)

    @property
    def parts(self) -> tuple[str, ...]:
        """The version's regions as this person sees them now, as HTML."""
        regions = Regions(self.person, self.sealed)
        return page_evidence.load_cached_regions(regions).parts

    @cached_property
    def rows(self) -> list[changes.ArgumentChange]:
        """What the page shows differently: the arguments first, destructive changes
        before others."""
        if self.older is None:
            return []
        return changes.list_page_changes(self.older.revision, self.sealed.revision)

    @cached_property
    def terms(self) -> list[ComparedText]:
        return self._compare(_collect_terms)

    @cached_property
    def words(self) -> list[ComparedText]:
        """The agent's texts that differ, which are untrusted; evidence is identified by
        its number."""
        return self._compare(_collect_agent_texts)

    def _compare(
        self, collect: Callable[[RequestVersion], dict[str, str]]
    ) -> list[ComparedText]:
        if self.older is None:
            return []
        before, after = collect(self.older), collect(self.sealed)
        return [
            ComparedText(label, before.get(label, ""), after.get(label, ""))
            for label in dict.fromkeys([*before, *after])
            if before.get(label, "") != after.get(label, "")
        ]


def load_version_page(
    person: Person, pk: str, number: int, compare: str = ""
) -> VersionPage:
    """The page of version `number`, or of the comparison `compare`, such as `2..3`; a
    malformed one is ignored. Raises NotFound."""
    if not visibility.select_visible_requests(person).filter(pk=pk).exists():
        raise NotFound
    older, newer = _parse_comparison(compare)
    sealed = page_evidence.find_version(pk, newer or number)
    if sealed is None:
        raise NotFound
    before = page_evidence.find_version(pk, older) if older else None
    return VersionPage(person, sealed, before)


def _parse_comparison(compare: str) -> tuple[int, int]:
    before, dots, after = compare.partition("..")
    sane = all(part.isdecimal() and len(part) < 6 for part in (before, after))
    return (int(before), int(after)) if dots and sane else (0, 0)


def _collect_terms(sealed: RequestVersion) -> dict[str, str]:
    rules = "; ".join(rule["text"] for rule in sealed.rules)
    return {
        "Risk": sealed.risk,
        "Tier": sealed.tier,
        "Required": format_required_people(sealed.steps),
        "Rules": rules or "minimum for this tool",
        "Expires": f"{sealed.expires_at:%Y-%m-%d %H:%M:%S} UTC",
        "Policy": f"v{sealed.policy.number}",
    }


def _collect_agent_texts(sealed: RequestVersion) -> dict[str, str]:
    revision = sealed.revision
    texts = {"Rationale": revision.rationale}
    for heading, text in describe.list_agent_claims(sealed.request.proposal, revision):
        texts[heading] = "\n".join(filter(None, [texts.get(heading, ""), text]))
    for number, item in enumerate(describe.list_evidence(revision), 1):
        texts[f"Evidence {number}"] = item.summary
    return texts
