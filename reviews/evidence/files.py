"""Files that agents send as evidence: stored encrypted, drawn once, and named by their
SHA-256 in the revisions that refer to them.

An agent refers to its own files only. What a revision says of a file never changes, and
is part of the seal of each version that shows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError

from journal import canonical, clock, encryption
from journal.errors import AgentRateLimited, Conflict, InvalidInput, build_field_error
from journal.operations import operation
from reviews import redaction
from reviews.models import EvidenceFile, EvidencePicture
from reviews.redaction import spans

from . import rendering
from .formats import CSV, JSON, PDF

# What a file of each type begins with; a text has no such sign.
_SIGNS: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    PDF: (b"%PDF-",),
}
MEDIA_TYPES = (*_SIGNS, CSV, JSON)
MOST_UNUSED = 50  # files of one agent that no proposal names yet
UNUSED_FOR = timedelta(days=1)
# Personal data that a reviewer of a picture may see; other finds hide the file.
_ORDINARY_KINDS = frozenset({spans.EMAIL, spans.PHONE, spans.ADDRESS})
_FACTS = ("pictures", "count", "unit", "rows", "columns", "cut")


def store_file(
    *, agent: str, media_type: str, body: bytes
) -> tuple[EvidenceFile, bool]:
    """Store a file, unless the agent has sent the same bytes before; returns it, and
    whether it is new. Draws it before that, outside any transaction. Raises
    InvalidInput, and AgentRateLimited for too many files that no proposal names."""
    check_content(media_type, body)
    digest = canonical.digest(body)
    known = find_file(agent, digest)
    if known is not None and known.body is not None:
        if known.media_type != media_type:
            rule = f"these bytes were sent as {known.media_type} before; send that type"
            raise InvalidInput(errors=[build_field_error("Content-Type", rule)])
        return known, False
    waiting = EvidenceFile.objects.filter(agent=agent, used_at__isnull=True)
    if waiting.count() >= MOST_UNUSED:
        raise AgentRateLimited(
            f"This agent has sent {MOST_UNUSED} files that no proposal names. Nothing"
            " was stored. Name them in proposals, or wait a day until they are"
            " deleted.",
            retry_after=3600,
        )
    drawn = rendering.render_file(media_type, body)
    try:
        return _insert_file(agent, media_type, digest, body, drawn), True
    except IntegrityError:  # the same file, sent twice at once
        return EvidenceFile.objects.get(agent=agent, sha256=digest), False


def check_content(media_type: str, body: bytes) -> None:
    """Raise InvalidInput for a type that is not shown, and for bytes that are not what
    they are called."""
    if not body:
        raise InvalidInput(errors=[build_field_error("body", "must not be empty")])
    if media_type not in MEDIA_TYPES:
        rule = f"must be one of {', '.join(MEDIA_TYPES)}"
        raise InvalidInput(errors=[build_field_error("Content-Type", rule)])
    if media_type in _SIGNS:
        if not body.startswith(_SIGNS[media_type]):
            rule = f"is not {media_type}: it begins otherwise. Send its true type"
            raise InvalidInput(errors=[build_field_error("body", rule)])
        return
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        rule = f"is not {media_type}: it must be text in UTF-8 without U+0000"
        raise InvalidInput(errors=[build_field_error("body", rule)])


@operation(entry="store_file", writes="EvidenceFile, EvidencePicture")
def _insert_file(
    agent: str, media_type: str, digest: str, body: bytes, drawn: rendering.Drawing
) -> EvidenceFile:
    """An erased file of the same bytes is there again."""
    kinds = redaction.list_kinds(str(drawn.head.get("text", "")))
    columns = {
        "media_type": media_type,
        "size": len(body),
        "body": _encrypt(agent, digest, "body", body),
        "shown": _encrypt(agent, digest, "shown", json.dumps(drawn.head).encode()),
        "problem": drawn.problem,
        "finds": ", ".join(kinds),
        "uploaded_at": clock.now(),
        "erased_at": None,
    }
    file, _ = EvidenceFile.objects.update_or_create(
        agent=agent, sha256=digest, defaults=columns
    )
    EvidencePicture.objects.bulk_create(
        EvidencePicture(
            file=file,
            number=number,
            body=_encrypt(agent, digest, f"picture {number}", picture),
        )
        for number, picture in enumerate(drawn.pictures, 1)
    )
    return file


def find_file(agent: str, sha256: str) -> EvidenceFile | None:
    """This agent's file with this hash."""
    own = EvidenceFile.objects.filter(agent=agent, sha256=sha256)  # guard: own-file
    return own.first()


