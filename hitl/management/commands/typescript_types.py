"""`manage.py typescript_types > client/typescript/src/api.ts`"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from hitl import api, typescript_types


class Command(BaseCommand):
    help = "Prints the types of the TypeScript client from the OpenAPI document."

    def handle(self, *args: Any, **options: Any) -> None:
        document = api.build_description()
        self.stdout.write(typescript_types.format_module(document), ending="")
