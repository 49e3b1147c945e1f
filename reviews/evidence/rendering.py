"""Draws files of evidence in a process of their own, which is started for one file and
may do nothing but compute (`confinement`)."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog
from django.conf import settings
from pydantic import BaseModel

from journal.errors import AgentRateLimited

from .formats import MOST_PAGES

TIME_LIMIT = 20.0  # seconds of the clock, of which the process may compute for ten
MOST_OUTPUT = 16 * 1024 * 1024  # bytes of all pictures of one file
WAIT_FOR_TURN = 1.0  # seconds; a thread that waits serves nobody
CANNOT_BE_SHOWN = "it took too long or too much memory to draw"

logger = structlog.get_logger(__name__)
# Files that one process of the gate has drawn at a time.
_turns = threading.BoundedSemaphore(2)


class _Picture(BaseModel, strict=True, extra="forbid"):
    width: int
    height: int
    size: int  # bytes


class _Table(BaseModel, strict=True, extra="forbid"):
    columns: list[str]
    rows: list[list[str]]


class _Head(BaseModel, strict=True, extra="forbid"):
    """What an honest child writes. Another one may write anything."""

    problem: str = ""
    pictures: list[_Picture] = []
    count: int = 0  # pages or frames of the file
    unit: Literal["page", "frame"] = "page"
    text: str = ""
    table: _Table | None = None
    rows: int = 0
    columns: int = 0
    cut: bool = False  # whether a cell is longer than it is shown


@dataclass(frozen=True, slots=True)
class Drawing:
    """What to show of a file. `head` is as the child wrote it, without `problem`."""

    head: dict[str, Any]
    pictures: list[bytes] = field(default_factory=list)
    problem: str = ""  # why it cannot be shown; then there is nothing else


def render_file(media_type: str, body: bytes) -> Drawing:
    """Draw one file. Takes up to `TIME_LIMIT`. Raises AgentRateLimited while others'
    files are drawn; a file that cannot be drawn is a `problem`."""
    if not _turns.acquire(timeout=WAIT_FOR_TURN):
        raise AgentRateLimited(
            "The gate is drawing too many files at once. Nothing was stored.",
            retry_after=5,
        )
    try:
        output = _run_renderer(media_type, body)
    finally:
        _turns.release()
    try:
        return _parse_output(output)
    except ValueError:
        logger.info("evidence.not_drawn", media_type=media_type, size=len(body))
        return Drawing({}, problem=CANNOT_BE_SHOWN)


def _run_renderer(media_type: str, body: bytes) -> bytes:
    """What the child wrote; cut off if it wrote too much or was ended."""
    # Nothing of this process's environment: it holds keys.
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "reviews.evidence.renderer", media_type],
        env={"PYTHONPATH": str(settings.BASE_DIR), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        timer = threading.Timer(TIME_LIMIT, child.kill)
        timer.start()
        try:
            with suppress(BrokenPipeError), child.stdin:  # it may end without reading
                child.stdin.write(body)
            return child.stdout.read(MOST_OUTPUT)
        finally:
            timer.cancel()
            child.kill()


def _parse_output(output: bytes) -> Drawing:
    """Raises ValueError for what no honest child writes."""
    line, _, rest = output.partition(b"\n")
    head = _Head.model_validate_json(line)
    if head.problem:
        return Drawing({}, problem=head.problem[:200])
    pictures, at = [], 0
    for picture in head.pictures:
        pictures.append(rest[at : at + picture.size])
        at += picture.size
    whole = at == len(rest) and len(pictures) <= MOST_PAGES
    if not whole or any(not _is_webp(picture) for picture in pictures):
        raise ValueError("The pictures are not whole.")
    return Drawing(head.model_dump(exclude_defaults=True), pictures)


def _is_webp(body: bytes) -> bool:
    return body[:4] == b"RIFF" and body[8:12] == b"WEBP"