def describe_file(file: EvidenceFile) -> dict[str, Any]:
    """What a revision and the agent's answer say of a file, without its name."""
    head = _load_shown(file)
    facts = {name: head[name] for name in _FACTS if name in head}
    if pictures := facts.get("pictures"):
        facts["pictures"] = [[one["width"], one["height"]] for one in pictures]
    return {
        "sha256": file.sha256,
        "media_type": file.media_type,
        "size": file.size,
        "problem": file.problem,
        "finds": file.finds,
        **facts,
    }


def attach_files(
    agent: str, evidence: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Items of evidence, each file in them as a revision stores it. A table that is not
    sensitive is in the item, which is redacted before it is stored. Raises InvalidInput
    for a hash that is of no file of this agent."""
    items, errors = [], []
    for number, item in enumerate(evidence):
        named = item.get("file")
        if not named:
            items.append({name: item[name] for name in item if name != "file"})
            continue
        file = find_file(agent, named["sha256"])
        if file is None or file.erased_at is not None:
            rule = (
                "names no file that this agent has sent. Send it with POST"
                " /api/v1/evidence first"
            )
            errors.append(build_field_error(f"evidence.{number}.file.sha256", rule))
            continue
        items.append(_attach_file(item, file))
    if errors:
        raise InvalidInput(errors=errors)
    return items


def _attach_file(item: Mapping[str, Any], file: EvidenceFile) -> dict[str, Any]:
    named = item["file"]
    sensitive = named["sensitive"] or is_sensitive(file)
    about = {**describe_file(file), "name": named["name"], "sensitive": sensitive}
    attached = {**item, "file": about}
    if not sensitive and (table := _load_shown(file).get("table")):
        attached["table"] = table
    return attached


def is_sensitive(file: EvidenceFile) -> bool:
    """Whether its text has what no reviewer may see unasked, whatever the agent says.
    A table is redacted instead."""
    return bool(set(filter(None, file.finds.split(", "))) - _ORDINARY_KINDS)


def mark_used(agent: str, evidence: Iterable[Mapping[str, Any]], now: datetime) -> None:
    """Keep the files that a new revision names. Raises Conflict if one was deleted
    meanwhile. Caller holds a transaction."""
    hashes = set(list_hashes(evidence))
    if not hashes:
        return
    kept = EvidenceFile.objects.filter(agent=agent, sha256__in=hashes)
    if kept.update(used_at=now) != len(hashes):
        raise Conflict(
            "A file of the evidence was deleted. Send it again, and propose."
        )


def list_hashes(evidence: Iterable[Mapping[str, Any]]) -> list[str]:
    """The hashes of the files in these items, in their order."""
    return [item["file"]["sha256"] for item in evidence if item.get("file")]


def load_body(file: EvidenceFile) -> bytes | None:
    """The bytes as they were sent; None once they are erased."""
    return _decrypt(file, "body", file.body)


def load_picture(file: EvidenceFile, number: int) -> bytes | None:
    """One picture as WebP; None where there is none."""
    picture = EvidencePicture.objects.filter(file=file, number=number).first()
    return _decrypt(file, f"picture {number}", picture.body if picture else None)


def load_table(file: EvidenceFile) -> dict[str, Any] | None:
    """The cells of a table as they were sent, not redacted."""
    table: dict[str, Any] | None = _load_shown(file).get("table")
    return table


def _load_shown(file: EvidenceFile) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(_decrypt(file, "shown", file.shown) or b"{}")
    return shown


def _encrypt(agent: str, sha256: str, part: str, data: bytes) -> bytes:
    place = format_place(agent, sha256, part)
    return encryption.encrypt_stored(data, place)


def _decrypt(
    file: EvidenceFile, part: str, sealed: bytes | memoryview | None
) -> bytes | None:
    if sealed is None:
        return None
    place = format_place(file.agent, file.sha256, part)
    return encryption.decrypt_stored(sealed, place)


def format_place(agent: str, sha256: str, part: str) -> bytes:
    """What binds one part of a file to its row."""
    return f"evidence {agent} {sha256} {part}".encode()


def is_intact(body: bytes, sha256: str) -> bool:
    """Whether these are the bytes that the revision names."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}" == sha256
