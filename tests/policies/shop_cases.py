"""Cases of a shop's policy as one table: what is proposed, in which world, and the tier
it must reach.

Money is a decimal string here, as it is everywhere outside the gate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class World:
    """What the example takes as its runtime context."""

    local_hour: int = 12
    saturday_night: bool = False
    unattended: bool = False
    recent_failures: int = 0
    # Refunds of the same customer within the hour before, in their order.
    earlier_refunds: tuple[str, ...] = ()
    # What an evaluator or the agent itself would like; it is told to the gate as the
    # free text and the priority that an agent may send.
    suggestion: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What is proposed, in which world, and what the policy must demand."""

    name: str
    tool: str
    tier: str
    args: dict[str, Any] = field(default_factory=dict)
    world: World = World()
    requires_reason: bool | None = None
    timeout_minutes: int | None = None
    queue: str = ""

    def __str__(self) -> str:
        return self.name


def refund(amount: str, **more: Any) -> dict[str, Any]:
    return {"amount": amount, **more}


# The tiers of the tools, and the amount above which a refund escalates.
TOOL_POLICY = (
    Case("table: look_up_order", "look_up_order", "auto", timeout_minutes=60),
    Case("table: check_inventory", "check_inventory", "auto", timeout_minutes=60),
    Case(
        "table: send_email",
        "send_email",
        "approve",
        requires_reason=True,
        timeout_minutes=60,
    ),
    Case(
        "table: process_refund begins at approve",
        "process_refund",
        "approve",
        refund("1.00"),
        requires_reason=False,
        timeout_minutes=30,
    ),
    Case("table: 500.00 is not above", "process_refund", "approve", refund("500.00")),
    Case("table: 500.01 is above", "process_refund", "escalate", refund("500.01")),
    Case("table: delete_customer", "delete_customer", "escalate"),
    Case("table: change_shipped_address", "change_shipped_address", "escalate"),
)

# Failures raise the risk; a tool that is critical stays critical.
ESCALATE_RISK = (
    Case(
        "escalate_risk: critical wins",
        "delete_customer",
        "escalate",
        world=World(recent_failures=4),
    ),
)

# The risk of a refund by amount, hour and failures, and the edges of each condition.
DYNAMIC_RISK = (
    Case(
        "dynamic: refund $899",
        "process_refund",
        "escalate",
        refund("899.00"),
        World(local_hour=14),
    ),
    Case(
        "dynamic: read after failures",
        "look_up_order",
        "approve",
        world=World(local_hour=14, recent_failures=4),
    ),
    Case(
        "dynamic: shipped address",
        "change_shipped_address",
        "escalate",
        world=World(local_hour=10),
    ),
    Case(
        "dynamic: three failures are not more than three",
        "look_up_order",
        "auto",
        world=World(recent_failures=3),
    ),
    *(
        Case(
            f"dynamic: refund at {hour:02}:00 asks for a reason: {outside}",
            "process_refund",
            "approve",
            refund("40.00"),
            World(local_hour=hour),
            requires_reason=outside,
        )
        for hour, outside in ((7, True), (8, False), (17, False), (18, True))
    ),
)

# What an agent or an evaluator suggests: the tier of the policy is a floor.
ROUTED_TIER = (
    Case("routed: draft", "draft_reply", "auto", world=World(suggestion="auto")),
    Case(
        "routed: refund suggested auto",
        "process_refund",
        "approve",
        refund("40.00"),
        World(suggestion="auto"),
    ),
    Case(
        "routed: delete suggested approve",
        "delete_customer",
        "escalate",
        world=World(suggestion="approve"),
    ),
)

# Edited arguments are ruled on like any others.
MODIFICATION = (
    Case(
        "modified: 449.50 partial",
        "process_refund",
        "approve",
        refund("449.50", partial=True),
    ),
    Case("modified: 899.00", "process_refund", "escalate", refund("899.00")),
    Case("modified: a tool without policy", "wire_money", "approve"),
)

# Unattended on Saturday night, and three refunds of $49 in one hour.
SATURDAY = World(saturday_night=True, unattended=True)
EXERCISE = (
    Case("saturday: a look-up", "look_up_order", "auto", world=SATURDAY),
    Case(
        "saturday: an internal label",
        "add_label",
        "approve",
        world=SATURDAY,
        queue="oncall",
    ),
    Case(
        "saturday: a return label",
        "create_return_label",
        "approve",
        world=SATURDAY,
        queue="oncall",
    ),
    Case(
        "saturday: an address",
        "change_shipped_address",
        "escalate",
        world=SATURDAY,
        queue="oncall",
    ),
    Case(
        "saturday: a refund of 100.00",
        "process_refund",
        "approve",
        refund("100.00"),
        SATURDAY,
        requires_reason=True,
    ),
    Case(
        "saturday: a first refund of 100.01",
        "process_refund",
        "escalate",
        refund("100.01"),
        SATURDAY,
        requires_reason=True,
    ),
    Case("split: the first 49", "process_refund", "approve", refund("49.00")),
    Case(
        "split: the second 49",
        "process_refund",
        "approve",
        refund("49.00"),
        World(earlier_refunds=("49.00",)),
    ),
    Case(
        "split: the third 49",
        "process_refund",
        "escalate",
        refund("49.00"),
        World(earlier_refunds=("49.00", "49.00")),
    ),
)

# Mail to an internal test address is of low risk, and to anyone else it is not.
RECIPIENTS = (
    Case(
        "recipients: a test address",
        "send_email",
        "auto",
        {"to": ["qa@northgate-electronics.example"]},
    ),
    Case(
        "recipients: an external domain",
        "send_email",
        "approve",
        {"to": ["casey@mail.example"]},
        requires_reason=True,
    ),
)

CASES = (
    *TOOL_POLICY,
    *ESCALATE_RISK,
    *DYNAMIC_RISK,
    *ROUTED_TIER,
    *MODIFICATION,
    *EXERCISE,
    *RECIPIENTS,
)
