"""An Agno agent whose tool waits for people without a process that waits.

    python agno_agent.py start   # proposes, and ends
    python agno_agent.py resume  # after people decided

It needs `pip install "counterseal-client[agno]"`. To stay runnable without a model's
key, the model is a script: it asks for one note."""

from __future__ import annotations

import json
import sys
from typing import Any

from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.agno import build_tool, propose_calls, resume_run

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel(Model):
    """Stands for a model: one tool call first, then its last words."""

    def invoke(self, messages: list[Message], *_: Any, **__: Any) -> ModelResponse:
        if messages[-1].role == "tool":
            return ModelResponse(role="assistant", content="I told Ann.")
        function = {"name": "send_note", "arguments": json.dumps(NOTE)}
        call = {"id": "call_1", "type": "function", "function": function}
        return ModelResponse(role="assistant", tool_calls=[call])

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self.invoke(*args, **kwargs)

    def invoke_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def ainvoke_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> Any:
        raise NotImplementedError

    def _parse_provider_response_delta(self, response: Any) -> Any:
        raise NotImplementedError


def main(
    action: str, thread: str = "order_78291", file: str = "agno_agent.sqlite3"
) -> None:
    with Gate() as gate:

        @gate.tool
        def send_note(to: str, text: str) -> dict[str, str]:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return {"sent": to}

        agent = Agent(
            id="post",  # without an id, another process does not find its runs
            model=ScriptedModel(id="script"),
            tools=[build_tool(send_note)],
            db=SqliteDb(db_file=file),
            telemetry=False,
        )
        if action == "start":
            run = agent.run("Tell Ann.", session_id=thread)
        else:
            paused = agent.get_last_run_output(session_id=thread)
            run = resume_run(agent, paused, [send_note], gate, wait_seconds=30)
            if run is None:
                sys.exit("Nobody has decided yet.")
        if not run.is_paused:
            sys.stdout.write(f"{run.content}\n")
            return
        for waiting in propose_calls(run, [send_note]):
            sys.stdout.write(f"Waits for people: {waiting['url']}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
