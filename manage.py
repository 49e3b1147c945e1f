"""The one command line. A private installation is the default here; `DEPLOYMENT` or
the addresses in the environment say otherwise."""

from __future__ import annotations

import os
import sys

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from hitl.garbage_collection import suspend_collection
from hitl.local import defaults
from hitl.local.layout import InstallationError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")
    try:
        if os.environ.setdefault("DEPLOYMENT", "local") == "local":
            defaults.fill_environment(os.environ)
        with suspend_collection():
            django.setup()
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, InstallationError) as error:
        sys.exit(f"counterseal: {error}")


if __name__ == "__main__":
    main()
