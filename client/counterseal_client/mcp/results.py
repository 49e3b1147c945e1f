"""What a client gets for a call: the server's result, why there is none, or where
people decide. Each is a result of MCP (`CallToolResult`) as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ..errors import CountersealError
from ..models import Proposal
from ..tool_errors import NothingHappened, ToolNotDeclared
from ..tools import ToolResult

RECORDED_BYTES = 64 * 1024
"""How much of a result the gate records. The client gets all of it once."""
SHOWN_CHARACTERS = 2000
"""How much of a larger result is recorded."""
PENDING_META = "counterseal/pending"
"""Where a pending result names its proposal and the page for people, for programs."""

Json = dict[str, Any]


class RemoteError(Exception):
    """The server answered a request with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.data = data
        self.message = message
        super().__init__(f"{code}: {message[:500]}")


class ToolFailed(Exception):
    """The server answered an approved call with an error of the tool, so that only it
    knows whether something happened. `result` is that answer."""

    def __init__(self, result: Json) -> None:
        self.result = result
        super().__init__(read_text(result)[:500] or "The tool reported an error.")


class ReadFailed(NothingHappened):
    """An error of a tool that changes nothing: no effect happened."""

    def __init__(self, result: Json) -> None:
        self.result = result
        text = read_text(result)[:500] or "The tool reported an error."
        super().__init__(text, code="tool_error")


def build_text(text: str, *, is_error: bool = False) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def build_error(error: CountersealError) -> Json:
    """Why there is no result, in words for the model. An entry that the policy lacks
    stands below, for a person."""
    text = str(error)
    if isinstance(error, ToolNotDeclared):
        text = "\n\n".join([text, *getattr(error, "__notes__", [])])
    return build_text(text, is_error=True)


def build_pending(proposal: Proposal) -> Json:
    """A result for a client that cannot wait: where people decide, and how to go on.

    It is marked as an error because a client checks any other result against the tool's
    output schema.
    """
    link = proposal.request.url if proposal.request else ""
    result = build_text(
        f"{describe_wait(proposal)}\nCall the tool again later with exactly the same"
        " arguments. That continues this call and asks nobody twice.",
        is_error=True,
    )
    result["_meta"] = {PENDING_META: {"proposal": proposal.id, "url": link}}
    return result


def build_result(result: ToolResult) -> Json:
    """The result of a performed call, with a notice if a reviewer changed it: the
    model's own message keeps the arguments that it wrote."""
    answer = read_result(result.value)
    if result.edited:
        args = json.dumps(dict(result.args), ensure_ascii=False)
        notice = f"A reviewer changed this call. Performed instead: {args}"
        content = [{"type": "text", "text": notice}, *answer.get("content", [])]
        answer = {**answer, "content": content}
    return answer


def build_failure(failed: ToolFailed) -> Json:
    """The server's own error, with what to make of it."""
    notice = (
        "Nobody can say whether this call had an effect. Do not call it again; a person"
        " finds out what happened."
    )
    content = [*failed.result.get("content", []), {"type": "text", "text": notice}]
    return {**failed.result, "content": content, "isError": True}


def read_result(value: Any) -> Json:
    """A recorded result as one of MCP. The gate may have performed the tool itself;
    then it is the JSON of its service."""
    if isinstance(value, Mapping) and isinstance(value.get("content"), list):
        return dict(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    answer = build_text(text)
    if isinstance(value, Mapping):
        answer["structuredContent"] = dict(value)
    return answer


def record_result(result: Mapping[str, Any]) -> Json:
    """The result as the gate records it: without `_meta`, and only its beginning if it
    is large."""
    kept = {
        key: value
        for key, value in result.items()
        if key not in ("_meta", "resultType")
    }
    content = json.dumps(kept, ensure_ascii=True)
    if len(content) <= RECORDED_BYTES:
        return kept
    digest = hashlib.sha256(content.encode()).hexdigest()
    text = (
        f"The call was performed. Its result has {len(content)} bytes (SHA-256"
        f" {digest}); the gate recorded only the beginning:\n"
    )
    # Marked as an error: a client would miss the structured content.
    return build_text(text + read_text(kept)[:SHOWN_CHARACTERS], is_error=True)


def read_text(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def describe_wait(proposal: Proposal) -> str:
    """What the call waits for, and where people decide. Guidance of a person is part of
    it."""
    if proposal.status == "executing":
        return "The call is being performed."
    link = proposal.request.url if proposal.request else ""
    text = "Nothing has happened yet: the call waits for approval."
    if link:
        text += f" People decide at {link}"
    if proposal.returned:
        text += f"\nA person returned it with guidance: {proposal.guidance}"
    return text
