"""An agent of Microsoft Agent Framework whose tool waits for people without a process
that waits.

    python agent_framework_agent.py start   # proposes, and ends
    python agent_framework_agent.py resume  # after people decided

It needs `pip install "counterseal-client[agent-framework]"`. To stay runnable without a
model's key, the model is a script: it asks for one note.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["AGENT_FRAMEWORK_USER_AGENT_DISABLED"] = "true"

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.agent_framework import (
    build_tool,
    list_waiting,
    propose_calls,
    resume_run,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Stands for a chat client: one tool call first, then its last words."""

    async def _inner_get_response(self, *, messages: Any, **_: Any) -> ChatResponse:
        if any(one.type == "function_result" for one in messages[-1].contents):
            return ChatResponse(messages=[Message("assistant", ["I told Ann."])])
        call = Content.from_function_call("call_1", "send_note", arguments=NOTE)
        return ChatResponse(messages=[Message("assistant", [call])])


async def run_agent(action: str, gate: Gate, thread: str, file: str) -> None:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    tools = [build_tool(send_note)]
    agent = Agent(ScriptedClient(), tools=tools)
    if action == "start":
        session = AgentSession(session_id=thread)
        response = await agent.run("Tell Ann.", session=session)
        await propose_calls(response, session, tools)
    else:
        session = AgentSession.from_dict(json.loads(Path(file).read_text()))
        resumed = await resume_run(agent, session, tools, gate, wait_seconds=30)
        if resumed is None:
            sys.exit("Nobody has decided yet.")
        response = resumed
    Path(file).write_text(json.dumps(session.to_dict()))
    for waiting in list_waiting(session):
        sys.stdout.write(f"Waits for people: {waiting['url']}\n")
    sys.stdout.write(f"{response.text}\n")


def main(
    action: str, thread: str = "order_78291", file: str = "agent_framework_agent.json"
) -> None:
    with Gate() as gate:
        asyncio.run(run_agent(action, gate, thread, file))


if __name__ == "__main__":
    main(*sys.argv[1:])
