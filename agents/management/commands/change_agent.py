"""Change an agent's tools, its risk ceiling, its limits in 24 hours or its owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents import budgets, registry
from agents.management import agent_rows, lookups
from agents.models import Agent
from agents.registry import AgentChange
from journal import clock
from journal.errors import DomainError
from policies.budgets import Budget, parse_budget
from policies.choices import Risk
from policies.management import tables
from policies.management.lookups import load_person, to_command_error


class Command(BaseCommand):
    help = (
        "Changes an agent's allowed tools, maximum risk, limits in 24 hours or owner."
        " NAME is a tool of the active policy or a pattern such as 'files_*'. The"
        " agent's keys stay valid. What lets it do more waits for a second"
        " administrator."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--by", required=True, help="an administrator's username")
        tools: dict[str, Any] = {"action": "append", "metavar": "NAME", "default": []}
        parser.add_argument(
            "--tool", dest="tools", help="the complete list of allowed tools", **tools
        )
        parser.add_argument("--add-tool", dest="added", help="a tool to add", **tools)
        parser.add_argument(
            "--remove-tool", dest="removed", help="a tool to remove", **tools
        )
        parser.add_argument("--risk-ceiling", choices=[risk.value for risk in Risk])
        parser.add_argument(
            "--daily-proposals",
            type=int,
            metavar="NUMBER",
            help="the most that it may propose in 24 hours, over all its tools; 0: no"
            " limit",
        )
        parser.add_argument(
            "--daily-money",
            action="append",
            metavar="AMOUNT",
            help="the most that it may move in 24 hours, over all its tools, such as"
            " '500.00 USD'; once for each currency, all others it cannot move then; '':"
            " no limit",
        )
        parser.add_argument("--owner", help="a person's username")
        parser.add_argument(
            "--reason",
            default="",
            help="why the agent is to do more, for the second administrator",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        agent, by = lookups.load_agent(options["slug"]), load_person(options["by"])
        ceiling, owner = options["risk_ceiling"], options["owner"]
        try:
            change = AgentChange(
                tools=_resolve_tools(agent, options),
                risk_ceiling=Risk(ceiling) if ceiling else None,
                owner=load_person(owner) if owner else None,
                daily_proposals=options["daily_proposals"],
                daily_money=_parse_money(options["daily_money"]),
            )
            proposed = registry.change_agent(
                agent=agent, change=change, by=by, reason=options["reason"]
            )
            agent = lookups.load_agent(options["slug"])
        except DomainError as error:
            raise to_command_error(error) from error
        tools = ", ".join(agent.tools) or "no tools"
        self.stdout.write(
            f"{agent.slug} (owner {agent.owner.username}) may propose actions up to "
            f"{agent.risk_ceiling} risk: {tools}"
        )
        limits = agent_rows.format_limits(budgets.describe_limits(agent, clock.now()))
        for line in tables.format_fields(limits):
            self.stdout.write(line)
        if proposed is not None:
            self.stdout.write(
                "What lets it do more waits for a second administrator, who answers on"
                f" the agent's page: /agents/{agent.slug}/"
            )


def _parse_money(amounts: Sequence[str] | None) -> Budget | None:
    """The budget of these amounts; None when the option is not there."""
    return None if amounts is None else parse_budget("\n".join(amounts))


def _resolve_tools(agent: Agent, options: dict[str, Any]) -> Sequence[str] | None:
    """Return the agent's new list of tools, or None when no option names a tool. A tool
    that the policy no longer has can still be removed."""
    if not (options["tools"] or options["added"] or options["removed"]):
        return None
    allowed = (
        registry.match_tools(options["tools"]) if options["tools"] else agent.tools
    )
    added = registry.match_tools(options["added"])
    removed = registry.match_tools(options["removed"], among=agent.tools)
    return sorted({*allowed, *added} - set(removed))
