"""Times that people gave, outside the years that the product handles: the nearest time
inside them. The next migration lets the database refuse others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from django.db import migrations

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LAST = datetime(2100, 12, 31, tzinfo=UTC)
COLUMNS = (
    ("Grant", "not_before"),
    ("Grant", "expires_at"),
    ("Dataset", "since"),
    ("Dataset", "until"),
)


def clamp(apps: Any, schema_editor: Any) -> None:
    for model, column in COLUMNS:
        rows = apps.get_model("reviews", model).objects
        rows.filter(**{f"{column}__lt": EARLIEST}).update(**{column: EARLIEST})
        rows.filter(**{f"{column}__gt": LAST}).update(**{column: LAST})
    # A shift that is wholly outside would end when it begins.
    shifts = apps.get_model("reviews", "OnCallShift").objects
    shifts.filter(ends_at__lte=EARLIEST).delete()
    shifts.filter(begins_at__gte=LAST).delete()
    shifts.filter(begins_at__lt=EARLIEST).update(begins_at=EARLIEST)
    shifts.filter(ends_at__gt=LAST).update(ends_at=LAST)


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('reviews', '0048_sealed_votes'),
    ]

    operations: ClassVar = [
        migrations.RunPython(clamp, migrations.RunPython.noop, elidable=True),
    ]
