"""Claude Code behind the gate: its hooks propose what it is about to do, and answer
with what people decided (docs/frameworks/claude-code.md)."""

from __future__ import annotations

from ..adapters.flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="claude-agent-sdk",  # its wheel contains the program
    minimum="0.2.189",
    supports_edit=True,
    supports_respond=False,
    partial_ok=True,
    positional=False,
    needs_reason=True,
    model_reads_answer=True,
    held_open=True,
    binds_request=False,
    resume="event",
)
"""What a reviewer of these calls may expect."""
