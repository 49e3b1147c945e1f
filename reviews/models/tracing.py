"""How far the export of traces has read the log."""

from __future__ import annotations

from django.db import models


class TraceExport(models.Model):
    """The one row of the export. `through` is the last position of the log that it has
    read."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    through = models.BigIntegerField()

    def __str__(self) -> str:
        return f"through {self.through}"
