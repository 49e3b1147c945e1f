"""What proposals can be found by."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models

from .proposals import Revision


class SearchEntry(models.Model):
    """The words of one revision: its sentence as pages print it, tool, run, rules, the
    policy's keys and amounts; nothing that is redacted or sensitive. Made after it, and
    may be made again."""

    revision = models.OneToOneField(
        Revision,
        on_delete=models.PROTECT,
        related_name="search_entry",
        primary_key=True,
    )
    words = SearchVectorField()

    class Meta:
        indexes: ClassVar = [GinIndex(fields=["words"], name="search_words")]

    def __str__(self) -> str:
        return f"words of {self.revision_id}"
