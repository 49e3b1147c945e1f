"""An agent of Semantic Kernel whose function waits for people without a process that
waits.

    python semantic_kernel_agent.py start   # proposes, and ends
    python semantic_kernel_agent.py resume  # after people decided

It needs `pip install "counterseal-client[semantic-kernel]"`. To stay runnable without a
model's key, the model is a script: it asks for one note.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, ClassVar

from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.chat_completion_client_base import (
    ChatCompletionClientBase,
)
from semantic_kernel.contents import ChatHistory, ChatMessageContent
from semantic_kernel.contents.function_call_content import FunctionCallContent
from semantic_kernel.contents.utils.author_role import AuthorRole

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.semantic_kernel import (
    GateTools,
    RunPaused,
    resume_agent,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class ScriptedService(ChatCompletionClientBase):
    """Stands for a chat service: one call first, then its last words."""

    SUPPORTS_FUNCTION_CALLING: ClassVar[bool] = True

    async def _inner_get_chat_message_contents(
        self, chat_history: ChatHistory, settings: Any
    ) -> list[ChatMessageContent]:
        role = AuthorRole.ASSISTANT
        if chat_history.messages[-1].role == AuthorRole.TOOL:
            return [ChatMessageContent(role=role, content="I told Ann.")]
        name, arguments = "counterseal-send_note", json.dumps(NOTE)
        call = FunctionCallContent(id="call_1", name=name, arguments=arguments)
        return [ChatMessageContent(role=role, items=[call])]


async def run_agent(action: str, gate: Gate, thread: str, file: Path) -> None:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    tools = GateTools([send_note], thread=thread)
    service = ScriptedService(ai_model_id="script")
    agent = ChatCompletionAgent(
        service=service, kernel=tools.add_to(Kernel()), name="post"
    )
    try:
        if action == "start":
            response = await agent.get_response("Tell Ann.")
        else:
            paused = RunPaused.from_dict(json.loads(file.read_text()))
            response = await resume_agent(agent, paused, tools, gate, wait_seconds=30)
            if response is None:
                sys.exit("Nobody has decided yet.")
    except RunPaused as paused:
        file.write_text(json.dumps(paused.to_dict()))
        for waiting in paused.waiting:
            sys.stdout.write(f"Waits for people: {waiting['url']}\n")
    else:
        sys.stdout.write(f"{response.message.content}\n")


def main(
    action: str, thread: str = "order_78291", file: str = "semantic_kernel_agent.json"
) -> None:
    with Gate() as gate:
        asyncio.run(run_agent(action, gate, thread, Path(file)))


if __name__ == "__main__":
    main(*sys.argv[1:])
