"""Hand messages to their channels, and record what became of each attempt.

Every message of every channel goes through `dispatch_message`. A refused message is
sent again after 5 s, doubling up to 10 min, but no sooner than the receiver asks for.
A message whose worker dies in between is sent again, so people may get it twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from journal import clock, failpoints, outbox
from journal.operations import operation
from journal.prepared_queries import Parameter, PreparedUpdate
from reviews.models import Notice

from . import registry
from .contract import ChannelMessage, DeliveryError

FIRST_REST, LONGEST_REST = timedelta(seconds=5), timedelta(minutes=10)
LONGEST_RETRY_AFTER = timedelta(hours=1)
MAX_ATTEMPTS = 30  # about four hours
MAX_ID_LENGTH = 250
GIVEN_UP = "undeliverable"  # `let_go` of a notice that no attempt will follow

logger = structlog.get_logger(__name__)

_MARK_SENT = PreparedUpdate(
    lambda: (
        Notice.objects.filter(pk=Parameter("pk")),
        {
            "sent_at": Now(),
            "message_id": Parameter("message_id"),
            "attempts": F("attempts") + 1,
            "error": "",
        },
    )
)


def dispatch_message(channel: str, message: ChannelMessage) -> str:
    """Hand one message to its channel; return the id that the channel gave it. Raises
    DeliveryError when the channel refused it, and any other error of the channel.
    Caller holds no transaction."""
    return registry.find_channel(channel).dispatch(message)


def attempt_notice(notice: Notice, message: ChannelMessage) -> bool:
    """Attempt to send one notice, and record the result. Returns whether the channel
    took it. Raises what `attempt_message` raises."""
    message_id = attempt_message([notice], notice.channel, message)
    if message_id is None:
        return False
    failpoints.point("mail_taken", str(notice.pk))
    _MARK_SENT.execute(pk=notice.pk, message_id=message_id)
    return True


def attempt_message(
    notices: Sequence[Notice], channel: str, message: ChannelMessage
) -> str | None:
    """Attempt to send one message that stands for these notices. Returns its id, or
    None when the channel refused it and the next attempt is enqueued. Raises errors
    other than DeliveryError, after recording them."""
    try:
        return dispatch_message(channel, message)[:MAX_ID_LENGTH]
    except SoftTimeLimitExceeded:
        raise
    except DeliveryError as error:
        record_failure(notices=notices, error=error)
        return None
    except Exception as error:  # any error of a mail server
        _select_unsent(notices).update(
            attempts=F("attempts") + 1,
            error=f"the message was not accepted ({type(error).__name__})",
        )
        raise


def _select_unsent(notices: Iterable[Notice]) -> QuerySet[Notice]:
    return Notice.objects.filter(pk__in=[notice.pk for notice in notices], sent_at=None)


@operation(writes="Notice", after="the next attempt, when it is due")
def record_failure(*, notices: Sequence[Notice], error: DeliveryError) -> None:
    """Record a refused message that stands for these notices, and enqueue the next
    attempt unless there is no use in one."""
    attempts = max(notice.attempts for notice in notices) + 1
    failed = {"attempts": attempts, "error": str(error)[:200]}
    rows = _select_unsent(notices)
    logger.warning("notice_refused", channel=notices[0].channel, error=str(error))
    if error.final or attempts >= MAX_ATTEMPTS:
        rows.update(**failed, let_go=GIVEN_UP)
        return
    due = clock.now() + compute_rest(attempts, error.retry_after)
    rows.update(**failed, due_at=due)
    for notice in notices:
        notice.due_at = due
    enqueue_notices(notices)


def compute_rest(attempts: int, retry_after: timedelta | None) -> timedelta:
    """How long to wait after so many failed attempts."""
    doubled: timedelta = FIRST_REST * 2 ** min(attempts - 1, 10)
    rest = min(doubled, LONGEST_REST)
    asked = min(retry_after or timedelta(), LONGEST_RETRY_AFTER)
    return max(rest, asked)


@operation(writes="Notice", after="the digest, when it is due")
def postpone_notice(*, notice: Notice, until: datetime) -> None:
    """Move a notice to the digest that is sent at `until`."""
    Notice.objects.filter(pk=notice.pk).update(due_at=until, digest=True)
    notice.due_at, notice.digest = until, True
    enqueue_notices([notice])


def enqueue_notices(notices: Iterable[Notice]) -> None:
    """Publish outbox messages that deliver the notices when they are due. Caller holds
    a transaction."""
    gathered: dict[str, datetime] = {}
    for notice in notices:
        if notice.digest:
            assert notice.person is not None  # only people have digests
            gathered[notice.person.public_id] = notice.due_at
        else:
            outbox.publish_later("notice.due", str(notice.pk), at=notice.due_at)
    outbox.publish_once("notice.digest", gathered)
