"""Django's command line, for developers; everybody else has `counterseal`."""

from __future__ import annotations

import sys

import django
from django.core.management import execute_from_command_line

from hitl.command_line import explain_errors, prepare_environment
from hitl.garbage_collection import suspend_collection


def main() -> None:
    with explain_errors():
        prepare_environment(sys.argv[1:])
        with suspend_collection():
            django.setup()
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
