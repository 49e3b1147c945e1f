"""The audit log and its periods, the outbox, restore epochs, promotions and heartbeats.
Triggers in the database refuse any update or deletion of the log's rows
(docs/invariants.md I28).

The tables of the log are partitioned by the id of the record, a partition of each for
every period (journal/periods.py). Partitions have their own foreign keys and unique
indexes, so that a period can leave the database (journal_create_period in
migrations/0002_triggers.py).
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Func
from django.db.models.functions import Now


class TransactionIdField(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's xid8: the 64-bit id of the transaction that wrote the row."""

    def db_type(self, connection: Any) -> str:
        return "xid8"


class CurrentTransactionId(Func):
    """`pg_current_xact_id()` in a query: the id of the transaction that runs it."""

    function = "pg_current_xact_id"
    arity = 0


class LogRecord(models.Model):
    """One change in the audit log; `leaf` holds the exact bytes that auditors hash."""

    kind = models.CharField(max_length=64)
    at = models.DateTimeField()
    leaf = models.BinaryField()
    # Copies of members of the leaf, so that pages can query them; the leaf is
    # authoritative.
    proposal = models.CharField(max_length=40, blank=True)
    request = models.CharField(max_length=40, blank=True)
    agent = models.CharField(max_length=64, blank=True)
    thread = models.CharField(max_length=128, blank=True)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=64, blank=True)
    # The sequencer places records in this order, once no older transaction is open.
    xid = TransactionIdField(db_default=CurrentTransactionId(), editable=False)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["xid", "id"], name="log_unsequenced"),
            models.Index(fields=["proposal", "id"], name="log_by_proposal"),
            models.Index(fields=["agent", "thread", "id"], name="log_by_thread"),
            models.Index(
                fields=["actor_id", "id"],
                name="log_by_actor_alone",
                condition=models.Q(proposal=""),
            ),
            # Rows are never updated, so each day's are side by side.
            BrinIndex(fields=["at"], name="log_day"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def data(self) -> dict[str, Any]:
        """The `data` member of the leaf; private members in it are HMACs."""
        data: dict[str, Any] | None = json.loads(bytes(self.leaf))["data"]
        return data or {}


class LogPayload(models.Model):
    """The text and the salt behind a leaf's HMACs. The log's proofs do not need it."""

    record = models.OneToOneField(
        LogRecord,
        on_delete=models.PROTECT,
        related_name="payload",
        primary_key=True,
        db_constraint=False,
    )
    salt = models.BinaryField()
    values = models.JSONField()

    def __str__(self) -> str:
        return f"payload of {self.record_id}"


class LogPosition(models.Model):
    """A record's position in the log: dense from 0, assigned by the sequencer. `seq` is
    unique in each period by an index, and across them by the sequencer's lock."""

    record = models.OneToOneField(
        LogRecord,
        on_delete=models.PROTECT,
        related_name="position",
        primary_key=True,
        db_constraint=False,
    )
    seq = models.BigIntegerField()
    leaf_hash = models.BinaryField()  # SHA-256(0x00 || leaf), RFC 6962 section 2.1

    def __str__(self) -> str:
        return f"{self.seq}"


class LogPeriod(models.Model):
    """A period of the log: the records with ids in one block of `periods.BLOCK`.

    No transaction was writing the log when it began, so every record of a period comes
    before every record of the next one.
    """

    number = models.BigIntegerField(primary_key=True)
    began_at = models.DateTimeField(db_default=Now())
    why = models.CharField(max_length=16)  # new, month, restore, …
    # The position of its first record, once every earlier record is placed.
    first_seq = models.BigIntegerField(null=True)
    # Its archive (journal/archives.py): the file, and the frontier of the log's tree
    # after its last record. Public ids of the two people who archived it.
    archive_file = models.CharField(
        max_length=64, blank=True, db_default="", default=""
    )
    archive_digest = models.CharField(
        max_length=64, blank=True, db_default="", default=""
    )
    records = models.BigIntegerField(null=True)
    tree = models.JSONField(null=True)
    asked_by = models.CharField(max_length=40, blank=True, db_default="", default="")
    archived_by = models.CharField(max_length=40, blank=True, db_default="", default="")
    archived_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="logperiod_number", condition=models.Q(number__gte=0)
            )
        ]

    def __str__(self) -> str:
        return f"period {self.number}"


class OutboxMessage(models.Model):
    """A promise to notify or resume, written with the change that caused it.

    One row per consumer. `done_at` means that the consumer did its work, not that the
    broker accepted the message.
    """

    topic = models.CharField(max_length=64)
    task = models.CharField(max_length=128)
    subject = models.CharField(max_length=64)
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(db_default=Now())  # when the sweep sends it next
    # Nobody may claim it before then: a consumer works on it, the last attempt failed
    # and the retry is delayed, or it was published for later.
    held_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    done_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"],
                name="outbox_due",
                condition=models.Q(done_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.subject}"


class Epoch(models.Model):
    """A restore epoch: one history of the database, which began with a restore from a
    backup. The first history has no row. While `began_at` is null, the restore was
    noticed and two people have not confirmed it yet."""

    number = models.PositiveIntegerField(primary_key=True)
    noticed_at = models.DateTimeField()
    why = models.CharField(max_length=16)  # behind, another, unreadable, …
    # Public ids of the first person, who asked to go on, and of the second, who agreed.
    asked_by = models.CharField(max_length=40, blank=True)
    reason = models.TextField(blank=True)
    by = models.CharField(max_length=40, blank=True)
    began_at = models.DateTimeField(null=True)
    from_record = models.BigIntegerField(null=True)  # highest id of earlier histories
    solo = models.BooleanField(db_default=False, default=False)  # begun in solo mode

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="epoch_two_people",
                condition=models.Q(began_at__isnull=True, by="")
                | models.Q(began_at__isnull=False, from_record__isnull=False)
                & ~models.Q(asked_by="")
                & ~models.Q(by="")
                & (models.Q(solo=True) | ~models.Q(by=models.F("asked_by"))),
            ),
        ]

    def __str__(self) -> str:
        return f"epoch {self.number}"


class KnownKey(models.Model):
    """The public id of a key that processes of this installation started with. The
    newest of each name is the present one."""

    name = models.CharField(max_length=16)  # DATA_KEY or another variable
    key_id = models.CharField(max_length=16)
    used_at = models.DateTimeField()  # when a process began to use it

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name", "key_id"], name="known_key_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.key_id}"


class Heartbeat(models.Model):
    """When one sweep last completed: one row per sweep, overwritten each time."""

    name = models.CharField(max_length=128, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Host(models.Model):
    """One host, which is one folder `STATE`, and what it last saw of the database. Only
    with FAILOVER=synchronous (journal/failover.py)."""

    id = models.CharField(max_length=32, primary_key=True)
    name = models.CharField(max_length=255)
    # The timeline on which this host last found its own note; it was there since.
    timeline = models.CharField(max_length=8)
    since = models.DateTimeField()
    beats = models.BigIntegerField(default=1)
    seen_at = models.DateTimeField()  # of the last beat

    def __str__(self) -> str:
        return self.name


class Promotion(models.Model):
    """A standby that took over without a loss, so that nobody had to confirm it."""

    system = models.CharField(max_length=20)
    database = models.BigIntegerField()
    before = models.CharField(max_length=8)  # the timelines
    timeline = models.CharField(max_length=8)
    at = models.DateTimeField()
    record = models.BigIntegerField()  # the note that was found
    hosts = models.JSONField(default=list)  # the names of those that found theirs

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["system", "database", "timeline"], name="promotion_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.before} to {self.timeline}"
