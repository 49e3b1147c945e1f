"""A tool that only reads is the reader of another, through its own executor."""

from __future__ import annotations

from typing import Any

import pytest

from policies import tools
from policies.documents import InvalidPolicy, parse_document
from reviews.models import Execution
from reviews.tool_services import readers
from tests import factories
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.service import Service

FILES = {"13": {"name": "payroll.xlsx", "owner": {"id": "U-4"}, "etag": "e1"}}


def get_file(call: Any) -> dict[str, Any]:
    return {**FILES[call.args["file_id"]], "asked_by": call.agent, "run": call.thread}


def _text(**more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["file_id"],
        "properties": {"file_id": {"type": "string"}},
        **more,
    }


def get(**parts: Any) -> dict[str, Any]:
    return {
        "title": "Read a file",
        "schema": _text(),
        "queue": "odd",
        "risk": "low",
        "profile": {
            "reversible": True,
            "blast_radius": 1,
            "reversible_because": "It only reads.",
        },
        "effect": "Read the file {file_id}",
        "execution_class": "keyed",
        "executor": {
            "kind": "callable",
            "path": "tests.reviews.tool_services.test_reading_tools.get_file",
        },
        **parts,
    }


def delete(**parts: Any) -> dict[str, Any]:
    return {
        "title": "Delete a file",
        "schema": _text(),
        "queue": "odd",
        "risk": "high",
        "profile": {"reversible": False, "blast_radius": 4},
        "effect": "Delete the file {file_id}",
        "presenter": "deletion",
        "execution_class": "keyed",
        "executor": {"kind": "callable", "path": "tests.worlds.keyed"},
        "keys": ["owner"],
        "facts": ["name"],
        "preconditions": ["etag"],
        "reader": {
            "tool": "get_file",
            "args": {"file_id": "$args.file_id"},
            "take": {"owner": "$result.owner.id"},
        },
        **parts,
    }


def document(**changes: Any) -> dict[str, Any]:
    found = factories.document_of_tests()
    found["tools"] |= {"get_file": get(), "delete_file": delete(), **changes}
    return found


@pytest.fixture
def files(gate: Gate) -> Gate:
    factories.policy(gate.people, document())
    gate.agent.tools = [*gate.agent.tools, "delete_file"]
    gate.agent.save()
    return gate


@pytest.mark.django_db(transaction=True)
def test_the_file_that_is_deleted_is_shown_without_a_line_of_code(files: Gate) -> None:
    request = propose(files.agent, "delete_file", args={"file_id": "13"}).request
    reading = request.sealed.revision.reading
    assert reading["problem"] == ""
    assert reading["before"]["name"] == "payroll.xlsx"
    assert reading["keys"] == {"owner": "U-4"}
    assert reading["facts"] == {"name": "payroll.xlsx"}
    assert reading["preconditions"] == {"etag": "e1"}
    assert reading["source"] == "Read a file"
    assert not Execution.objects.exists()  # a look is no effect


@pytest.mark.django_db(transaction=True)
def test_it_is_asked_in_the_name_of_the_agent(files: Gate) -> None:
    tool = tools.find_current_tool("delete_file")
    assert tool is not None
    asker = readers.Asker("riley", "t-3")
    reading = readers.read_state(
        tools.load_definition(tool), {"file_id": "13"}, asker=asker
    )
    assert reading.before is not None
    assert (reading.before["asked_by"], reading.before["run"]) == ("riley", "t-3")


@pytest.mark.django_db(transaction=True)
def test_a_reader_that_fails_is_a_problem_and_its_key_unresolved(files: Gate) -> None:
    """An unknown file: the function raises, and what has no key is blocked."""
    proposal = propose(files.agent, "delete_file", args={"file_id": "99"})
    assert proposal.blocked_by == "key.unresolved"


@pytest.mark.django_db(transaction=True)
def test_it_waits_no_longer_than_a_reader_may(gate: Gate, service: Service) -> None:
    hook = {"kind": "webhook", "url": service.url}
    factories.policy(gate.people, document(get_file=get(executor=hook)))
    service.trick = "hang"
    tool = tools.find_current_tool("delete_file")
    assert tool is not None
    definition = tools.load_definition(tool)
    reading = readers.read_state(definition, {"file_id": "13"}, timeout=0.3)
    assert reading.problem
    assert reading.before is None


@pytest.mark.django_db(transaction=True)
def test_a_service_hears_a_look_without_a_grant(gate: Gate, service: Service) -> None:
    hook = {"kind": "webhook", "url": service.url}
    factories.policy(gate.people, document(get_file=get(executor=hook)))
    service.body = {"status": "succeeded", "result": FILES["13"]}
    tool = tools.find_current_tool("delete_file")
    assert tool is not None
    asker = readers.Asker("riley", "t-3")
    found = [
        readers.read_state(tools.load_definition(tool), {"file_id": "13"}, asker=asker)
        for _ in range(2)
    ]
    first, second = service.payloads
    assert found[0].keys == {"owner": "U-4"}
    assert (first["tool"], first["agent"], first["thread"]) == (
        "get_file",
        "riley",
        "t-3",
    )
    assert first["grant"] == ""
    assert first["idempotency_key"] != second["idempotency_key"]


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"reader": {"tool": "get_fil"}}, "tool", "did you mean get_file?"),
        ({"reader": {"tool": "pay"}}, "tool", "its risk must be low"),
        (
            {"reader": {"tool": "get_file"}},
            "args",
            "get_file requires file_id",
        ),
        (
            {"reader": {"tool": "get_file", "args": {"file_id": "$args.file"}}},
            "args.file_id",
            "file is not an argument",
        ),
        (
            {"reader": {"tool": "get_file", "args": {"file_id": "$result.id"}}},
            "args.file_id",
            "a reader runs before there is a result",
        ),
        (
            {
                "reader": {
                    "tool": "get_file",
                    "args": {"file_id": "$args.file_id"},
                    "take": {"ownr": "$result.owner", "name": "owner"},
                }
            },
            "take.ownr",
            "did you mean owner?",
        ),
    ],
)
def test_a_reader_that_could_not_be_asked_is_refused(
    changes: dict[str, Any], path: str, says: str
) -> None:
    with pytest.raises(InvalidPolicy) as found:
        parse_document(document(delete_file=delete(**changes)))
    said = {error["path"]: error["message"] for error in found.value.errors}
    assert says in said[f"tools.delete_file.reader.{path}"]


@pytest.mark.parametrize(
    "parts",
    [
        {"executor": {"kind": "agent"}},
        {"execution_class": "opaque"},
        {"risk": "medium", "floor": "auto"},
        {"floor": "approve"},
    ],
)
def test_only_a_tool_that_reads_is_a_reader(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidPolicy) as found:
        parse_document(document(get_file=get(**parts)))
    assert "cannot be a reader" in found.value.errors[0]["message"]
