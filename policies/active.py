"""The active policy version, its document and its tools.

An active version never changes, so this process caches what it read from one: parsed
documents by their digest, and tools by the version that names them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple, TypeVar

from journal import canonical
from journal.statements import Statement

from .choices import Risk, StepUpMethod
from .documents import Document, ToolDefinition, restore_document
from .models import PolicyVersion, Tool

Kept = TypeVar("Kept")
# The id and the digest of the active version; NULL without one.
ACTIVE_COLUMN = """
(SELECT json_build_array(id, digest) FROM policies_policyversion
 WHERE status = 'active')
"""
_ACTIVE = Statement(f"SELECT {ACTIVE_COLUMN}")
_CACHE_SIZE = 16  # versions: the active one, and retired ones that old requests name


class _RecentCache(OrderedDict[Any, Any]):
    """A cache of the newest `_CACHE_SIZE` values, by a key of their content."""

    def keep(self, key: Any, make: Callable[[], Kept]) -> Kept:
        # Two threads may both make a value. The values are equal, so no lock is needed.
        value: Kept | None = self.get(key)
        if value is None:
            value = self[key] = make()
            if len(self) > _CACHE_SIZE:
                self.popitem(last=False)
        return value


_versions = _RecentCache()
_documents = _RecentCache()
_tools = _RecentCache()


def find_active_policy() -> PolicyVersion | None:
    """The active policy version, or None. It runs one small query each time and reads
    the document only the first time."""
    return load_known_policy(_ACTIVE.fetch_one()[0])


def load_known_policy(active: tuple[int, str] | None) -> PolicyVersion | None:
    """The version that the value of `ACTIVE_COLUMN` names."""
    return load_policy(*active) if active else None


def load_policy(version_id: int, digest: str) -> PolicyVersion:
    """Load a version that has been activated. It never changes, so it is cached."""
    return _versions.keep(
        (version_id, digest), lambda: PolicyVersion.objects.get(pk=version_id)
    )


@cache
def load_version_number(version_id: int) -> int:
    """The number of a stored version, cached for the life of the process because it
    never changes. It does not read the document, which is large."""
    return PolicyVersion.objects.values_list("number", flat=True).get(pk=version_id)


class StoredPolicy(NamedTuple):
    """What pages read of a stored version: the window of each measure by its name, the
    domains that its tools declare as ours, the risk levels at which it wants a written
    answer, and what a step-up may be at each."""

    measure_windows: Mapping[str, timedelta]
    own_domains: Collection[str]
    written_answer: Collection[Risk]
    step_up_methods: Mapping[Risk, Sequence[StepUpMethod]]


@cache
def load_stored_policy(version_id: int) -> StoredPolicy:
    """It is cached for the life of the process: a version that something was evaluated
    by never changes."""
    known = {version.pk: version for version in [*_versions.values()]}
    version = known.get(version_id) or PolicyVersion.objects.get(pk=version_id)
    document = load_document(version)
    windows = {name: measure.window for name, measure in document.measures.items()}
    desk = document.desk
    return StoredPolicy(
        windows,
        document.own_domains,
        desk.written_answer,
        {risk: desk.list_step_up_methods(risk) for risk in Risk},
    )


def load_document(version: PolicyVersion) -> Document:
    """The version's parsed document, cached by its digest. It was checked when it was
    saved, so it is not checked again."""
    return _documents.keep(version.digest, lambda: restore_document(version.document))


def to_plain_data(part: Document | ToolDefinition) -> dict[str, Any]:
    """The plain data to store, with defaults written out, so that a later change of a
    default does not change its meaning."""
    return part.model_dump(mode="json", by_alias=True)


def compute_digest(data: Mapping[str, Any]) -> str:
    """The digest that identifies a stored definition or document by its content."""
    return canonical.digest(canonical.encode(data))


def load_tools(version: PolicyVersion) -> Mapping[str, Tool]:
    """The tool rows that a version's document names, by name. At most two queries."""
    key = (version.pk, version.digest)
    return _tools.keep(key, lambda: _query_tools(load_document(version)))


def _query_tools(document: Document) -> dict[str, Tool]:
    wanted = {
        name: compute_digest(to_plain_data(tool))
        for name, tool in document.tools.items()
    }
    rows = Tool.objects.select_related("queue").filter(digest__in=wanted.values())
    return {row.name: row for row in rows if wanted.get(row.name) == row.digest}
