"""The replica against the store's own data: each tool's effect, and its refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.retail import tasks
from tests.retail.store import Record, World, amount, cents, perform
from world.services import Refusal

ADDRESS = {
    "address1": "1 New Street",
    "address2": "",
    "city": "Denver",
    "state": "CO",
    "country": "USA",
    "zip": "80279",
}
REASON = "no longer needed"


@pytest.fixture
def world(data: Path) -> World:
    return tasks.world(data)


def find(world: World, status: str, holds: Callable[[Record], bool] = bool) -> Record:
    """The first order in a status for which something holds."""
    return next(
        order
        for order in world.orders.values()
        if order["status"] == status and holds(order)
    )


def methods(world: World, order: Record) -> dict[str, Record]:
    payment_methods: dict[str, Record] = world.users[order["user_id"]][
        "payment_methods"
    ]
    return payment_methods


def payer(world: World, order: Record) -> Record:
    """What the order was paid with."""
    return methods(world, order)[order["payment_history"][0]["payment_method_id"]]


def by_gift_card(world: World) -> Callable[[Record], bool]:
    return lambda order: payer(world, order)["source"] == "gift_card"


def by_another(world: World) -> Callable[[Record], bool]:
    return lambda order: payer(world, order)["source"] != "gift_card"


def variants(world: World, item: Record, available: bool = True) -> list[Record]:
    """Other items of the same product."""
    return [
        variant
        for variant in world.products[item["product_id"]]["variants"].values()
        if variant["available"] is available and variant["item_id"] != item["item_id"]
    ]


def swappable(world: World) -> Callable[[Record], bool]:
    return lambda order: bool(variants(world, order["items"][0]))


def swap(world: World, order: Record, **changed: Any) -> dict[str, Any]:
    """Arguments that put another item in the place of the order's first."""
    item = order["items"][0]
    return {
        "order_id": order["order_id"],
        "item_ids": [item["item_id"]],
        "new_item_ids": [variants(world, item)[0]["item_id"]],
        "payment_method_id": payer(world, order)["id"],
        **changed,
    }


def refused(world: World, tool: str, **args: Any) -> str:
    """The code of the refusal, once it is sure that nothing changed."""
    before = copy.deepcopy((world.users, world.orders))
    with pytest.raises(Refusal) as refusal:
        perform(world, tool, args)
    assert (world.users, world.orders) == before
    return refusal.value.code


@pytest.mark.parametrize("text", ["0.00", "0.05", "-0.05", "12.30", "-120.99"])
def test_amounts_are_counted_in_whole_cents(text: str) -> None:
    assert amount(cents(text)) == text


def test_the_data_is_whole(world: World) -> None:
    assert (len(world.users), len(world.orders), len(world.products)) == (500, 1000, 50)
    for order in world.orders.values():
        paid = order["payment_history"][0]["amount"]
        assert sum(cents(item["price"]) for item in order["items"]) == cents(paid)


def test_a_cancelled_order_is_refunded_to_its_gift_card(world: World) -> None:
    order = find(world, "pending", by_gift_card(world))
    card, total = payer(world, order), order["payment_history"][0]["amount"]
    before = cents(card["balance"])
    perform(
        world,
        "cancel_pending_order",
        {"order_id": order["order_id"], "reason": REASON},
    )
    assert (order["status"], order["cancel_reason"]) == ("cancelled", REASON)
    assert order["payment_history"][-1] == {
        "transaction_type": "refund",
        "amount": total,
        "payment_method_id": card["id"],
    }
    assert cents(card["balance"]) == before + cents(total)


def test_only_a_pending_order_is_cancelled_and_only_for_a_known_reason(
    world: World,
) -> None:
    pending, gone = find(world, "pending"), find(world, "delivered")
    tool = "cancel_pending_order"
    other = refused(world, tool, order_id=pending["order_id"], reason="bored")
    late = refused(world, tool, order_id=gone["order_id"], reason=REASON)
    nobody = refused(world, tool, order_id="#W0", reason=REASON)
    assert (other, late) == ("invalid_reason", "not_pending")
    assert nobody == "order_not_found"


def test_items_are_returned_to_the_original_method(world: World) -> None:
    order = find(world, "delivered", by_another(world))
    items = [item["item_id"] for item in order["items"]]
    perform(
        world,
        "return_delivered_order_items",
        {
            "order_id": order["order_id"],
            "item_ids": items,
            "payment_method_id": payer(world, order)["id"],
        },
    )
    assert order["status"] == "return requested"
    assert order["return_items"] == sorted(items)


def test_a_return_is_refused_another_method_and_items_not_bought(world: World) -> None:
    def has_two_cards(order: Record) -> bool:
        others = {**methods(world, order)}
        del others[payer(world, order)["id"]]
        return any(method["source"] != "gift_card" for method in others.values())

    order = find(world, "delivered", has_two_cards)
    own, item = payer(world, order), order["items"][0]["item_id"]
    another = next(
        name
        for name, method in methods(world, order).items()
        if method["source"] != "gift_card" and name != own["id"]
    )
    args = {"order_id": order["order_id"], "item_ids": [item]}
    tool = "return_delivered_order_items"
    code = refused(world, tool, **args, payment_method_id=another)
    assert code == "payment_method_not_allowed"
    code = refused(world, tool, **args, payment_method_id="paypal_0")
    assert code == "no_such_payment_method"
    args["item_ids"] = [item] * 9
    code = refused(world, tool, **args, payment_method_id=own["id"])
    assert code == "item_not_found"


