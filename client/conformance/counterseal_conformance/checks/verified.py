"""Pre-resume verification: what runs is what a person with the right to do so
approved, in time."""

from __future__ import annotations

import sqlite3

from ..catalogue import expect
from ..scripting import NOTE, build_turn
from ..subject import Subject
from .durable import expect_one_effect

LIFE_SECONDS = 60  # of a request that is to expire
REASON = "The customer has it already."
BEFORE, AFTER = b"hello", b"HELLO"


def check_approved_bytes(subject: Subject) -> None:
    """The checkpoint's bytes are changed in the file, with equal length."""
    subject.start_waiting(NOTE)
    subject.decide("approve")
    change_store(subject)
    subject.resume()
    texts = [effect.args["text"] for effect in subject.effects]
    expect("HELLO" not in texts, "the changed call ran")


def change_store(subject: Subject) -> None:
    """Rewrite the stored call. Raises CheckFailed when it is not in the file."""
    changed = 0
    with sqlite3.connect(subject.folder / "checkpoints.sqlite") as database:
        for table, column in list_columns(database):
            query = f'SELECT rowid, "{column}" FROM "{table}"'  # noqa: S608 - our own names
            for row, value in database.execute(query).fetchall():
                if BEFORE in read_bytes(value):
                    new = read_bytes(value).replace(BEFORE, AFTER)
                    update = f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?'  # noqa: S608
                    kept = new.decode() if isinstance(value, str) else new
                    database.execute(update, [kept, row])
                    changed += 1
    database.close()
    expect(changed > 0, "the stored call was not found")


def list_columns(database: sqlite3.Connection) -> list[tuple[str, str]]:
    """Every column of every table that has row numbers."""
    query = """
        SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c
        WHERE t.schema = 'main' AND t.type = 'table' AND NOT t.wr
        AND t.name NOT LIKE 'sqlite%'
    """
    return database.execute(query).fetchall()


def read_bytes(value: object) -> bytes:
    """The bytes of a text or a blob, none for anything else."""
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else b""


def check_unauthorized_answer(subject: Subject) -> None:
    """An approval in the framework's own form, which no person gave."""
    subject.start_waiting(NOTE)
    subject.run("answer", raw="approval")
    expect(subject.effects == [], "it ran")
    expect(subject.count_waiting() == 1, "the request no longer waits")


def check_expiry(subject: Subject) -> None:
    """The shortest time that a policy may give people is a minute."""
    report = subject.start(NOTE, details={"expires_in": LIFE_SECONDS})
    expect(report.state == "suspended", f"it did not suspend: {report}")
    request = subject.find_request()
    proposal = subject.gate.wait(request["proposal"], LIFE_SECONDS + 30)
    expect(proposal.status == "expired", f"the proposal is {proposal.status}")
    expect(proposal.decision is None, "a decision was recorded")
    late = subject.reviewer.decide(request["id"], "approve")
    expect(late.status_code != 200, "a late approval was taken")
    report = subject.resume()
    expect(subject.effects == [], "it ran")
    expect("Nobody decided in time" in " ".join(report.replies), f"{report}")


def check_rejection_holds(subject: Subject) -> None:
    """Code beside the adapter sends the refused call to the tools once more."""
    report = subject.start(NOTE, hostile=True)
    expect(report.state == "suspended", f"it did not suspend: {report}")
    subject.decide("reject", reason=REASON)
    report = subject.resume()
    words = " ".join(report.replies)
    expect(REASON in words, f"the reason did not reach the model: {report}")
    expect(subject.effects == [], "the hostile code made it run")


def check_parallel_identity(subject: Subject) -> None:
    """The first of two calls is rejected, the second approved. A framework may show
    them one after the other."""
    calls = [
        (f"call_{number}", "send_note", {"to": to, "text": "hello"})
        for number, to in enumerate(("ann", "bob"))
    ]
    report = subject.start([build_turn(*calls)])
    for _ in calls:
        expect(report.state == "suspended", f"it did not suspend: {report}")
        subject.decide("reject", to="ann", reason=REASON)
        subject.decide("approve", to="bob")
        report = subject.resume()
        if report.state == "finished":
            break
    expect_one_effect(subject)
    expect(subject.effects[0].args["to"] == "bob", "the rejected call ran")


CHECKS = {
    "verified.approved_bytes": check_approved_bytes,
    "verified.unauthorized_answer": check_unauthorized_answer,
    "verified.expiry": check_expiry,
    "verified.rejection_holds": check_rejection_holds,
    "verified.parallel_identity": check_parallel_identity,
}
