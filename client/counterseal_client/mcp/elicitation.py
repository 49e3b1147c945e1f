"""A server's `elicitation/create`, answered by people at the gate instead of by the
client's user. The answer permits nothing: the calls of tools are gated as always."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ApiError
from ..gate import AsyncGate
from ..questions import QuestionDeclined, QuestionError
from .results import Json, RemoteError
from .tasks import INVALID_PARAMS

ELICITATION = "elicitation/create"


@dataclass(frozen=True, slots=True)
class Elicitor:
    """Asks the people `to` whom a server's questions go: a queue, or `@login`."""

    gate: AsyncGate
    to: str
    thread: str

    def takes(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Whether people answer a request of the server. An address that somebody
        must visit is left to the client's user."""
        return method == ELICITATION and (params or {}).get("mode", "form") == "form"

    def declare(self, params: Mapping[str, Any] | None) -> Json:
        """The params of the client's `initialize`, which now say that elicitation is
        answered."""
        known = dict(params or {})
        capabilities = dict(known.get("capabilities") or {})
        capabilities["elicitation"] = capabilities.get("elicitation") or {}
        return {**known, "capabilities": capabilities}

    async def answer(self, params: Mapping[str, Any] | None) -> Json:
        """The result of an elicitation. Raises RemoteError for a schema or a text that
        the gate refuses."""
        asked = params or {}
        schema, text = asked.get("requestedSchema"), str(asked.get("message", ""))
        try:
            content = await self.gate.ask(
                self.to, schema or {}, text, thread=self.thread
            )
        except QuestionDeclined:
            return {"action": "decline"}
        except QuestionError:
            return {"action": "cancel"}
        except ApiError as error:
            raise RemoteError(INVALID_PARAMS, str(error)) from error
        return {"action": "accept", "content": content}
