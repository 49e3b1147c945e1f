"""A replica of the retail store of ../shared/data/retail: its eight tools that change
the world, as functions over users and orders, each with the store's own refusals.

The direct run and the service run the same functions. A refused call changes nothing.
Money is a decimal string with two places, and is counted in whole cents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from world.services import Refusal

Record = dict[str, Any]
Result = dict[str, Any]
REASONS = ("no longer needed", "ordered by mistake")
ADDRESS = ("address1", "address2", "city", "state", "country", "zip")


@dataclass(frozen=True)
class World:
    """The store's records by id; a call sees the whole of it or only what it needs."""

    users: dict[str, Record]
    orders: dict[str, Record]
    products: Mapping[str, Record]

    def user(self, user_id: str) -> Record:
        try:
            return self.users[user_id]
        except KeyError:
            raise Refusal("user_not_found", "There is no such user.") from None

    def order(self, order_id: str) -> Record:
        try:
            return self.orders[order_id]
        except KeyError:
            raise Refusal("order_not_found", "There is no such order.") from None

    def order_in(self, order_id: str, status: str) -> Record:
        """The order, refused in any other status."""
        order = self.order(order_id)
        if order["status"] != status:
            raise Refusal(f"not_{status}", f"The order is {order['status']}.")
        return order

    def payment_method(self, order: Record, method_id: str) -> Record:
        methods: Mapping[str, Record] = self.user(order["user_id"])["payment_methods"]
        if method_id not in methods:
            raise Refusal("no_such_payment_method", "The user has no such method.")
        return methods[method_id]


def perform(world: World, tool: str, args: Mapping[str, Any]) -> Result:
    """Run one tool. Raises `Refusal`; the world is changed only when it returns."""
    return EFFECTS[tool](world, **args)


def cents(amount: str) -> int:
    """`"-0.05"` is -5."""
    whole, _, part = amount.lstrip("-").partition(".")
    value = int(whole) * 100 + int(part)
    return -value if amount.startswith("-") else value


def amount(value: int) -> str:
    """5 is `"0.05"`."""
    sign = "-" if value < 0 else ""
    return f"{sign}{abs(value) // 100}.{abs(value) % 100:02d}"


def cancel_pending_order(world: World, *, order_id: str, reason: str) -> Result:
    """Refunded to where it was paid from, to a gift card at once."""
    order = world.order_in(order_id, "pending")
    if reason not in REASONS:
        raise Refusal("invalid_reason", f"The reason is one of {', '.join(REASONS)}.")
    for payment in list(order["payment_history"]):
        method = world.payment_method(order, payment["payment_method_id"])
        _move(order, method, "refund", cents(payment["amount"]))
    order.update(status="cancelled", cancel_reason=reason)
    return {"order": order}


def return_delivered_order_items(
    world: World, *, order_id: str, item_ids: Sequence[str], payment_method_id: str
) -> Result:
    """The refund comes later, to the original method or to a gift card."""
    order = world.order_in(order_id, "delivered")
    method = world.payment_method(order, payment_method_id)
    original = order["payment_history"][0]["payment_method_id"]
    if method["source"] != "gift_card" and payment_method_id != original:
        raise Refusal(
            "payment_method_not_allowed",
            "The refund goes to the original payment method or to a gift card.",
        )
    _check_owned(order, item_ids)
    order.update(
        status="return requested",
        return_items=sorted(item_ids),
        return_payment_method_id=payment_method_id,
    )
    return {"order": order}


def exchange_delivered_order_items(
    world: World,
    *,
    order_id: str,
    item_ids: Sequence[str],
    new_item_ids: Sequence[str],
    payment_method_id: str,
) -> Result:
    """The difference is settled once the items are back."""
    order = world.order_in(order_id, "delivered")
    swaps = _swaps(world, order, item_ids, new_item_ids)
    difference = _difference(swaps)
    _check_affordable(world.payment_method(order, payment_method_id), difference)
    order.update(
        status="exchange requested",
        exchange_items=sorted(item_ids),
        exchange_new_items=sorted(new_item_ids),
        exchange_payment_method_id=payment_method_id,
        exchange_price_difference=amount(difference),
    )
    return {"order": order}


