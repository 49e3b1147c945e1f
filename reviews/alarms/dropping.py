"""Messages that workers could not read: counted in the broker, told by an alarm."""

from __future__ import annotations

from django.db import transaction

from journal import clock
from reviews.choices import AlarmKind
from reviews.models import Alarm

from .raising import raise_

BROKER = "broker"


@transaction.atomic(durable=True)
def dropped(*, count: int) -> Alarm | None:
    """Have people told that so many more messages of the broker were dropped."""
    if count < 1:
        return None
    alarm = raise_(
        AlarmKind.UNREADABLE,
        subject=BROKER,
        proposal=None,
        data={"messages": count},
        now=clock.now(),
    )
    if alarm.times > 1:
        alarm.data = {"messages": int(alarm.data.get("messages", 0)) + count}
        alarm.save(update_fields=["data"])
    return alarm
