"""A round of the post: letter after letter in one lane, while there is time for one
more. The way through the queue would take longer than most letters do."""

from __future__ import annotations

import time

from django.conf import settings

from .webhooks import delivery, lanes


def carry(delivery_id: str) -> list[str]:
    """Try this letter, then those that wait in the same lane; the ids of whose
    turn it is when the round is over. Who was not needed names nobody, or words would
    beget words for as long as anything waits. Raises NotFound."""
    until = time.monotonic() + spare_seconds()
    while delivery.post(delivery_id):
        following = lanes.next_of(delivery_id)
        if not following:
            return lanes.slow_letters()
        if time.monotonic() >= until:
            return following
        (delivery_id,) = following
    return []


def spare_seconds() -> float:
    """How long a round may go on before its last try: half of what a task has beyond
    that one."""
    house = settings.HOLDPOINT
    return (house.soft_time_limit - house.http_timeout) / 2
