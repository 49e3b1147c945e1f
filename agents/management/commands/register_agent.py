"""Register an agent and print its first key, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agents import keys, registry
from agents.registry import NewAgent
from journal.errors import DomainError
from policies import active
from policies.choices import Risk
from policies.management import lookups


class Command(BaseCommand):
    help = "Registers an agent and prints its first key. The key is not shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--name", default="")
        parser.add_argument("--owner", required=True, help="a person's username")
        parser.add_argument("--by", required=True, help="an administrator's username")
        parser.add_argument(
            "--tool",
            action="append",
            default=[],
            dest="tools",
            metavar="NAME",
            help="a tool, or a pattern of the active policy's tools such as 'files_*'",
        )
        parser.add_argument(
            "--risk-ceiling", choices=[risk.value for risk in Risk], default="critical"
        )
        parser.add_argument("--unattended", action="store_true")
        parser.add_argument(
            "--agent-version", default="", help="the version of its program"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        by = lookups.load_person(options["by"])
        try:
            new = NewAgent(
                slug=options["slug"],
                name=options["name"] or options["slug"].title(),
                owner=lookups.load_person(options["owner"]),
                tools=self._resolve_tools(options["tools"]),
                risk_ceiling=Risk(options["risk_ceiling"]),
                unattended=options["unattended"],
                version=options["agent_version"],
            )
            agent = registry.register_agent(new=new, by=by)
        except DomainError as error:
            raise lookups.to_command_error(error) from error
        self.stdout.write(keys.issue_key(agent=agent, by=by))

    def _resolve_tools(self, names: Sequence[str]) -> list[str]:
        """Keep plain names as given, because a later policy may define them, with a
        warning where the active one does not; expand patterns against it."""
        patterns = [name for name in names if registry.is_pattern(name)]
        named = [name for name in names if not registry.is_pattern(name)]
        policy = active.find_active_policy()
        known = active.load_document(policy).tools if policy else None
        for name in named:
            if known is not None and name not in known:
                text = f"The active policy has no tool {name}: calls of it are blocked."
                self.stderr.write(f"Warning: {text}")
        return [*named, *registry.match_tools(patterns)]
