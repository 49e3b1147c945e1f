"""Tools are immutable rows: a change is a new version, and the policy says which."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db.transaction import TransactionManagementError

from policies import tools
from policies.documents import parse_document
from policies.models import Queue, Tool
from tests import factories
from tests.policies import builders, store


def row(**tool):
    definition = builders.document(**tool).tools["pay"]
    return Tool(name="pay", digest=repr(tool), definition=definition.model_dump(
        mode="json", by_alias=True))  # fmt: skip


PAYMENT = {"to": "a", "amount": "899.00", "currency": "USD"}


def test_arguments_fit_or_are_refused_by_path():
    assert tools.list_argument_errors(row(), PAYMENT) == []
    assert tools.list_argument_errors(row(), {**PAYMENT, "amuont": "1", "to": 7}) == [
        {"path": "args.to", "message": 'this is not of type "string"'},
        {"path": "args.amuont", "message": "this is not an argument of the tool"},
    ]


@pytest.mark.parametrize("args", [[], "x", None, 7])
def test_arguments_are_an_object(args):
    (error,) = tools.list_argument_errors(row(), args)
    assert error["path"] == "args"


@pytest.mark.parametrize("amount", ["899.001", "-1.00", "1e3", "", "many"])
def test_money_is_a_decimal_string_with_the_decimals_of_its_currency(amount):
    (error,) = tools.list_argument_errors(row(), {**PAYMENT, "amount": amount})
    assert error["path"] == "args.amount"


def test_an_amount_needs_its_currency():
    schema = builders.data()["tools"]["pay"]["schema"]
    schema["required"], effect = ["amount"], "Pay {amount}"
    definition = row(schema=schema, effect=effect)
    assert (
        tools.list_argument_errors(definition, {"amount": "1.00"})[0]["path"]
        == "args.amount"
    )


@pytest.mark.django_db
class TestRows:
    def sync(self, **tool):
        tools.sync_tools(builders.document(**tool))
        return list(Tool.objects.order_by("version").values_list("version", flat=True))

    def test_a_changed_definition_is_a_new_version_and_an_old_one_comes_back(self):
        assert self.sync() == [1]
        assert self.sync() == [1]
        assert self.sync(title="Pay somebody") == [1, 2]
        assert self.sync() == [1, 2]

    def test_a_row_says_everything_that_the_policy_said(self):
        tools.sync_tools(store.shipped())
        for stored in Tool.objects.select_related("queue"):
            definition = store.shipped().tools[stored.name]
            assert tools.load_definition(stored) == definition
            assert tools.load_definition(stored) is tools.load_definition(stored)
            assert stored.queue.name == definition.queue
            assert stored.risk == definition.risk
            assert stored.execution_class == definition.execution_class

    def test_a_row_never_changes(self):
        self.sync()
        changes: list[dict[str, Any]] = [
            {"risk": "high"},
            {"definition": {}},
            {"version": 7},
        ]
        for change in changes:
            with pytest.raises(DatabaseError), transaction.atomic():
                Tool.objects.update(**change)
        with pytest.raises(DatabaseError), transaction.atomic():
            Tool.objects.all().delete()

    def test_queues_keep_their_rows_and_take_the_new_title(self):
        tools.add_queues({"money": "Money"})
        before = Queue.objects.get(name="money")
        tools.add_queues({"money": "Payments", "other": "Other"})
        before.refresh_from_db()
        assert before.title == "Payments"
        assert Queue.objects.filter(name="other").exists()

    def test_the_current_version_is_the_one_the_active_policy_names(
        self, django_assert_num_queries
    ):
        def version(policy=None):
            tool = tools.find_current_tool("pay", policy)
            return tool and tool.version

        assert version() is None
        people = factories.cast()
        first = factories.policy(people, builders.data())
        assert version() == 1
        factories.policy(people, builders.data(title="Pay somebody"))
        assert version() == 2
        assert tools.find_current_tool("wire_money") is None
        with django_assert_num_queries(1):
            version()
        with django_assert_num_queries(0):
            assert version(first) == 1
        factories.policy(people, builders.data())
        assert version() == 1


@pytest.mark.django_db(transaction=True)
def test_queues_and_tools_need_their_callers_transaction():
    with pytest.raises(TransactionManagementError):
        tools.sync_tools(parse_document(builders.data()))
