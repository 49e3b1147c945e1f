"""A Google ADK agent whose tool waits for people without a process that waits.

    python google_adk_agent.py start   # proposes, and ends
    python google_adk_agent.py resume  # after people decided

It needs `pip install "counterseal-client[google-adk]"`. To stay runnable without a
model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.google_adk import (
    GateTool,
    list_waiting,
    resume_session,
)

APP, USER = "post", "ada"
NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedModel(BaseLlm):
    """Stands for a model: one tool call first, then its last words."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        call = types.FunctionCall(id="call_1", name="send_note", args=NOTE)
        part = types.Part(function_call=call)
        if len(llm_request.contents) > 1:
            part = types.Part(text="I told Ann.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def build_runner(gate: Gate, file: str) -> Runner:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    model = ScriptedModel(model="script")
    agent = LlmAgent(name="post", model=model, tools=[GateTool(send_note)])
    store = SqliteSessionService(file)
    return Runner(app_name=APP, agent=agent, session_service=store)


async def start_session(runner: Runner, session_id: str) -> list[Event]:
    await runner.session_service.create_session(
        app_name=APP, user_id=USER, session_id=session_id
    )
    message = types.Content(role="user", parts=[types.Part(text="Tell Ann.")])
    run = runner.run_async(user_id=USER, session_id=session_id, new_message=message)
    return [event async for event in run]


async def main(
    action: str, thread: str = "order_78291", file: str = "google_adk_agent.sqlite3"
) -> None:
    with Gate() as gate:
        runner = build_runner(gate, file)
        if action == "start":
            events = await start_session(runner, thread)
        else:
            resumed = await resume_session(
                runner, gate, user_id=USER, session_id=thread, wait_seconds=30
            )
            if resumed is None:
                sys.exit("Nobody has decided yet.")
            events = resumed
    waiting = list_waiting(events)
    for value in waiting.values():
        sys.stdout.write(f"Waits for people: {value['url']}\n")
    if not waiting:
        sys.stdout.write(f"{events[-1].content.parts[0].text}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