def modify_pending_order_items(
    world: World,
    *,
    order_id: str,
    item_ids: Sequence[str],
    new_item_ids: Sequence[str],
    payment_method_id: str,
) -> Result:
    """Once an order: its status is another afterwards. The difference moves at once."""
    order = world.order_in(order_id, "pending")
    swaps = _swaps(world, order, item_ids, new_item_ids)
    difference = _difference(swaps)
    method = world.payment_method(order, payment_method_id)
    _check_affordable(method, difference)
    for old, new in swaps:
        old.update({name: new[name] for name in ("item_id", "price", "options")})
    kind = "payment" if difference > 0 else "refund"
    _move(order, method, kind, abs(difference))
    order["status"] = "pending (items modified)"
    return {"order": order}


def modify_pending_order_address(
    world: World, *, order_id: str, **address: str
) -> Result:
    order = world.order_in(order_id, "pending")
    order["address"] = {name: address[name] for name in ADDRESS}
    return {"order": order}


def modify_pending_order_payment(
    world: World, *, order_id: str, payment_method_id: str
) -> Result:
    """The new method pays the whole order, the old one is refunded."""
    order = world.order_in(order_id, "pending")
    new = world.payment_method(order, payment_method_id)
    history = order["payment_history"]
    if [payment["transaction_type"] for payment in history] != ["payment"]:
        raise Refusal("not_one_payment", "The order was not paid in one payment.")
    (payment,) = history
    if payment["payment_method_id"] == payment_method_id:
        raise Refusal("same_payment_method", "The order is paid by this one already.")
    total = cents(payment["amount"])
    _check_affordable(new, total)
    old = world.payment_method(order, payment["payment_method_id"])
    _move(order, new, "payment", total)
    _move(order, old, "refund", total)
    return {"order": order}


def modify_user_address(world: World, *, user_id: str, **address: str) -> Result:
    user = world.user(user_id)
    user["address"] = {name: address[name] for name in ADDRESS}
    return {"user": user}


def transfer_to_human_agents(world: World, *, summary: str) -> Result:
    """Nothing of the store's records changes."""
    return {"transferred": True}


EFFECTS: dict[str, Callable[..., Result]] = {
    effect.__name__: effect
    for effect in (
        cancel_pending_order,
        return_delivered_order_items,
        exchange_delivered_order_items,
        modify_pending_order_items,
        modify_pending_order_address,
        modify_pending_order_payment,
        modify_user_address,
        transfer_to_human_agents,
    )
}


def _move(order: Record, method: Record, kind: str, value: int) -> None:
    """One line of the order's payment history; a gift card's balance follows it."""
    order["payment_history"].append(
        {
            "transaction_type": kind,
            "amount": amount(value),
            "payment_method_id": method["id"],
        }
    )
    if method["source"] == "gift_card":
        change = -value if kind == "payment" else value
        method["balance"] = amount(cents(method["balance"]) + change)


def _check_owned(order: Record, item_ids: Iterable[str]) -> None:
    """Each item as often as the order has it, at most."""
    owned = Counter(item["item_id"] for item in order["items"])
    if Counter(item_ids) - owned:
        raise Refusal("item_not_found", "The order does not have these items.")


def _check_affordable(method: Record, value: int) -> None:
    if method["source"] == "gift_card" and cents(method["balance"]) < value:
        raise Refusal("insufficient_balance", "The gift card does not cover this.")


def _swaps(
    world: World, order: Record, old_ids: Sequence[str], new_ids: Sequence[str]
) -> list[tuple[Record, Record]]:
    """Items of the order, each with the variant of its product to put in its place."""
    _check_owned(order, old_ids)
    if len(old_ids) != len(new_ids):
        raise Refusal("numbers_differ", "Name one new item for each item.")
    left = list(order["items"])
    swaps = []
    for old_id, new_id in zip(old_ids, new_ids, strict=True):
        item = next(item for item in left if item["item_id"] == old_id)
        left.remove(item)
        swaps.append((item, _variant(world, item["product_id"], new_id)))
    return swaps


def _variant(world: World, product_id: str, item_id: str) -> Record:
    variant: Record = world.products[product_id]["variants"].get(item_id, {})
    if not variant.get("available"):
        raise Refusal("item_not_available", "There is no such item of this product.")
    return variant


def _difference(swaps: Iterable[tuple[Record, Record]]) -> int:
    return sum(cents(new["price"]) - cents(old["price"]) for old, new in swaps)
