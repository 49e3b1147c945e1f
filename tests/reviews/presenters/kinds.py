"""An example of every kind of tool: its definition, its arguments, what was read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from policies.documents import Document, ToolDefinition, parse_document
from reviews.presenters import Presentation, present_effect

POLICY = Path(__file__).parents[2] / "kinds.yaml"
PATCH = """\
diff --git a/checkout/refunds.py b/checkout/refunds.py
index a81c04e..f00ba12 100644
--- a/checkout/refunds.py
+++ b/checkout/refunds.py
@@ -1,4 +1,4 @@ def limit_for
 def limit_for(customer):
-    return Money("500.00", "USD")
+    return Money("5000.00", "USD")

 def settle(order, amount):
diff --git a/.github/workflows/deploy.yml b/.github/workflows/deploy.yml
--- a/.github/workflows/deploy.yml
+++ b/.github/workflows/deploy.yml
@@ -18,2 +18,2 @@
-      - run: make test
+      - run: make test || true
       - run: make deploy
diff --git a/scripts/warm.sh b/scripts/warm.sh
new file mode 100755
--- /dev/null
+++ b/scripts/warm.sh
@@ -0,0 +1,2 @@
+#!/bin/sh
+rm -rf ./dist/* # as the reviewer requested
""".replace("\n\n", "\n \n")
CONFIG = "\n".join(f"option_{n} = {n}" for n in range(1, 30)) + "\n"

# tool -> (arguments, what was read or None)
EXAMPLES: Mapping[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "run_command": (
        {
            "cmd": "sudo -u deploy npm run build && rm -rf ./dist/* 2>/dev/null",
            "dir": "/srv/shop",
            "host": "build-02",
        },
        {"globs": {"./dist/*": 214}, "programs": {"sudo": "/usr/bin/sudo"}},
    ),
    "run_program": ({"argv": ["git", "push", "--force", "origin", "main"]}, None),
    "write_file": (
        {
            "path": "app/settings.toml",
            "content": CONFIG.replace("option_9 = 9", "option_9 = 900"),
            "mode": "0755",
        },
        {"content": CONFIG, "mode": "0644", "workspace": "/srv/shop"},
    ),
    "apply_patch": ({"diff": PATCH, "repository": "shop"}, None),
    "send_mail": (
        {
            "from": "billing@northgate.example",
            "reply_to": "billing@northgate-support.example",
            "to": ["dana@mail.example", "sam@northgate.example"],
            "subject": "Your refund",
            "body": "<p>Hello <b>Dana</b></p><img src='https://track.example/p.png'>"
            "<a href='https://pay.example/x'>pay</a>",
            "attachments": [{"name": "invoice.pdf.exe", "size": 4096}],
        },
        None,
    ),
    "post_message": (
        {"channel": "#general", "text": "@channel The shop is closed today."},
        None,
    ),
    "pay": (
        {
            "payee": "Alder & Sons",
            "iban": "DE02120300000000202051",
            "amount": "495.00",
            "currency": "EUR",
            "reference": "Invoice 7",
        },
        None,
    ),
    "order_parts": (
        {
            "supplier": "Harrow Components",
            "items": [
                {"part": "Hinge", "quantity": 40, "price": "12.50", "currency": "USD"},
                {"part": "Lid", "quantity": 2, "price": "180.00", "currency": "USD"},
            ],
            "shipping": {"method": "express", "cost": "35.00"},
        },
        None,
    ),
    "update_customer": (
        {
            "customer": "C-7",
            "email": "dana@new.example",
            "note": None,
            "tags": ["vip", "late"],
            "address": {"line1": "12 Alder Row", "city": "Harwick"},
            "since": "2026-03-01T09:00:00+02:00",
        },
        {
            "email": "dana@old.example",
            "note": "call first",
            "tags": ["vip"],
            "address": {"line1": "1 Elm", "city": "Harwick"},
            "orders": 3,
        },
    ),
    "delete_customer": ({"customer": "C-7", "why": "asked"}, {"orders": 3}),
    "run_sql": (
        {
            "sql": "UPDATE customers SET email = NULL, tier = 'gold'",
            "database": "shop",
        },
        {"rows": 12408, "keys": ["C-1", "C-2", "C-3"]},
    ),
    "call_api": (
        {
            "method": "POST",
            "url": "https://api.partner.example:8443/v1/orders?dry=no&api_key=abc",
            "headers": {"Authorization": "Bearer sk-live-1234", "Accept": "json"},
            "body": {"status": "shipped", "count": 2},
        },
        {"known_hosts": ["api.shop.example"]},
    ),
    "give_access": (
        {
            "action": "grant",
            "principal": "riley",
            "roles": ["storage.admin", "logs.*"],
            "resource": "projects/shop",
        },
        {
            "effective": ["logs.view"],
            "effective_after": ["logs.view", "logs.write", "storage.delete"],
        },
    ),
    "deploy": (
        {
            "repository": "shop",
            "base": "a81c04e",
            "head": "f00ba12",
            "environment": "production",
            "migrations": ["add column note", "DROP COLUMN legacy_id"],
            "traffic": 100,
        },
        {"checks": {"tests": "failure", "lint": "success"}},
    ),
    "publish_page": (
        {
            "page": "/returns",
            "audience": "public",
            "text": "You may return goods within 14 days.\nLabels are free.\n",
        },
        {"text": "You may return goods within 30 days.\nLabels are free.\n"},
    ),
    "set_flag": (
        {"flag": "refund_limit_check", "enabled": False, "percent": 100},
        {"value": True},
    ),
    "invite": (
        {
            "title": "Weekly review",
            "start": "2026-03-02T09:00:00+01:00",
            "end": "2026-03-02T10:00:00+01:00",
            "attendees": ["sam@northgate.example", "dana@mail.example"],
            "rrule": "FREQ=WEEKLY",
        },
        None,
    ),
    "something": ({"what": "a thing", "how": {"often": 2, "sure": True}}, None),
}


@cache
def policy() -> Document:
    return parse_document(POLICY.read_text())


def definition(name: str) -> ToolDefinition:
    return policy().tools[name]


def show(name: str, /, before: Any = ..., facts: Any = None, **args: Any) -> Any:
    """The example with these arguments replaced; `...` leaves one out.

    Untyped: a test knows which views it looks into.
    """
    usual, read = EXAMPLES[name]
    merged = {k: v for k, v in {**usual, **args}.items() if v is not ...}
    return present_effect(
        definition(name), merged, before=read if before is ... else before, facts=facts
    )


def tags(shown: Presentation) -> list[str]:
    return [tag.text for tag in shown.tags]


def loud(shown: Presentation) -> list[str]:
    return [tag.text for tag in shown.tags if tag.loud]


def rows(shown: Presentation) -> dict[str, Any]:
    """Every row of every group and of the other arguments, by path."""
    grouped = [r for view in shown.views for r in getattr(view, "rows", ())]
    return {row.path: row for row in [*grouped, *shown.other]}
