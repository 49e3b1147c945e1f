"""How the house is built: one door for state, one for locks, transactions opened by
operations alone, nothing leaving from inside them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from io import StringIO

import pytest
from django.apps import apps
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.module_loading import import_string

from agents import transitions as agents_transitions
from hitl import state_diagram, transaction_map
from policies.models import PolicyVersion
from reviews import transitions as reviews_transitions
from tests.guards import ROOT
from tests.sources import Source, last_name, product, templates


def is_declared(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Call) and last_name(node.func) == "operation"
        for node in function.decorator_list
    )


OPERATIONS = transaction_map.load_operations()
WRITERS = {"create", "update", "get_or_create", "update_or_create", "bulk_create"}
MACHINES = [*reviews_transitions.MACHINES, *agents_transitions.MACHINES, PolicyVersion]
MODELS = {model.__name__ for model in MACHINES}
STATUS_DOORS = {"journal/state_machine.py"}
TABLES = "(" + "|".join(model._meta.db_table for model in MACHINES) + ")"
STATUS_SQL = re.compile(rf"(INSERT INTO|UPDATE)\s+\"?{TABLES}", re.I)
SQL_DOORS = {
    "agents/transitions.py",  # ON CONFLICT DO NOTHING, by the machine's edge
    "agents/checkpoints.py",  # stores the key of a thread, and no status
    "reviews/executions/leases.py",  # sets when it began, and no status
}


def writes_status(source: Source) -> Iterator[int]:
    """Lines that set a `status` on a row, by any of Django's ways."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(attr="status", ctx=ast.Store()):
                yield node.lineno
    for name, call in source.calls():
        words = {keyword.arg for keyword in call.keywords}
        if name in WRITERS | MODELS and "status" in words:
            yield call.lineno
        if name == "setattr" and "status" in ast.unparse(call.args[1]):
            yield call.lineno
        if name == "update_fields" or "update_fields" in words:
            yield from (call.lineno for _ in re.findall("'status'", ast.unparse(call)))


def test_a_status_is_written_through_the_machine_only() -> None:
    found = {s.path: list(writes_status(s)) for s in product()}
    assert {path for path, lines in found.items() if lines} == STATUS_DOORS
    by_hand = {s.path for s in product() if STATUS_SQL.search(s.text)}
    assert by_hand <= SQL_DOORS
    updating = {s.path for s in product() if "update_rows" in dict(s.calls())}
    assert updating == STATUS_DOORS


def test_rows_are_locked_in_locks_only() -> None:
    for source in product():
        words = {name for name, _ in source.calls()}
        locks = source.path.endswith("/locks.py")
        assert locks or "select_for_update" not in words, source.path
        sequencer = source.path == "journal/sequencer.py"
        assert locks or sequencer or "pg_advisory" not in source.text, source.path


# Who opens a transaction: operations, and a savepoint inside one.
OPENERS = {
    "journal/operations.py": "transaction.atomic(durable=True)",
    "journal/transactions.py": "transaction.atomic(savepoint=True)",
}
OPENED = re.compile(r"\btransaction\.atomic\b|import .*\batomic\b")


def test_transactions_are_durable_and_opened_by_operations_only() -> None:
    found = {s.path: len(OPENED.findall(s.text)) for s in product()}
    assert {path: n for path, n in found.items() if n} == dict.fromkeys(OPENERS, 1)
    for source in product():
        assert OPENERS.get(source.path, "") in source.text, source.path
    declared = {
        f"{source.path.removesuffix('.py').replace('/', '.')}.{function.name}"
        for source in product()
        for function in source.functions()
        if is_declared(function)
    }
    assert declared == {row.name for row in OPERATIONS}


def test_the_transaction_map_is_fresh() -> None:
    """`manage.py transaction_map > docs/transactions.md`"""
    printed = StringIO()
    call_command("transaction_map", stdout=printed)
    assert printed.getvalue() == transaction_map.format_page()
    assert (ROOT / "docs" / "transactions.md").read_text() == printed.getvalue()


def test_the_transaction_map_names_what_there_is() -> None:
    models = {model.__name__ for model in apps.get_models()}
    texts = {text for source in product() for text in texts_in(source.tree)}
    for row in OPERATIONS:
        assert all(import_string(name) for name in row.entries)
        assert set(re.findall(r"\b[A-Z]\w+", row.writes)) <= models, row
        assert set(re.findall(r"\w+\.\w+", row.logs)) <= texts, row


def test_an_operation_declares_its_facts() -> None:
    for row in OPERATIONS:
        assert row.locks or row.writes or row.logs or row.after, row.name
        assert not any("._" in name for name in row.entries), row.name


def texts_in(node: ast.AST) -> Iterator[str]:
    """Every string of the source, except for those of the declarations."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Call(func=ast.Name(id="operation")):
            return
    for child in ast.iter_child_nodes(node):
        yield from texts_in(child)


def calls_in(function: ast.FunctionDef) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield last_name(node.func), node


# Who may ask this host what time it is, and why no decision hangs on it.
OWN_CLOCK = {
    "hitl/health/checks.py",  # to compare it with the database's
    "journal/dispatch.py",  # when a message was sent, as its age is shown
    "hitl/celery_workarounds.py",  # to see that it jumped
    "reviews/tool_services/readers.py",  # when a service was asked, as it is shown
    "reviews/effects/describe.py",  # how long a sentence stays in memory
    "reviews/outbound/webhooks.py",  # in a signature, which the receiver compares
}
OWN_TIME = re.compile(
    r"\btimezone\.now\(|\b(datetime|date)\.(now|today|utcnow)\(|\btime\.(time|localtime|gmtime)\("
)


def test_no_decision_asks_this_hosts_clock() -> None:
    """Deadlines, leases and windows are the database's: `journal.clock` (T8)."""
    found = {s.path for s in product() if OWN_TIME.search(s.text)}
    assert {path for path in found if not path.startswith("demo/")} <= OWN_CLOCK


