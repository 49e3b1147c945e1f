"""A reader that fails is data: a problem, and nothing that could be mistaken."""

from __future__ import annotations

from datetime import UTC

import pytest

from reviews.tool_services import readers
from tests.reviews.definitions import tool

HERE = "tests.reviews.tool_services.test_readers"
ARGS = {"order_id": "78291", "amount": "49.00", "currency": "USD"}
ANSWER = {
    "before": {"reason": None, "refunded": "0.00"},
    "keys": {"customer": "C-1", "order": "78291", "planet": "earth"},
    "facts": {"shipped": True, "total": "899.00", "items": 2, "note": None},
    "preconditions": {"order_version": 7, "weather": "dry"},
    "labels": {"refunded": "Refunded so far"},
    "source": "store",
}
DECLARED = {"keys": ["customer", "order"], "preconditions": ["order_version"]}


def answers(args):
    return {"before": {"order": args["order_id"]}}


def breaks(args):
    raise RuntimeError(f"secret {args}")


def says_text(args):
    return "text"


def asks(url):
    return tool(reader={"kind": "webhook", "url": url}, **DECLARED)


def calls(name):
    return tool(reader={"kind": "callable", "path": f"{HERE}.{name}"}, **DECLARED)


def is_empty(reading):
    return reading.before is None and not (
        reading.keys or reading.facts or reading.preconditions or reading.labels
    )


def test_what_the_service_says_is_read_and_only_what_is_declared(service):
    service.body = ANSWER
    reading = readers.read_state(asks(service.url), ARGS)
    asked = {"tool": "process_refund", "args": ARGS, "agent": "", "thread": ""}
    assert service.payloads == [asked]
    assert reading.problem == ""
    assert reading.before == ANSWER["before"]
    assert reading.keys == {"customer": "C-1", "order": "78291"}
    assert reading.facts == ANSWER["facts"]
    assert reading.preconditions == {"order_version": 7}
    assert reading.labels == {"refunded": "Refunded so far"}
    assert reading.source == "store"
    assert reading.at.tzinfo is UTC


def test_no_before_state_is_not_a_problem(service):
    service.body = {"before": None, "keys": {}}
    reading = readers.read_state(asks(service.url), ARGS)
    assert (reading.before, reading.problem) == (None, "")


def test_a_tool_without_a_reader_gives_an_empty_reading():
    reading = readers.read_state(tool(), ARGS)
    assert is_empty(reading)
    assert reading.problem == ""


def test_a_function_can_read():
    assert readers.read_state(calls("answers"), ARGS).before == {"order": "78291"}


@pytest.mark.parametrize("name", ["breaks", "absent", "says_text"])
def test_a_function_that_fails_is_a_problem_without_its_text(name):
    reading = readers.read_state(calls(name), ARGS)
    assert is_empty(reading)
    assert reading.problem
    assert "secret" not in reading.problem


@pytest.mark.parametrize(
    "wrong",
    [
        {"before": []},
        {"before": "text"},
        {"keys": []},
        {"keys": {"customer": 7}},
        {"keys": {"customer": ""}},
        {"keys": {"customer": "x" * 201}},
        {"keys": {"customer": None}},
        {"facts": {"a": {}}},
        {"facts": {"a": []}},
        {"preconditions": 7},
        {"labels": {"a": 1}},
        {"source": 1},
    ],
)
def test_one_wrong_shape_empties_the_whole_reading(service, wrong):
    service.body = ANSWER | wrong
    reading = readers.read_state(asks(service.url), ARGS)
    assert is_empty(reading)
    assert reading.problem


@pytest.mark.parametrize("body", [[], b"<html>", b"", {"x": "y" * 70_000}])
def test_an_answer_that_cannot_be_read_is_a_problem(service, body):
    service.body = body
    reading = readers.read_state(asks(service.url), ARGS)
    assert is_empty(reading)
    assert reading.problem


def test_an_error_status_is_a_problem(service):
    service.status = 404
    assert readers.read_state(asks(service.url), ARGS).problem


def test_it_waits_no_longer_than_it_was_told(service):
    service.trick = "hang"
    reading = readers.read_state(asks(service.url), ARGS, timeout=0.3)
    assert is_empty(reading)
    assert reading.problem


def test_an_address_that_may_not_be_reached_is_a_problem(networks):
    assert readers.read_state(asks("http://169.254.169.254/"), ARGS).problem


def rehearses(args):
    return {"says": {"rows": 3, "table": args["order_id"]}, "source": "the database"}


def says_number(args):
    return {"says": 3}


def test_a_dry_run_is_stored_with_its_source_and_time():
    path = {"kind": "callable", "path": f"{HERE}.rehearses"}
    found = readers.read_state(tool(dry_run=path), ARGS).dry_run
    assert found is not None
    assert found["says"] == {"rows": 3, "table": "78291"}
    assert found["source"] == "the database"
    assert found["at"]
    assert readers.read_state(tool(dry_run=path), ARGS, rehearse=False).dry_run is None
    assert readers.read_state(tool(), ARGS).dry_run is None


def test_a_service_is_told_that_it_is_only_asked(service):
    service.body = {"says": ["would refund 49.00 USD"]}
    declared = tool(dry_run={"kind": "webhook", "url": service.url})
    found = readers.read_state(declared, ARGS).dry_run
    assert found is not None
    assert found["says"] == ["would refund 49.00 USD"]
    assert service.payloads == [
        {
            "tool": "process_refund",
            "args": ARGS,
            "agent": "",
            "thread": "",
            "dry_run": True,
        }
    ]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("breaks", "RuntimeError"),
        ("says_text", "it did not return a mapping"),
        ("says_number", "says is no text, list or object"),
        ("nowhere", "ImportError"),
    ],
)
def test_a_dry_run_that_fails_is_data_and_leaves_the_reading_alone(name, problem):
    dry = {"kind": "callable", "path": f"{HERE}.{name}"}
    reader = {"kind": "callable", "path": f"{HERE}.answers"}
    reading = readers.read_state(tool(reader=reader, dry_run=dry), ARGS)
    assert reading.dry_run is not None
    assert reading.dry_run["problem"] == problem
    assert reading.before == {"order": "78291"}
    assert "says" not in reading.dry_run


# In whose name it is asked.
ASKER = readers.Asker("riley", "t-7")


def names_all(args, *, tool, agent, thread):
    return {"before": {"tool": tool, "agent": agent, "thread": thread}}


def names_some(args, thread="none"):
    return {"before": {"thread": thread}}


def takes_any(args, **more):
    return {"before": more}


@pytest.mark.parametrize(
    ("name", "before"),
    [
        (
            "names_all",
            {"tool": "process_refund", "agent": "riley", "thread": "t-7"},
        ),
        ("names_some", {"thread": "t-7"}),
        (
            "takes_any",
            {"tool": "process_refund", "agent": "riley", "thread": "t-7"},
        ),
        ("answers", {"order": "78291"}),
    ],
)
def test_a_function_gets_what_it_names_and_an_older_one_the_arguments(name, before):
    reading = readers.read_state(calls(name), ARGS, asker=ASKER)
    assert (reading.before, reading.problem) == (before, "")


def test_a_service_is_told_agent_and_thread(service):
    service.body = ANSWER
    readers.read_state(asks(service.url), ARGS, asker=ASKER)
    (payload,) = service.payloads
    assert (payload["agent"], payload["thread"]) == ("riley", "t-7")
