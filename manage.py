"""Django's command line, for developers; everybody else has `counterseal`."""

from __future__ import annotations

import sys

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from hitl.command_line import prepare_environment
from hitl.garbage_collection import suspend_collection
from hitl.local.layout import InstallationError


def main() -> None:
    try:
        prepare_environment()
        with suspend_collection():
            django.setup()
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, InstallationError) as error:
        sys.exit(f"counterseal: {error}")


if __name__ == "__main__":
    main()
