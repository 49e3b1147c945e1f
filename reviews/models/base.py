"""Shared by the models: opaque ids, and the checks and choices of enum columns."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from journal import ids


def new_proposal_id() -> str:
    return ids.new("p")


def new_request_id() -> str:
    return ids.new("r")


def new_grant_id() -> str:
    return ids.new("g")


def new_execution_id() -> str:
    return ids.new("x")


def new_batch_id() -> str:
    return ids.new("b")


def new_export_id() -> str:
    return ids.new("e")


def new_dataset_id() -> str:
    return ids.new("d")


def new_repair_id() -> str:
    return ids.new("f")


def build_choices(enum: type[Any]) -> list[tuple[str, str]]:
    """The `choices` of a model field, from an enum."""
    return [(item.value, item.value) for item in enum]


def build_choice_check(
    name: str, field: str, enum: type[Any]
) -> models.CheckConstraint:
    """A database check that a column holds a value of the enum.

    It also binds writers that bypass Django.
    """
    values = [item.value for item in enum]
    return models.CheckConstraint(name=name, condition=Q(**{f"{field}__in": values}))
