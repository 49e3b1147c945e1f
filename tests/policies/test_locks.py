"""Two proposals of one sum take turns; those of different sums do not wait."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection, transaction

from policies import locks

pytestmark = pytest.mark.django_db(transaction=True)


def try_in_another_connection(*pairs):
    """Whether another transaction gets the locks within a moment."""
    result = []

    def attempt():
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL lock_timeout = '200ms'")
                locks.lock_measures(pairs)
            result.append(True)
        except OperationalError:
            result.append(False)
        finally:
            connection.close()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return result[0]


def test_a_sum_is_held_until_the_transaction_ends():
    with transaction.atomic():
        locks.lock_measures([("refunds", "C-1"), ("refunds", "C-2")])
        assert not try_in_another_connection(("refunds", "C-2"))
        assert not try_in_another_connection(("other", "C-1"), ("refunds", "C-1"))
        assert try_in_another_connection(("refunds", "C-3"))
        assert try_in_another_connection(("other", "C-1"))
    assert try_in_another_connection(("refunds", "C-1"))


def test_no_sums_need_no_query(django_assert_num_queries):
    with transaction.atomic(), django_assert_num_queries(0):
        locks.lock_measures([])


def test_opposite_orders_do_not_deadlock():
    pairs = [("refunds", f"C-{n}") for n in range(20)]
    failed = []

    def take(order):
        try:
            for _ in range(10):
                with transaction.atomic():
                    locks.lock_measures(order)
        except OperationalError as error:
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=(o,)) for o in (pairs, pairs[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
