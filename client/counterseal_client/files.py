"""Files as evidence: `File` names one, and the operations send it to the gate before
the proposal that shows it."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .calls import Connection, Flow

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
    ".csv": "text/csv",
    ".json": "application/json",
}
"""The types that the gate shows, by the ending of a name."""


@dataclass(frozen=True, slots=True, init=False)
class File:
    """A file for `evidence`: a picture, PDF, CSV or JSON.

    Give a path, or bytes with a `name` whose ending says what they are. People see it
    drawn again by the gate. `sensitive` hides it until a person reveals it with a
    reason. `kind` and `source` say what it shows and where it is from.
    """

    body: bytes = field(repr=False)
    name: str
    media_type: str
    sensitive: bool
    kind: str
    source: str

    def __init__(
        self,
        path_or_bytes: str | Path | bytes,
        *,
        name: str = "",
        media_type: str = "",
        sensitive: bool = False,
        kind: str = "file",
        source: str = "",
    ) -> None:
        """Read the file. Raises OSError, and ValueError for a type that the gate does
        not show."""
        body = path_or_bytes
        if not isinstance(body, bytes):
            path = Path(body)
            name, body = name or path.name, path.read_bytes()
        media_type = media_type or MEDIA_TYPES.get(Path(name).suffix.lower(), "")
        if not (name and media_type):
            given = mimetypes.guess_type(name)[0] or name or "bytes without a name"
            endings = ", ".join(MEDIA_TYPES)
            raise ValueError(
                f"Evidence cannot be {given}: pass a name that ends in one of {endings}"
            )
        for key, value in {
            "body": body,
            "name": name,
            "media_type": media_type,
            "sensitive": sensitive,
            "kind": kind,
            "source": source,
        }.items():
            object.__setattr__(self, key, value)

    @property
    def sha256(self) -> str:
        """The hash by which the gate knows it."""
        return "sha256:" + hashlib.sha256(self.body).hexdigest()

    def as_item(self) -> dict[str, Any]:
        """The item of evidence that names it."""
        named = {"sha256": self.sha256, "name": self.name, "sensitive": self.sensitive}
        return {"kind": self.kind, "source": self.source, "file": named}


def send_files(
    connection: Connection, details: Mapping[str, Any]
) -> Flow[dict[str, Any]]:
    """Send each File among the evidence, and return the details with items that name
    them. The gate stores equal bytes once, so sending them again changes nothing."""
    evidence: Sequence[Any] = details.get("evidence", ())
    for file in evidence:
        if isinstance(file, File):
            yield from connection.send_call(
                connection.build_upload("/evidence", file.body, file.media_type)
            )
    if not evidence:
        return dict(details)
    items = [item.as_item() if isinstance(item, File) else item for item in evidence]
    return {**details, "evidence": items}
