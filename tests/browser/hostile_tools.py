"""Tools that take any text wherever a tool may take one."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
PROFILE = {
    "reversible": True,
    "blast_radius": 3,
    "reversible_because": "Ask for it back.",
}
TOOLS: dict[str, dict[str, Any]] = {
    # Every kind of argument at once.
    "t_every": {
        "schema": {
            "type": "object",
            "required": ["name", "to", "files", "argv", "text", "open"],
            "properties": {
                "name": TEXT,
                "to": TEXTS,
                "files": TEXTS,
                "argv": TEXTS,
                "text": TEXT,
                "open": {"type": "object", "additionalProperties": True},
            },
        },
        "effect": "Do {name} for {to} with {files}",
        "floor": "approve",
    },
    # One string in a row of every list, and in the chips of its sentence.
    "t_row": {
        "schema": {
            "type": "object",
            "required": ["name", "to"],
            "properties": {"name": TEXT, "to": TEXT},
        },
        "effect": "Send {name} to {to}",
        "floor": "approve",
        "batchable": {"items": 50, "varying": ["name", "to"]},
        "reversal": {"kind": "reversible", "undo": "Ask for it back."},
    },
    "t_told": {
        "schema": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": TEXT},
        },
        "effect": "Say {name}",
    },
    "t_shell": {
        "schema": {
            "type": "object",
            "required": ["command"],
            "properties": {"command": TEXT},
        },
        "effect": "Run {command}",
        "presenter": "shell",
        "floor": "approve",
    },
    "t_pay": {
        "schema": {
            "type": "object",
            "required": ["payee", "amount", "currency"],
            "properties": {
                "payee": TEXT,
                "amount": TEXT,
                "currency": {"enum": ["USD", "EUR", "JPY", "KWD"]},
            },
        },
        "money": [{"amount": "amount", "currency": "currency"}],
        "effect": "Pay {amount} {currency} to {payee}",
        "presenter": "money",
        "floor": "approve",
    },
    "t_mail": {
        "schema": {
            "type": "object",
            "required": ["to", "subject", "body"],
            "properties": {
                "to": TEXTS,
                "cc": TEXTS,
                "bcc": TEXTS,
                "subject": TEXT,
                "body": TEXT,
            },
        },
        "effect": "Send the mail {subject} to {to}",
        "presenter": "email",
        "floor": "approve",
    },
    "t_note": {
        "schema": {
            "type": "object",
            "required": ["note", "meta"],
            "properties": {
                "note": TEXT,
                "meta": {"type": "object", "additionalProperties": True},
            },
        },
        "effect": "Note {note}",
        "floor": "approve",
    },
    "t_file": {
        "schema": {
            "type": "object",
            "required": ["name", "to"],
            "properties": {"name": TEXT, "to": TEXT},
        },
        "effect": "Send the file {name} to {to}",
        "floor": "approve",
    },
}


def registered(queue: str) -> dict[str, dict[str, Any]]:
    """The tools above as a policy names them."""
    shared = common(queue)
    return {
        name: {"title": f"The tool {name}", **shared, **fields}
        for name, fields in TOOLS.items()
    }


def common(queue: str) -> dict[str, Any]:
    """What all of them have in common."""
    return {
        "queue": queue,
        "risk": "medium",
        "profile": PROFILE,
        "execution_class": "keyed",
        "executor": {"kind": "agent"},
    }
