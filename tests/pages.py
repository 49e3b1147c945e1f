"""What a browser brings back from a page it was shown, without a browser."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from desk.batches import load, page
from desk.components import page_evidence
from desk.components.regions import Regions
from journal import clock
from journal.errors import NotFound
from policies.models import Person
from reviews.decisions.submission import PageToken
from reviews.governance import readings
from reviews.models import ApprovalRequest, Batch

LONG_AGO = timedelta(hours=1)


def seen(request: ApprovalRequest, by: str = "rita", **fields: Any) -> PageToken:
    """The review page as this person had it on the screen an hour ago."""
    person = Person.objects.get(username=by)
    request.refresh_from_db()
    sealed = page_evidence.find_version(request.pk, request.version)
    assert sealed is not None
    reading = readings.find_newest_reading(sealed.revision)
    sight = page_evidence.render_regions(Regions(person, sealed, reading=reading))
    return PageToken(
        **{
            "person": person.public_id,
            "request": request.pk,
            "version": request.version,
            "action_hash": request.action_hash,
            "digest": sight.digest,
            "rendered_at": clock.now() - LONG_AGO,
            "reading": reading.pk if reading else None,
            **fields,
        }
    )


def token(request: ApprovalRequest, by: str = "rita", **fields: Any) -> str:
    """The same as the page's hidden field."""
    return seen(request, by, **fields).token()


def batch_token(batch: Batch, by: str = "rita") -> str:
    """The same of a batch's page, as it is now; nothing for who has none."""
    person = Person.objects.get(username=by)
    try:
        return page.create_timing_token(
            load.load_batch(person, batch.pk, clock.now()), before=""
        )
    except NotFound:
        return ""
