"""The money that an agent may move within 24 hours, over all its tools: a budget, how
people write it, and how much of it is used.

A budget is an amount for each currency, such as `{"USD": "500.00"}`. A currency that it
does not name has none: an agent with a budget moves no other money. What is used are
observations, like the sums of the policy: a proposal counts from when it is made, for
24 hours after its effect, and no longer once it is refused, withdrawn or expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import Sum

from journal.errors import InvalidInput, build_field_error

from . import money
from .models import Observation
from .money import InvalidMoney, Money

DAY = timedelta(hours=24)
FIELD = "daily_money"
MOST_CURRENCIES = 20
# Begins the name of a measure that no policy declares, followed by the currency.
BUDGET = "budget:"
Budget = Mapping[str, str]


def name_measure(currency: str) -> str:
    """The measure under which an agent's money in this currency is observed."""
    return f"{BUDGET}{currency}"


def parse_budget(text: str) -> dict[str, str]:
    """The budget that a person wrote as lines such as `500.00 USD`; empty for none.
    Raises InvalidInput."""
    budget: dict[str, str] = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        amount, currency = _parse_line(line)
        if currency in budget:
            _refuse(f"{currency} stands in two lines: keep one of them")
        budget[currency] = amount
    if len(budget) > MOST_CURRENCIES:
        _refuse(f"at most {MOST_CURRENCIES} currencies")
    return dict(sorted(budget.items()))


def _parse_line(line: str) -> tuple[str, str]:
    amount, _, currency = line.rpartition(" ")
    try:
        parsed = money.parse(amount.strip(), currency)
    except InvalidMoney as error:
        short = line if len(line) <= 40 else f"{line[:40]}…"
        _refuse(f'{short}: {error}; write a line such as "500.00 USD"')
    return money.format_amount(parsed), parsed.currency


def _refuse(rule: str) -> None:
    raise InvalidInput(errors=[build_field_error(FIELD, rule)])


def check_budget(budget: Budget) -> dict[str, str]:
    """The budget with its amounts as `parse_budget` writes them. Raises InvalidInput
    for what is no amount."""
    return parse_budget(write_budget(budget))


def write_budget(budget: Budget | None) -> str:
    """The budget as a person writes it, for `parse_budget`."""
    return "\n".join(f"{text} {code}" for code, text in sorted((budget or {}).items()))


def format_budget(budget: Budget | None) -> list[str]:
    """The budget for people, a line for each currency."""
    return [
        money.format_money(money.parse(text, code))
        for code, text in sorted((budget or {}).items())
    ]


def load_limit(budget: Budget, currency: str) -> Money | None:
    """What the budget allows in this currency; None where it does not name it."""
    text = budget.get(currency)
    return None if text is None else money.parse(text, currency)


def load_used(
    agent: str,
    currencies: Iterable[str],
    now: datetime,
    *,
    apart_from: Sequence[str] = (),
) -> dict[str, int]:
    """The minor units that the agent's proposals use of each of these currencies, apart
    from some proposals. One query."""
    names = {name_measure(code): code for code in currencies}
    rows = (
        Observation.objects.filter(
            measure__in=list(names), key=agent, counts=True, ran_by__gt=now - DAY
        )
        .exclude(proposal__in=apart_from)
        .values_list("measure")
        .annotate(total=Sum("amount_minor"))
        .order_by()
    )
    used = {names[measure]: int(total) for measure, total in rows}
    return {code: used.get(code, 0) for code in names.values()}


def find_time_of_room(
    agent: str, limit: Money, wanted: int, now: datetime
) -> datetime | None:
    """When enough of what is used will have left the 24 hours for an action of `wanted`
    minor units; None where no time alone makes the room."""
    rows = Observation.objects.filter(
        measure=name_measure(limit.currency),
        key=agent,
        counts=True,
        ran_by__gt=now - DAY,
    ).order_by("-ran_by")
    room = limit.minor - wanted
    for ran_by, ran, minor in rows.values_list("ran_by", "ran", "amount_minor"):
        room -= minor
        if room < 0:  # this one must leave first, and with it all that are older
            return ran_by + DAY if ran else None
    return now