def test_an_exchange_names_the_difference_and_moves_no_money(world: World) -> None:
    order = find(world, "delivered", swappable(world))
    args, before = swap(world, order), copy.deepcopy(world.users)
    new = variants(world, order["items"][0])[0]
    perform(world, "exchange_delivered_order_items", args)
    assert order["status"] == "exchange requested"
    difference = cents(new["price"]) - cents(order["items"][0]["price"])
    assert cents(order["exchange_price_difference"]) == difference
    assert world.users == before


def test_an_exchange_is_refused_for_what_is_not_available(world: World) -> None:
    def sold_out(order: Record) -> bool:
        return bool(variants(world, order["items"][0], available=False))

    order = find(world, "delivered", lambda o: swappable(world)(o) and sold_out(o))
    tool = "exchange_delivered_order_items"
    gone = variants(world, order["items"][0], available=False)[0]["item_id"]
    for new_ids, code in (
        ([gone], "item_not_available"),
        (["0"], "item_not_available"),
        ([], "numbers_differ"),
    ):
        args = swap(world, order, new_item_ids=new_ids)
        assert refused(world, tool, **args) == code


def test_items_of_a_pending_order_are_modified_once(world: World) -> None:
    order = find(
        world, "pending", lambda o: swappable(world)(o) and by_another(world)(o)
    )
    args, old = swap(world, order), order["items"][0]["price"]
    perform(world, "modify_pending_order_items", args)
    item, line = order["items"][0], order["payment_history"][-1]
    difference = cents(item["price"]) - cents(old)
    assert item["item_id"] == args["new_item_ids"][0]
    assert cents(line["amount"]) == abs(difference)
    assert line["transaction_type"] == ("payment" if difference > 0 else "refund")
    assert order["status"] == "pending (items modified)"
    assert refused(world, "modify_pending_order_items", **args) == "not_pending"


def test_a_gift_card_pays_only_what_it_covers(world: World) -> None:
    def dearer(order: Record) -> bool:
        price = cents(order["items"][0]["price"])
        return any(
            cents(variant["price"]) > price
            for variant in variants(world, order["items"][0])
        )

    order = find(world, "pending", lambda o: by_gift_card(world)(o) and dearer(o))
    item, card = order["items"][0], payer(world, order)
    new = max(variants(world, item), key=lambda variant: cents(variant["price"]))
    difference = cents(new["price"]) - cents(item["price"])
    args = swap(world, order, new_item_ids=[new["item_id"]])
    card["balance"] = amount(difference - 1)
    tool = "modify_pending_order_items"
    assert refused(world, tool, **args) == "insufficient_balance"
    card["balance"] = amount(difference)
    perform(world, tool, args)
    assert card["balance"] == "0.00"


def test_an_order_is_paid_by_another_method(world: World) -> None:
    def has_another(order: Record) -> bool:
        return by_gift_card(world)(order) and any(
            method["source"] != "gift_card" for method in methods(world, order).values()
        )

    order = find(world, "pending", has_another)
    card, total = payer(world, order), order["payment_history"][0]["amount"]
    before = cents(card["balance"])
    new = next(
        name
        for name, method in methods(world, order).items()
        if method["source"] != "gift_card"
    )
    tool, order_id = "modify_pending_order_payment", order["order_id"]
    code = refused(world, tool, order_id=order_id, payment_method_id=card["id"])
    assert code == "same_payment_method"
    perform(world, tool, {"order_id": order_id, "payment_method_id": new})
    assert cents(card["balance"]) == before + cents(total)
    kinds = [line["transaction_type"] for line in order["payment_history"]]
    assert kinds == ["payment", "payment", "refund"]
    code = refused(world, tool, order_id=order_id, payment_method_id=card["id"])
    assert code == "not_one_payment"


def test_addresses_of_orders_and_users_are_replaced(world: World) -> None:
    order = find(world, "pending")
    args = {"order_id": order["order_id"], **ADDRESS}
    perform(world, "modify_pending_order_address", args)
    perform(world, "modify_user_address", {"user_id": order["user_id"], **ADDRESS})
    assert order["address"] == world.users[order["user_id"]]["address"] == ADDRESS
    code = refused(world, "modify_user_address", user_id="nobody", **ADDRESS)
    assert code == "user_not_found"


def test_a_transfer_changes_no_record(world: World) -> None:
    before = copy.deepcopy((world.users, world.orders))
    perform(world, "transfer_to_human_agents", {"summary": "a question"})
    assert (world.users, world.orders) == before


def test_a_call_touches_only_its_own_user(data: Path, world: World) -> None:
    """So the order of different users' calls makes no difference to the end."""
    calls = tasks.calls(data)
    assert len(calls) == 793
    for call in calls:
        assert world.orders[call.args["order_id"]]["user_id"] == call.user