def test_nothing_is_sent_from_inside_an_operation() -> None:
    """No `.delay()`: promises are outbox rows; the outbox nudges after the commit and
    a sweep hands over what it found, outside any transaction."""
    beat = {"hitl/celery.py"}
    senders = {"journal/dispatch.py"}
    for source in product():
        words = {name for name, _ in source.calls()}
        assert "delay" not in words, source.path
        assert source.path in beat or "apply_async" not in words, source.path
        assert source.path in senders or "send_task" not in words, source.path
        for function in filter(is_declared, source.functions()):
            words = {name for name, _ in calls_in(function)}
            assert not words & {"send_task", "post", "perform", "read"}, source.path


def test_the_key_of_redaction_is_derived_in_one_place() -> None:
    users = {s.path for s in product() if "redaction.derive_thread_key(" in s.text}
    assert users == {"reviews/redaction/redactor.py"}


# What few processes use and all of them would hold, with what it takes.
AT_FIRST_USE = {("reviews/presenters/__init__.py", "_show_statement")}  # sqlglot: 11 MB


def test_nothing_is_imported_inside_a_function() -> None:
    for source in product():
        for function in source.functions():
            inner = [
                n
                for n in ast.walk(function)
                if isinstance(n, ast.Import | ast.ImportFrom)
            ]
            place = (source.path, function.name)
            assert not inner or function.name == "ready" or place in AT_FIRST_USE, place


def test_there_are_no_signals_of_models() -> None:
    for source in product():
        assert "django.db.models.signals" not in source.text, source.path
        assert "receiver(" not in source.text, source.path


# Where escaping is switched off, and why that is right there.
RAW = {
    "templates/desk/as_seen/as_seen.html": "our own bytes, as the log proves",
    "templates/mail/alarm.txt": "plain text of facts and a link: never HTML",
    "templates/mail/drill.txt": "plain text of facts and a link: never HTML",
    "templates/mail/digest.txt": "plain text of facts and links: never HTML",
    "templates/mail/execution.txt": "plain text of facts and a link: never HTML",
    "templates/mail/incident.txt": "plain text of facts and a link: never HTML",
    "templates/mail/password_link.txt": "plain text and a link: never HTML",
    "templates/mail/question.txt": "plain text of facts and a link: never HTML",
    "templates/mail/request.txt": "plain text of facts and a link: never HTML",
    "templates/mail/test.txt": "plain text and a link: never HTML",
}
UNSAFE = re.compile(r"autoescape off|\|\s*safe\b|\|\s*safeseq\b|mark_safe|innerHTML")


def test_escaping_is_off_where_listed_only() -> None:
    found = {path for path, text in templates() if UNSAFE.search(text)}
    assert found == set(RAW)
    for source in product():
        audited = source.path == "desk/templatetags/inert.py"
        assert audited or not UNSAFE.search(source.text), source.path
        for name, call in source.calls():
            assert name not in {"SafeString", "SafeText"}, source.path
            if name in {"format_html", "format_html_join"}:
                first = call.args[0]
                assert not isinstance(first, ast.JoinedStr | ast.BinOp), source.path
    for path in (ROOT / "static").rglob("*.js"):
        ours = "vendor" not in path.parts and "htmx" not in path.name
        assert not ours or not UNSAFE.search(path.read_text()), path


def test_a_plain_text_mail_is_never_html() -> None:
    """What makes RAW right: no mail template has a tag or is sent as text/html."""
    for path, text in templates():
        if path.startswith("templates/mail/"):
            assert path.endswith(".txt")
            assert "<" not in text, path
    assert not any("text/html" in s.text for s in product() if "channels" in s.path)


# Pages that anybody may ask for, and what they give away.
OPEN_ROUTES = {
    "livez": "that the process lives",
    "readyz": "that its servers answer",
    "metrics": "figures, to a token of their own",
    "sign_in": "the way in",
    "setup": "the first account, to who has the link",
    "password_link": "where an invited person chooses a password, to who has the link",
    "sign_in_code": "signing in, after a right password",
    "sign_in_passkey": "what a browser asks a passkey, which names nobody",
    "provider_sign_in": "the way to the identity provider",
    "provider_callback": "and back from it, with its answer",
    "sign_in_by_link": "the way in of solo mode, to who has the link",
    "client": "how a program gets the client",
    "client_wheel": "the client, for pip",
    "help": "how it works",
    "jwks": "the public keys of grants",
    "manifest": "how a phone adds the site to its home screen",
    "authzen_metadata": "where the endpoints of AuthZEN are",
}


def routes(
    resolver: URLResolver | None = None, prefix: str = ""
) -> Iterator[tuple[str, URLPattern]]:
    for entry in (resolver or get_resolver()).url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from routes(entry, path)
        else:
            yield path, entry


def test_every_page_needs_a_login_unless_listed() -> None:
    for path, route in routes():
        opened = not getattr(route.callback, "login_required", True)
        if path.startswith(("api/", "access/", "scim/", "static/")):
            continue  # these ask for keys and tokens of their own
        assert opened == (route.name in OPEN_ROUTES), path


@pytest.mark.django_db
def test_the_migrations_are_the_models() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_the_diagrams_are_fresh() -> None:
    """`manage.py state_diagram > docs/states.md`"""
    printed = StringIO()
    call_command("state_diagram", stdout=printed)
    assert printed.getvalue() == state_diagram.format_page()
    assert (ROOT / "docs" / "states.md").read_text() == printed.getvalue()
