"""The specs of the statuses agree with the machines, with the database and with what
the agent is told."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from django.db import connection

from agents import representation
from agents.schemas.types import ExecutionStatusName, ProposalStatusName
from reviews import transitions
from reviews.choices import (
    EXECUTION_SPECS,
    FINISHED,
    OPEN,
    REQUEST_SPECS,
    SETTLED,
    UNFINISHED,
    ExecutionStatus,
    RequestStatus,
)
from tests.sources import product

STATUS_LIST = re.compile(r"\b(?:IN|in) \(('\w+'(?:, '\w+')*)\)")


def test_each_status_has_a_spec() -> None:
    assert list(REQUEST_SPECS) == list(RequestStatus)
    assert list(EXECUTION_SPECS) == list(ExecutionStatus)


def test_no_edge_leaves_a_final_status() -> None:
    """But for the retry of a failed execution, which a person may ask for."""
    both = [*transitions.request.edges, *transitions.execution.edges]
    leaving = {(edge.source, edge.event) for edge in both if edge.source}
    final, others = {*SETTLED, *FINISHED}, {*OPEN, *UNFINISHED}
    assert {edge for edge in leaving if edge[0] in final} == {("failed", "retry")}
    assert {source for source, _ in leaving} >= others


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("constraint", "lists"),
    [
        ("request_status", {tuple(RequestStatus)}),
        ("request_settled_paired", {SETTLED}),
        ("execution_status", {tuple(ExecutionStatus)}),
        ("execution_finish_paired", {FINISHED, UNFINISHED}),
    ],
)
def test_the_database_checks_the_same_lists(
    constraint: str, lists: set[tuple[str, ...]]
) -> None:
    definition = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname=%s"
    with connection.cursor() as cursor:
        cursor.execute(definition, [constraint])
        found = re.findall(r"ARRAY\[(.*?)\]", cursor.fetchone()[0])
    assert {tuple(re.findall(r"'(\w+)'", words)) for words in found} == lists


def test_the_schemas_name_every_status() -> None:
    assert set(get_args(ProposalStatusName)) == representation.STATUSES
    assert get_args(ExecutionStatusName) == tuple(ExecutionStatus)


def test_hand_written_sql_lists_no_statuses() -> None:
    """A list that stands in the text would not follow a new status."""
    words = {*RequestStatus, *ExecutionStatus} - {"failed"}  # exports have it as well
    for source in product():
        for found in STATUS_LIST.findall(source.text):
            assert words.isdisjoint(re.findall(r"\w+", found)), source.path
