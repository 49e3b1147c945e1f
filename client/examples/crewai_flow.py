"""A CrewAI flow whose tool waits for people without a process that waits.

    python crewai_flow.py start   # proposes, and ends
    python crewai_flow.py resume  # after people decided

It needs `pip install "counterseal-client[crewai]"`. To stay runnable without a model's
key, the model is a script: it asks for one note."""

from __future__ import annotations

import sys
from typing import Any

from crewai import BaseLLM
from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.flow import Flow, listen, or_, router, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from pydantic import BaseModel

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.crewai import (
    GateProvider,
    list_unanswered,
    perform_calls,
    propose_calls,
    read_answer,
    resume_flow,
)


class ScriptedModel(BaseLLM):
    """Stands for a model: one tool call first, then its last words."""

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return "I told Ann."
        note = {"to": "ann", "text": "Your parcel is on its way."}
        return [{"id": "call_1", "name": "send_note", "input": note}]


class NoteState(BaseModel):
    id: str = ""
    messages: list[dict[str, Any]] = []


def build_flow(gate: Gate, store: SQLiteFlowPersistence) -> type[Flow[NoteState]]:
    model = ScriptedModel(model="script")

    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    tools = {"send_note": send_note}

    @persist(store)
    class NoteFlow(Flow[NoteState]):
        @start()
        def begin(self) -> None:
            if not self.state.messages:  # it also begins again after a crash
                self.state.messages.append({"role": "user", "content": "Tell Ann."})

        @router(or_(begin, "again"))
        def think(self) -> str:
            if not list_unanswered(self.state.messages):
                answer = model.call(self.state.messages)
                self.state.messages.append(read_answer(answer))
            return "calls" if list_unanswered(self.state.messages) else "done"

        @listen("calls")
        @human_feedback(message="Waits for the gate.", provider=GateProvider())
        def ask_people(self) -> Any:
            return propose_calls(tools, self.state.messages, thread=self.state.id)

        @router(ask_people)
        def act(self, _: Any) -> str:
            messages = self.state.messages
            messages += perform_calls(tools, messages, thread=self.state.id)
            return "again"

    return NoteFlow


def main(
    action: str, thread: str = "order_78291", file: str = "crewai_flow.sqlite3"
) -> None:
    store = SQLiteFlowPersistence(file)
    with Gate() as gate:
        flow = build_flow(gate, store)
        if action == "start":
            result = flow(persistence=store).kickoff(inputs={"id": thread})
        else:
            result = resume_flow(flow, thread, store, gate, wait_seconds=30)
    if isinstance(result, HumanFeedbackPending):
        for waiting in result.callback_info["waiting"]:
            sys.stdout.write(f"Waits for people: {waiting['url']}\n")
    elif state := store.load_state(thread):
        sys.stdout.write(f"{state['messages'][-1]['content']}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
