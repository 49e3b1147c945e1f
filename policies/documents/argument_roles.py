"""Assigns a tool's arguments to the roles of its view. Pure.

A presenter shows roles such as the command or the host; a tool's schema has arguments.
`shown: {command: cmd}` in the policy assigns an argument to a role; without it the
usual names are tried in order. A presenter without an entry in ROLES has no roles and
shows typed rows.
"""

from __future__ import annotations

from collections.abc import Mapping

# presenter -> role -> the usual argument names for it, in order of preference.
ROLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "shell": {
        "command": ("command", "cmd", "script", "shell"),
        "argv": ("argv", "args", "arguments"),
        "cwd": ("cwd", "dir", "directory", "working_dir", "workdir"),
        "user": ("user", "run_as"),
        "host": ("host", "machine", "target"),
        "env": ("env", "environment"),
        "stdin": ("stdin", "input"),
    },
    "file": {
        "path": ("path", "file", "filename", "file_path"),
        "content": ("content", "text", "body", "contents"),
        "patch": ("patch", "diff"),
        "mode": ("mode", "permissions"),
        "owner": ("owner", "user"),
        "target": ("target", "link_to", "symlink"),
    },
    "email": {
        "from": ("from", "sender"),
        "reply_to": ("reply_to",),
        "to": ("to", "recipients"),
        "cc": ("cc",),
        "bcc": ("bcc",),
        "subject": ("subject",),
        "body": ("body", "text", "html"),
        "attachments": ("attachments", "files"),
    },
    "message": {
        "from": ("from", "sender", "as"),
        "to": ("to", "channel", "recipients", "room"),
        "thread": ("thread", "thread_ts", "reply_in"),
        "body": ("body", "text", "message", "content"),
        "attachments": ("attachments", "files"),
    },
    "money": {
        "payee": ("payee", "recipient", "to", "beneficiary", "customer"),
        "account": ("account", "iban", "account_number"),
        "fees": ("fee", "fees"),
    },
    "sql": {
        "statement": ("statement", "sql", "query"),
        "params": ("params", "parameters", "values"),
        "database": ("database", "db", "connection"),
    },
    "http": {
        "method": ("method", "verb"),
        "url": ("url", "uri", "address"),
        "query": ("query", "params"),
        "headers": ("headers",),
        "body": ("body", "json", "data", "payload"),
    },
    "access": {
        "action": ("action", "operation"),
        "who": ("who", "user", "principal", "member", "grantee", "group", "account"),
        "what": ("role", "roles", "permission", "permissions", "scopes", "policy"),
        "resource": ("resource", "target", "project", "repository", "bucket"),
        "until": ("until", "expires", "expires_at", "duration", "ttl"),
    },
    "deploy": {
        "repository": ("repository", "repo", "service", "project"),
        "base": ("base", "from", "from_commit", "before"),
        "head": ("head", "ref", "commit", "sha", "to", "version", "tag"),
        "branch": ("branch", "target", "into"),
        "environment": ("environment", "env", "stage"),
        "migrations": ("migrations", "steps"),
        "traffic": ("traffic", "percent", "share"),
        "rollback": ("rollback", "roll_back", "rollback_to"),
        "force": ("force", "force_push"),
    },
    "publish": {
        "action": ("action", "operation"),
        "where": ("where", "site", "channel", "page", "path", "url", "slug"),
        "audience": ("audience", "visibility", "visible_to"),
        "at": ("at", "publish_at", "from", "starts_at"),
        "embargo": ("embargo", "embargo_until"),
        "title": ("title", "headline"),
        "text": ("text", "body", "content"),
    },
    "config": {
        "key": ("key", "name", "flag", "setting"),
        "value": ("value", "enabled", "to"),
        "scope": ("scope", "environment", "env", "target"),
        "audience": ("audience", "segment", "users", "percent", "rollout"),
        "rollback": ("rollback", "roll_back", "previous", "fallback"),
    },
    "schedule": {
        "title": ("title", "summary", "subject"),
        "start": ("start", "starts_at", "when", "at", "due"),
        "end": ("end", "ends_at", "until"),
        "zone": ("zone", "timezone", "time_zone", "tz"),
        "who": ("invitees", "attendees", "guests", "assignee", "assignees"),
        "visibility": ("visibility", "audience"),
        "repeats": ("repeats", "recurrence", "rrule", "cron"),
        "text": ("description", "text", "body", "comment"),
    },
}

# The roles of the texts that an effect sends to its readers.
OUTGOING_ROLES: Mapping[str, tuple[str, ...]] = {
    "email": ("subject", "body"),
    "message": ("body",),
    "publish": ("title", "text"),
}
# What such a text is usually called in a tool whose view has no roles.
LETTER_NAMES = frozenset({"body", "email_body", "message_body", "reply"})
# Every view that a tool may declare; `table` shows plain typed rows.
PRESENTERS = frozenset({*ROLES, "deletion", "record", "table"})


def assign_roles(
    presenter: str, shown: Mapping[str, str], arguments: Mapping[str, object]
) -> dict[str, str]:
    """Role -> path of the argument that has it; a role without an argument is left out.

    `shown` is what the tool declares. A usual name is used only if the tool has an
    argument of this name that has no other role.
    """
    assigned = {}
    taken = set(shown.values())
    for role, usual in ROLES.get(presenter, {}).items():
        names = (n for n in usual if n in arguments and n not in taken)
        name = shown.get(role) or next(names, "")
        if name:
            assigned[role] = name
            taken.add(name)
    return assigned
