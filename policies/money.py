"""Money as integer minor units and a currency, never a float. Pure.

Documents and arguments carry an amount as a decimal string; rules and sums use the
result of `parse`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

# "Everything", of which no figure is known: the largest integer that JSON, and so RFC
# 8785, can carry. It is above every amount, ceiling and figure.
WHOLE = 2**53 - 1
MAX_MINOR = WHOLE - 1  # the largest amount
MIXED = ""  # the currency of a total of amounts in several currencies
WHOLE_WORDS = "the whole amount"
CURRENCY = re.compile(r"[A-Z]{3}")

# ISO 4217: the currencies whose minor unit is not a hundredth. A code that ISO does not
# list gets two decimals as well: no policy uses such a currency, so the gate escalates.
_NONE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE = "BHD IQD JOD KWD LYD OMR TND"
_FOUR = "CLF UYW"
_EXPONENTS = {
    code: places
    for places, codes in ((0, _NONE), (3, _THREE), (4, _FOUR))
    for code in codes.split()
}
_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]{0,15})(?:\.([0-9]{1,4}))?")


class InvalidMoney(ValueError):
    """The text is no amount of money. The message says why, without the text."""


class Money(NamedTuple):
    """An amount in the currency's smallest unit: 899.00 USD is 89900."""

    minor: int
    currency: str

    @property
    def is_whole(self) -> bool:
        """Whether it is everything, of which no figure is known."""
        return self.minor >= WHOLE

    def __str__(self) -> str:
        return (
            WHOLE_WORDS if self.is_whole else f"{format_amount(self)} {self.currency}"
        )


def count_decimals(currency: str) -> int:
    """How many decimals the currency has, by ISO 4217."""
    return _EXPONENTS.get(currency, 2)


def parse(text: object, currency: object, *, negative: bool = False) -> Money:
    """Parse an amount, for example `parse("899.00", "USD")`. Raises `InvalidMoney` for
    anything but a string, and for exponents, signs (except a minus with `negative`),
    leading zeros, more decimals than the currency has, and amounts above 2^53-1 minor
    units."""
    if not isinstance(currency, str) or not CURRENCY.fullmatch(currency):
        raise InvalidMoney("the currency must be three capital letters")
    if not isinstance(text, str):
        raise InvalidMoney('an amount must be a decimal string such as "899.00"')
    match = _DECIMAL.fullmatch(text)
    if not match:
        raise InvalidMoney('this is not a decimal amount such as "899.00"')
    sign, whole, fraction = match.groups()
    if sign and not negative:
        raise InvalidMoney("an amount must not be negative")
    return Money(_to_minor_units(sign, whole, fraction or "", currency), currency)


def parse_minor(value: object, currency: object) -> Money:
    """An amount that is sent in minor units, for example `parse_minor(89900, "USD")`.
    Raises `InvalidMoney` for anything but a whole number from 0 to `MAX_MINOR`."""
    if not isinstance(currency, str) or not CURRENCY.fullmatch(currency):
        raise InvalidMoney("the currency must be three capital letters")
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidMoney("an amount in minor units must be a whole number like 89900")
    if value < 0:
        raise InvalidMoney("an amount must not be negative")
    if value > MAX_MINOR:
        raise InvalidMoney(f"the largest amount is {MAX_MINOR} minor units")
    return Money(value, currency)


def format_amount(money: Money) -> str:
    """The decimal string of an amount that is not the whole, as `parse` reads it."""
    places = count_decimals(money.currency)
    sign = "-" if money.minor < 0 else ""
    digits = str(abs(money.minor)).rjust(places + 1, "0")
    if not places:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def format_money(amount: Money) -> str:
    """An amount for people: `12,500.00 USD`, with thousands grouped."""
    if amount.is_whole:
        return WHOLE_WORDS
    whole, point, decimals = format_amount(amount).partition(".")
    sign = "-" if amount.minor < 0 else ""
    grouped = f"{int(whole.removeprefix('-')):,}"
    return f"{sign}{grouped}{point}{decimals} {amount.currency}"


def combine_amounts(amounts: Iterable[Money], currency: str) -> Money | None:
    """The total of the amounts as one Money; None where there are none.

    Amounts in several currencies are not added up. The result is then the part in
    `currency`, with MIXED as its currency, so that it cannot be compared with a ceiling
    or a figure of the policy. With a whole amount the total is the whole; an unknown
    currency then is `currency`.
    """
    parts = [*amounts]
    if any(part.is_whole for part in parts):
        codes = {part.currency for part in parts if part.minor} - {MIXED} or {currency}
        return Money(WHOLE, codes.pop() if len(codes) == 1 else MIXED)
    sums = sum_by_currency(parts)
    moved = {code: minor for code, minor in sums.items() if minor} or sums
    if len(moved) > 1:
        return Money(moved.get(currency, 0), MIXED)
    return next((Money(minor, code) for code, minor in moved.items()), None)


def is_narrower_ceiling(before: Money | None, after: Money | None) -> bool:
    """Whether the ceiling `after` allows no amount that `before` does not. Without one,
    every amount is allowed."""
    if before == after or (before is None and after is not None):
        return True
    if before is None or after is None or before.currency != after.currency:
        return False
    return after.minor <= before.minor


def sum_by_currency(amounts: Iterable[Money]) -> dict[str, int]:
    """The sum in minor units for each currency."""
    sums: dict[str, int] = {}
    for money in amounts:
        sums[money.currency] = sums.get(money.currency, 0) + money.minor
    return sums


def _to_minor_units(sign: str, whole: str, fraction: str, currency: str) -> int:
    places = count_decimals(currency)
    if len(fraction) > places:
        raise InvalidMoney(f"{currency} has {places} decimals")
    minor = int(whole + fraction.ljust(places, "0"))
    if minor > MAX_MINOR:
        raise InvalidMoney(f"the largest amount is {MAX_MINOR} minor units")
    return -minor if sign else minor
