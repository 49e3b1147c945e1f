"""Take a person out of queues, with effect from their next decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from policies import people

from . import admit


class Command(admit.Command):
    help = "Takes a person out of queues. What they decided stands."
    change: ClassVar[Callable[..., None]] = people.dismiss_from_queues
    done: ClassVar[str] = "decides no more in"
