"""The registry of encrypted columns is whole."""

from __future__ import annotations

from django.apps import apps
from django.db.models import BinaryField

from hitl.stored_values import OTHER_COLUMNS, STORED_VALUES

OURS = {"journal", "policies", "reviews", "agents"}


def test_every_binary_column_is_registered_or_explained() -> None:
    columns = {
        f"{model._meta.db_table}.{field.column}"
        for model in apps.get_models()
        if model._meta.app_label in OURS
        for field in model._meta.concrete_fields
        if isinstance(field, BinaryField)
    }
    registered = {stored.name for stored in STORED_VALUES}
    assert len(registered) == len(STORED_VALUES)
    assert registered.isdisjoint(OTHER_COLUMNS)
    assert columns == registered | OTHER_COLUMNS.keys()
