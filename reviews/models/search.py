"""The full-text index of proposals."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models

from .proposals import Revision


class SearchEntry(models.Model):
    """The indexed words of one revision.

    They come from the effect sentence, tool, run, rules, and the policy's keys and
    amounts; redacted and sensitive values are left out. The entry is written after the
    revision and can be rebuilt.
    """

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
