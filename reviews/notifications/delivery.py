"""One mail with all that was gathered for a person: for their hour of the day, the
end of their quiet hours, or until they may be written to again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import F, Q, QuerySet

from journal import clock
from policies.models import Person
from reviews import locks
from reviews.channels import concern, lines
from reviews.choices import RequestStatus
from reviews.models import Notice

from . import email

# Lines of one mail. Nobody reads more of them; how many more there are is said.
MOST = 100
# Rows of one statement. What gathers in a busy hour may be tens of thousands, and who
# is stopped at the time limit of a task has to find less to do at the next attempt.
PIECE = 1000


def send(public_id: str) -> bool:
    """What was gathered for this person and still concerns them; whether there was
    anything. Of more than `MOST` messages the rest is a number. Locks: mails to them.
    Raises OperationalError when another writes to them too long."""
    person = Person.objects.select_related("preferences").get(public_id=public_id)
    with locks.mails_to(person.public_id):  # or two would send the same
        return _send(person, clock.now())


def _send(person: Person, now: datetime) -> bool:
    gathered = _gathered(person, now)
    _drop(person, gathered, now)
    # What comes from here on is not in this mail: it is the next one's.
    these = _keys(_ordered(gathered))
    first = list(_ordered(gathered.filter(pk__in=these[:MOST])))
    rest = email.Rest()
    if len(these) > MOST:
        rest = _rest(gathered.filter(pk__in=these), first)
    still = _concerning(person, first)
    if still or rest.count:
        said = [lines.line(one) for one in _once_each(still)]
        email.digest(person, said, rest)
    _in_pieces(gathered, these, sent_at=clock.now())
    return bool(still or rest.count)


def _gathered(person: Person, now: datetime) -> QuerySet[Notice]:
    return Notice.objects.filter(
        person=person, digest=True, due_at__lte=now, sent_at__isnull=True, let_go=""
    )


def _drop(person: Person, gathered: QuerySet[Notice], now: datetime) -> None:
    """What is over for everybody, however much it is, without a look at each."""
    if not person.is_active or not person.email:
        _in_pieces(gathered, _keys(gathered), let_go="not_theirs")
        return
    asked = gathered.filter(kind__in=lines.WAITING, request__isnull=False)
    waits = Q(request__status=RequestStatus.PENDING, request__expires_at__gt=now)
    over = asked.exclude(waits, request__version=F("version"))
    _in_pieces(gathered, _keys(over), let_go="settled")


def _keys(rows: QuerySet[Notice]) -> list[int]:
    return list(rows.values_list("pk", flat=True))


def _in_pieces(
    gathered: QuerySet[Notice], keys: Sequence[int], **values: datetime | str
) -> None:
    """Write that these were sent or let go; a piece that is written stays so."""
    for start in range(0, len(keys), PIECE):
        gathered.filter(pk__in=keys[start : start + PIECE]).update(**values)


def _ordered(gathered: QuerySet[Notice]) -> QuerySet[Notice]:
    """What waits for an answer on top, and of this what expires first."""
    related = gathered.select_related(
        "request__proposal",
        "request__queue",
        "execution__grant__revision__tool",
        "alarm__proposal",
    )
    waits = Q(kind__in=lines.WAITING)
    return related.annotate(waits=waits).order_by("-waits", "request__expires_at", "pk")


def _rest(these: QuerySet[Notice], first: Sequence[Notice]) -> email.Rest:
    """How many things the others are about, and how many of these wait."""
    things = these.values("request", "execution", "alarm").distinct()
    waiting = things.filter(kind__in=lines.WAITING).count()
    told = _once_each([one for one in first if one.kind in lines.WAITING])
    return email.Rest(things.count() - len(_once_each(first)), waiting - len(told))


def _concerning(person: Person, rows: Sequence[Notice]) -> list[Notice]:
    still = []
    for row in rows:
        row.person = person  # with what is known of them
        if why := concern.let_go(row):
            Notice.objects.filter(pk=row.pk).update(let_go=why)
        else:
            still.append(row)
    return still


def _once_each(notices: Sequence[Notice]) -> list[Notice]:
    """Of several messages about one thing the last: it says how it is now."""
    newest = {(one.request_id, one.execution_id, one.alarm_id): one for one in notices}
    return list(newest.values())
