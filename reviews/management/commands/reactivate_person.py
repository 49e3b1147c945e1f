"""`counterseal people reactivate`: open an account again. It has no password until
`set_password` sets one."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from policies.models import Person
from reviews import permissions
from reviews.administration import accounts

from . import deactivate_person


class Command(deactivate_person.Command):
    help = "Reactivates an account, which then has no password."
    operation: ClassVar[Callable[..., None]] = accounts.reactivate_account
    done: ClassVar[str] = (
        "is active again and has no password. Set one with"
        " `counterseal people password NAME --by ADMINISTRATOR`."
    )

    def _tell_more(self, who: Person) -> None:
        if permissions.is_reviewer_stopped(who):
            self.stdout.write(
                "Their decisions are still stopped. Resume them on the page Stop."
            )
