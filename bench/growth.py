"""What a long log costs: the bytes of a record, the time of what reads and moves it,
and what the number of its periods changes.

`python -m bench.growth --records 10000000` starts a PostgreSQL of its own that waits
for the disk, and adds records for at most `--most-seconds`; what fits is measured.
"""

from __future__ import annotations

import argparse
import sys

import django
from django.core.management import call_command
from django.utils.module_loading import import_string

from hitl.local.layout import InstallationError

from . import servers


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.growth", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--most-seconds", type=int, default=3600)
    chosen = parser.parse_args()
    try:
        with servers.start_private_servers():
            django.setup()
            call_command("migrate", interactive=False, verbosity=0)
            call_command("collectstatic", interactive=False, verbosity=0)
            # Named, not imported: it imports models, which settings must precede.
            measure = import_string("bench.growth_steps.measure_growth")
            measure(chosen.records, chosen.most_seconds)
    except InstallationError as error:
        sys.exit(f"bench: {error}")


if __name__ == "__main__":
    main()
