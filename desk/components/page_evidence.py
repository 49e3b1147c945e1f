"""The regions of the review page as bytes: what a reviewer is shown and what is stored
as page evidence.

The same person, version, reading and templates always give the same bytes. The page is
rendered when it is opened and again when the verdict arrives, and the two must be
equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from functools import cache, partial
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
from reviews.decisions.submission import RenderedPage
from reviews.effects import describe
from reviews.models import RequestVersion, StateReading

from .regions import Regions

REGION_TEMPLATES = (
    "desk/components/_facts_regions.html",
    "desk/components/_rules_region.html",
    "desk/components/_words_regions.html",
)
UNREADABLE_TEMPLATE = "desk/components/_unreadable.html"
# What else determines the bytes: how values are computed, escaped and drawn. Modules
# and whole packages are listed by name, other files by path.
RENDERING_SOURCES = (
    "reviews.presenters",
    "reviews.redaction",
    "desk.components.regions",
    "reviews.effects.changes",
    "reviews.effects.describe",
    "reviews.effects.evidence_files",
    "desk.templatetags.desk",
    "desk.templatetags.inert",
    "static/icons.svg",
)
_INCLUDE_PATTERN = re.compile(r"\{% include \"([^\"]+)\"|\{% (untrusted) ")


def render_regions(regions: Regions) -> RenderedPage:
    """Render the page's regions. Their context has nothing that changes by itself: no
    request, no token, no clock and no other person's actions."""
    context = {"page": regions}
    with timezone.override(UTC):  # the same bytes for every reader's zone
        parts = tuple(
            describe.present_or_report(
                regions.revision,
                partial(render_to_string, name, context),
                partial(render_to_string, UNREADABLE_TEMPLATE),
            )
            for name in REGION_TEMPLATES
        )
    return RenderedPage(parts, build_inputs(regions), compute_template_digest())


def load_cached_regions(regions: Regions) -> RenderedPage:
    """Render the regions, or return the bytes cached by this process.

    Only for showing pages. Page evidence that is compared at a commit or opened by an
    auditor is always rendered from the database.
    """
    made_from, memory = build_inputs(regions), caches["sights"]
    # People who see the same links see the same bytes.
    key = canonical.digest(
        canonical.encode({**made_from, "person": regions.policy_url})
    )
    parts = memory.get(key)
    if parts is None:
        parts = render_regions(regions).parts
        memory.set(key, parts)
    return RenderedPage(parts, made_from, compute_template_digest())


def build_inputs(regions: Regions) -> dict[str, Any]:
    """What the bytes were made from: ids and digests only, no text."""
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
        "presenter": tools.load_definition(tool).presenter if tool else "",
        "reading": _build_reading_input(regions),
        "evidence": [_find_digest(item) for item in revision.evidence],
        "since": regions.older.number if regions.older else 0,
        **({"removed": revision.removed_after} if revision.removal else {}),
    }


def _find_digest(item: Mapping[str, Any]) -> str:
    return str(item.get("file", item).get("sha256", item.get("digest", "")))


def find_rerendered_page(
    person: Person, stored: Mapping[str, Any]
) -> RenderedPage | None:
    """The page that this person saw, rendered again from the inputs in a snapshot; None
    when its version is gone."""
    sealed = find_version(stored["request"], stored["version"])
    if sealed is None:
        return None
    return render_regions(
        Regions(
            person,
            sealed,
            reading=find_reading(sealed, stored["reading"]["id"]),
            since=find_version(stored["request"], stored["since"]),
        )
    )


def find_version(request: str, number: int) -> RequestVersion | None:
    """One sealed version with everything that its page needs."""
    return (
        RequestVersion.objects.filter(request=request, number=number)
        .select_related("request__proposal", "revision__tool", "policy")
        .first()
    )


def find_reading(sealed: RequestVersion, pk: int | None) -> StateReading | None:
    """A reading by its key, only if it belongs to this version's revision."""
    if pk is None:
        return None
    return StateReading.objects.filter(pk=pk, revision=sealed.revision_id).first()


@cache
def compute_template_digest(
    parts: tuple[str, ...] = REGION_TEMPLATES,
    sources: tuple[str, ...] = RENDERING_SOURCES,
) -> str:
    """One digest over the templates and sources that make the bytes.

    Cached for the process: the files change only with a new installation.
    """
    place = get_product_root()
    names = sorted({*_list_templates(place, parts), *_list_sources(place, sources)})
    return submission.compute_files_digest(
        (name, (place / name).read_bytes()) for name in names
    )


def get_product_root() -> Path:
    return Path(settings.BASE_DIR)


def _list_templates(root: Path, parts: Iterable[str]) -> Iterator[str]:
    """These templates and all that they include."""
    views = [
        path.relative_to(root / "templates").as_posix()
        for path in root.glob("templates/desk/components/_view_*")
    ]
    waiting, done = [*parts, *views], set[str]()
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        done.add(name)
        yield f"templates/{name}"
        for included, _ in _INCLUDE_PATTERN.findall(
            (root / "templates" / name).read_text()
        ):
            waiting.append(included or "desk/components/_untrusted.html")


def _list_sources(root: Path, sources: Iterable[str]) -> Iterator[str]:
    for name in sources:
        yield from (
            str(path.relative_to(root)) for path in _list_module_files(root, name)
        )


def _list_module_files(root: Path, name: str) -> list[Path]:
    if "/" in name:
        return [root / name]
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise LookupError(f"{name} draws pages and is no module of this installation.")
    path = Path(spec.origin)
    return sorted(path.parent.rglob("*.py")) if path.stem == "__init__" else [path]


def _build_reading_input(regions: Regions) -> dict[str, Any]:
    newer = regions.newer_reading
    if newer is not None:
        return {"id": newer.pk, "digest": newer.digest}
    stored = canonical.encode(regions.revision.reading)
    return {"id": None, "digest": canonical.digest(stored)}
