"""Money as integer minor units and a currency, never a float. Pure.

An amount travels as a decimal string; rules and sums see what `parse` makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

MAX_MINOR = 2**53 - 1  # what JSON, and so RFC 8785, can carry
MIXED = ""  # the currency of what is in several
CURRENCY = re.compile(r"[A-Z]{3}")

# ISO 4217: the codes whose minor unit is not a hundredth. A code that ISO does not
# list counts two decimals as well: it is no policy's currency, so the gate escalates.
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
    """The text is not an amount of money; the message says why, without the text."""


class Money(NamedTuple):
    """An amount in the currency's smallest unit: 899.00 USD is 89900."""

    minor: int
    currency: str

    def __str__(self) -> str:
        return f"{format_amount(self)} {self.currency}"


def exponent(currency: str) -> int:
    """How many decimals the currency has."""
    return _EXPONENTS.get(currency, 2)


def parse(text: object, currency: object, *, negative: bool = False) -> Money:
    """The amount that `text` says, for example `parse("899.00", "USD")`.

    Raises `InvalidMoney` for floats and numbers, exponents, signs (a minus may be
    allowed), leading zeros, more decimals than the currency has, and amounts that
    2^53-1 minor units cannot hold.
    """
    if not isinstance(currency, str) or not CURRENCY.fullmatch(currency):
        raise InvalidMoney("the currency is not three capital letters")
    if not isinstance(text, str):
        raise InvalidMoney('an amount is a decimal string such as "899.00"')
    match = _DECIMAL.fullmatch(text)
    if not match:
        raise InvalidMoney('this is not a decimal amount such as "899.00"')
    sign, whole, fraction = match.groups()
    if sign and not negative:
        raise InvalidMoney("an amount is not negative")
    return Money(_minor(sign, whole, fraction or "", currency), currency)


def format_amount(money: Money) -> str:
    """The decimal string that `parse` reads back as the same money."""
    places = exponent(money.currency)
    sign = "-" if money.minor < 0 else ""
    digits = str(abs(money.minor)).rjust(places + 1, "0")
    if not places:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def together(amounts: Iterable[Money], currency: str) -> Money | None:
    """All that is moved as one amount; None where there is none.

    Amounts of several currencies are not added up: what is in `currency` has then no
    currency of its own, so that no ceiling and no figure can be compared with it.
    """
    sums = totals(amounts)
    moved = {code: minor for code, minor in sums.items() if minor} or sums
    if len(moved) > 1:
        return Money(moved.get(currency, 0), MIXED)
    return next((Money(minor, code) for code, minor in moved.items()), None)


def totals(amounts: Iterable[Money]) -> dict[str, int]:
    """Minor units per currency: sums never mix currencies."""
    sums: dict[str, int] = {}
    for money in amounts:
        sums[money.currency] = sums.get(money.currency, 0) + money.minor
    return sums


def _minor(sign: str, whole: str, fraction: str, currency: str) -> int:
    places = exponent(currency)
    if len(fraction) > places:
        raise InvalidMoney(f"{currency} has {places} decimals")
    minor = int(whole + fraction.ljust(places, "0"))
    if minor > MAX_MINOR:
        raise InvalidMoney(f"the largest amount is {MAX_MINOR} minor units")
    return -minor if sign else minor
