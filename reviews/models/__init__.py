"""The gate's tables. Revisions, request versions and decisions never change, and a
status changes only through `transitions`; triggers and checks enforce both
(docs/invariants.md I2, I3).
"""

from __future__ import annotations

from .alarms import Alarm, LateReport
from .assurance import Canary, DefectChange, SecondReview, UpheldReview
from .batches import Batch, BatchItem
from .datasets import Dataset, DatasetPart
from .desk import (
    Draft,
    Export,
    ExportPart,
    Hold,
    Message,
    MetricDay,
    MetricRollup,
    Note,
    QueuePreset,
)
from .evidence import EvidenceFile, EvidencePicture
from .executions import Execution, Grant, LookUp
from .on_call import DrillSighting, NotificationDrill, OnCallShift
from .people import (
    AuthorityChange,
    Notice,
    PersonalToken,
    Preferences,
    PushSubscription,
    SavedView,
    Sighting,
)
from .practice import Practice, PracticeEnding, PracticeItem
from .proposals import Proposal, Revision, StateReading
from .questions import Question
from .repairs import Repair, Reversal
from .requests import (
    IS_OPEN,
    ApprovalRequest,
    Decision,
    RequestVersion,
    SearchEntry,
    Snapshot,
)
from .stops import Incident, Stop
from .tracing import TraceExport

__all__ = [
    "IS_OPEN",
    "Alarm",
    "ApprovalRequest",
    "AuthorityChange",
    "Batch",
    "BatchItem",
    "Canary",
    "Dataset",
    "DatasetPart",
    "Decision",
    "DefectChange",
    "Draft",
    "DrillSighting",
    "EvidenceFile",
    "EvidencePicture",
    "Execution",
    "Export",
    "ExportPart",
    "Grant",
    "Hold",
    "Incident",
    "LateReport",
    "LookUp",
    "Message",
    "MetricDay",
    "MetricRollup",
    "Note",
    "Notice",
    "NotificationDrill",
    "OnCallShift",
    "PersonalToken",
    "Practice",
    "PracticeEnding",
    "PracticeItem",
    "Preferences",
    "Proposal",
    "PushSubscription",
    "Question",
    "QueuePreset",
    "Repair",
    "RequestVersion",
    "Reversal",
    "Revision",
    "SavedView",
    "SearchEntry",
    "SecondReview",
    "Sighting",
    "Snapshot",
    "StateReading",
    "Stop",
    "TraceExport",
    "UpheldReview",
]
