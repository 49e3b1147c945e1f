"""The ready texts of a queue in the panel of a verdict: the list, and the chosen one in
the note."""

from __future__ import annotations

from journal.errors import ReasonMissing
from reviews.administration.queue_presets import OfferedPreset

from .formatting import SelectOption

LONGEST_OPTION = 80  # characters of a text in the list to choose from


def list_ready_texts(preset: OfferedPreset, chosen: str) -> list[SelectOption]:
    return [
        SelectOption(ready.key, _shorten_text(ready.text), ready.key == chosen)
        for ready in preset.texts
    ]


def _shorten_text(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_OPTION else f"{line[:LONGEST_OPTION]}…"


def insert_ready_text(preset: OfferedPreset, note: str, key: str) -> str:
    """The note with the ready text of this key after what was typed, once."""
    text = preset.find_text(key)
    if not text or text in note:
        return note
    return f"{note.rstrip()}\n{text}" if note.strip() else text


def read_note(preset: OfferedPreset, typed: str, key: str) -> str:
    """The typed note; without one the chosen ready text. Raises ReasonMissing for a
    text that is no longer offered."""
    note = typed.replace("\r\n", "\n")
    if note.strip() or not key:
        return note
    text = preset.find_text(key)
    if not text:
        raise ReasonMissing(
            "This ready text is no longer offered. Choose another one, or write the"
            " note. Nothing was recorded."
        )
    return text
