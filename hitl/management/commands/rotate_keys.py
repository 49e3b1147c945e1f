"""`counterseal keys rotate`: encrypts every stored value under the present DATA_KEY."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hitl import reencryption
from journal import known_keys


class Command(BaseCommand):
    help = (
        "Encrypts every stored value under the present DATA_KEY and names outcomes"
        " under the present TAG_KEY, while the gate runs. It may be stopped and run"
        " again. At the end it says which former keys nothing needs any more."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """*Raises* CommandError when a value could not be read, or is not done yet."""
        known_keys.check_keys()
        known_keys.confirm_keys()
        done = reencryption.rotate_keys(self._print_progress)
        reencryption.forget_unneeded(done)
        self.stdout.write(
            f"{sum(done.written.values())} values were encrypted again, and"
            f" {done.renamed} acknowledgements got their new id."
        )
        for (name, key_id), needs in done.needed.items():
            words = f"is still needed for {', '.join(needs)}" if needs else "can go"
            self.stdout.write(f"Former {name} {key_id}: {words}")
        if not done.needed:
            self.stdout.write(
                "There is no former key in DATA_KEYS_RETIRED or TAG_KEYS_RETIRED."
            )
        faults = [
            f"{count} values in {name} cannot be read"
            for name, count in done.unreadable.items()
            if count
        ]
        faults += [
            f"{count} values in {name} were locked: run this again"
            for name, count in done.busy.items()
            if count
        ]
        if faults:
            raise CommandError("; ".join(faults))

    def _print_progress(self, name: str, done: int, total: int) -> None:
        if total:
            self.stdout.write(f"{name}: {done} of {total}")
            self.stdout.flush()
