"""The regions of the review page as the bytes that a reviewer is shown.

The same person, version, reading and templates always give the same bytes: they are
made once for the page and once more when it comes back, and must not differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django.template.loader import render_to_string
from django.utils import timezone

from journal import canonical
from policies import tools
from policies.models import Person
from reviews.decisions import submission
from reviews.decisions.submission import Sight
from reviews.models import RequestVersion, StateReading

from .regions import Regions

PARTS = (
    "reviews/_seen_facts.html",
    "reviews/_seen_rules.html",
    "reviews/_seen_words.html",
)
# What else makes the bytes: how values are worked out, escaped and drawn. Modules and
# whole packages by name; a file that is none by its path.
SOURCES = (
    "reviews.presenters",
    "reviews.redaction",
    "reviews.desk.components.equal_values",
    "reviews.desk.components.regions",
    "reviews.effects.describe",
    "reviews.templatetags.desk",
    "reviews.templatetags.inert",
    "static/icons.svg",
)
_NAMED = re.compile(r"\{% include \"([^\"]+)\"|\{% (untrusted) ")


def of(regions: Regions) -> Sight:
    """The page's regions, rendered. Nothing of the request is in their context: no
    token, no clock, nothing that another person's doing would change."""
    context = {"page": regions}
    with timezone.override(UTC):  # the same bytes for whoever reads them, and later
        parts = tuple(str(render_to_string(name, context)) for name in PARTS)
    return Sight(parts, inputs(regions), template_version())


def kept(regions: Regions) -> Sight:
    """As `of`, from this process's memory where it made the same page before.

    For pages only. What is compared with a commit, and what an auditor opens, is made
    anew each time: there the point is what the database says now.
    """
    made_from, memory = inputs(regions), caches["sights"]
    key = canonical.digest(canonical.encode(_alike(regions, made_from)))
    parts = memory.get(key)
    if parts is None:
        parts = of(regions).parts
        memory.set(key, parts)
    return Sight(parts, made_from, template_version())


def _alike(regions: Regions, made_from: dict[str, Any]) -> dict[str, Any]:
    """Whoever may follow the same links is shown the same bytes."""
    return {**made_from, "person": regions.policy_url}


def inputs(regions: Regions) -> dict[str, Any]:
    """What the bytes were made from: ids and digests, no text of anybody's."""
    sealed, revision = regions.sealed, regions.revision
    tool = revision.tool
    return {
        "person": regions.person.public_id,
        "request": sealed.request_id,
        "version": sealed.number,
        "seal": sealed.seal,
        "proposal": revision.proposal_id,
        "revision": revision.number,
        "action_hash": revision.action_hash,
        "policy": sealed.policy.number,
        "tool": {"name": tool.name, "version": tool.version, "digest": tool.digest}
        if tool
        else None,
        "presenter": tools.definition(tool).presenter if tool else "",
        "reading": _reading(regions),
        "evidence": [str(item.get("digest", "")) for item in revision.evidence],
        "since": regions.older.number if regions.older else 0,
    }


def again(person: Person, stored: Mapping[str, Any]) -> Sight | None:
    """The page that this person saw, made anew from what a snapshot says it was made
    from; None when its version is not there any more."""
    sealed = version(stored["request"], stored["version"])
    if sealed is None:
        return None
    return of(
        Regions(
            person,
            sealed,
            reading=reading(sealed, stored["reading"]["id"]),
            since=version(stored["request"], stored["since"]),
        )
    )


def version(request: str, number: int) -> RequestVersion | None:
    """One sealed version with everything that a page of it needs."""
    return (
        RequestVersion.objects.filter(request=request, number=number)
        .select_related("request__proposal", "revision__tool", "policy")
        .first()
    )


def reading(sealed: RequestVersion, pk: int | None) -> StateReading | None:
    """A reading of this version's own revision, and of no other."""
    if pk is None:
        return None
    return StateReading.objects.filter(pk=pk, revision=sealed.revision_id).first()


@cache
def template_version(
    parts: tuple[str, ...] = PARTS, sources: tuple[str, ...] = SOURCES
) -> str:
    """One digest over the templates and sources that made the bytes; read once a
    process, for they change with a new installation only."""
    place = root()
    names = sorted({*_templates(place, parts), *_sources(place, sources)})
    return submission.digest_of_files(
        (name, (place / name).read_bytes()) for name in names
    )


def root() -> Path:
    """Where the product's files lie."""
    return Path(settings.BASE_DIR)


def _templates(root: Path, parts: Iterable[str]) -> Iterator[str]:
    """The parts, and what they include."""
    views = [f"reviews/{one.name}" for one in root.glob("templates/reviews/_view_*")]
    waiting, done = [*parts, *views], set[str]()
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        done.add(name)
        yield f"templates/{name}"
        for included, _ in _NAMED.findall((root / "templates" / name).read_text()):
            waiting.append(included or "reviews/_untrusted.html")


def _sources(root: Path, sources: Iterable[str]) -> Iterator[str]:
    for name in sources:
        yield from (str(one.relative_to(root)) for one in _files(root, name))


def _files(root: Path, name: str) -> list[Path]:
    if "/" in name:
        return [root / name]
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise LookupError(f"{name} draws pages and is no module of this installation.")
    path = Path(spec.origin)
    return sorted(path.parent.rglob("*.py")) if path.stem == "__init__" else [path]


def _reading(regions: Regions) -> dict[str, Any]:
    newer = regions.newer_reading
    if newer is not None:
        return {"id": newer.pk, "digest": newer.digest}
    stored = canonical.encode(regions.revision.reading)
    return {"id": None, "digest": canonical.digest(stored)}
