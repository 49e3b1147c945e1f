"""Take a person out of queues, with effect from their next decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from policies import people

from . import admit


class Command(admit.Command):
    help = "Removes a person from queues. Their earlier decisions remain valid."
    change: ClassVar[Callable[..., None]] = people.dismiss_from_queues
    done: ClassVar[str] = "can no longer decide in"
