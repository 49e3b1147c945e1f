"""The rooms of the gallery: scenes that fit into one database, and into one process."""

from __future__ import annotations

from . import (
    armed,
    batches,
    control,
    kinds_of_tools,
    lists,
    oneself,
    over,
    records,
    refusals,
    review,
)

ROOMS = [
    review.ROOM,
    refusals.ROOM,
    over.ROOM,
    armed.ROOM,
    batches.ROOM,
    lists.ROOM,
    lists.EMPTY,
    lists.CROWD,
    records.ROOM,
    control.UP,
    control.CONTROL,
    control.AGENTS,
    kinds_of_tools.VIEWS,
    kinds_of_tools.MORE_VIEWS,
    kinds_of_tools.WORDS,
    oneself.ROOM,
    oneself.ERRORS,
]
SCENES = [scene for room in ROOMS for scene in room.scenes]
