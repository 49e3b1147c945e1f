"""What a new gate of `counterseal up` begins with: a policy, the account of solo mode,
and an agent that is ready for the first call."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from django.conf import settings

from agents import ready_agent
from policies import first_policy, solo_account
from policies.choices import Role
from policies.models import Person

from .keys import replace_key
from .layout import InstallationError, Layout

POLICY = Path(__file__).with_name("starter_policy.yaml")


def prepare_gate(here: Layout) -> None:
    """Create what is missing; it runs at every start. *Raises* InstallationError where
    solo mode finds other people."""
    if settings.COUNTERSEAL.solo:
        _check_alone(here)
    if first_policy.is_untouched():
        first_policy.activate_first_policy(POLICY.read_text("utf-8"))
    if settings.COUNTERSEAL.solo:
        person = solo_account.ensure_solo_person(*_ensure_login(here))
        ready_agent.ensure_ready_agent(owner=person, by=person)


def prepare_demo_agent() -> None:
    """Let the owner of the demo's agents have the ready one, too."""
    people = Person.objects.filter(is_active=True)
    owner = people.filter(groups__name=Role.OWNER).first()
    by = people.filter(groups__name=Role.ADMINISTRATOR).first()
    if owner is not None and by is not None:
        ready_agent.ensure_ready_agent(owner=owner, by=by)


def read_login(here: Layout) -> tuple[str, str]:
    """The user name and password of solo mode; empty where there are none yet. *Raises*
    InstallationError for a file that says neither."""
    try:
        login = json.loads(here.solo_file.read_text())
        return str(login["username"]), str(login["password"])
    except FileNotFoundError:
        return "", ""
    except (OSError, ValueError, KeyError, TypeError):
        raise InstallationError(
            f"STATE: {here.solo_file} cannot be read as the login of solo mode: remove"
            " it together with the rest of STATE, or restore it"
        ) from None


def _ensure_login(here: Layout) -> tuple[str, str]:
    username, password = read_login(here)
    if not username:
        username, password = ready_agent.find_user_name(), secrets.token_urlsafe(18)
        login = {"username": username, "password": password}
        replace_key(here.solo_file, json.dumps(login, indent=2))
    return username, password


def _check_alone(here: Layout) -> None:
    username, _ = read_login(here)
    if others := solo_account.find_others(username):
        raise InstallationError(
            f"--solo is for one person, and this gate has {_list(others)}: leave --solo"
            f" out, or give it a gate of its own: STATE={here.state}-solo counterseal"
            " up --solo"
        )


def _list(names: list[str]) -> str:
    shown = names[:3]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if names[3:] else "")
