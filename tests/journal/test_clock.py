"""Times at the ends of the calendar, in the zones that move them furthest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.utils import timezone

from journal import clock

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Tokyo")
TAGS = "{% load desk %}{{ at|at }} {{ at|moment }} {{ at|day }} {{ at|clock }}"


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "at", [FIRST, LAST, FIRST.replace(tzinfo=ZoneInfo("Pacific/Kiritimati"))]
)
def test_no_time_breaks_a_page_in_any_zone(at: datetime, zone: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        printed = Template(TAGS).render(Context({"at": at}))
    assert printed.count("<time") == 2


def test_a_usable_time_is_from_2000_to_2100() -> None:
    edge, day = clock.LATEST, timedelta(seconds=1)
    assert clock.check_usable(clock.EARLIEST) == clock.EARLIEST
    assert clock.check_usable(edge - day) == edge - day
    for at in (FIRST, LAST, clock.EARLIEST - day, edge):
        with pytest.raises(ValueError, match="from 2000 to 2100"):
            clock.check_usable(at)
        assert clock.is_usable(clock.clamp(at))
