"""The rooms of the gallery: scenes that fit into one database, and into one process."""

from __future__ import annotations

from . import (
    alarms,
    armed,
    batches,
    brakes,
    control,
    kinds_of_tools,
    lists,
    mending,
    oneself,
    over,
    policy_changes,
    post,
    records,
    refusals,
    restored,
    review,
)

ROOMS = [
    review.ROOM,
    refusals.ROOM,
    over.ROOM,
    armed.ROOM,
    batches.ROOM,
    batches.UNDOING,
    lists.ROOM,
    lists.EMPTY,
    lists.CROWD,
    records.ROOM,
    control.UP,
    control.CONTROL,
    brakes.FROZEN,
    brakes.REVOKE,
    policy_changes.ROOM,
    restored.RESTORED,
    alarms.ROOM,
    control.AGENTS,
    mending.ROOM,
    kinds_of_tools.VIEWS,
    kinds_of_tools.MORE_VIEWS,
    kinds_of_tools.WORDS,
    oneself.ROOM,
    oneself.ERRORS,
    post.POST,
    post.NOWHERE,
]
SCENES = [scene for room in ROOMS for scene in room.scenes]
