"""HumanLayer: its decorators with the gate behind them. Change one import and how `hl`
is made; the package `humanlayer`, whose hosted service has ended, is not needed.

    hl = HumanLayer(gate, run_id="order_78291")

    @hl.require_approval()
    def send_note(to: str, text: str) -> str: ...

    ask = hl.human_as_tool()                       # a tool that people answer

As before, a call waits for people in its process, and a refusal is returned as a text
for the model. With `wait_seconds=0` it raises ApprovalPending instead, so that the
process may end: make the same call again later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from counterseal_client.errors import ApiError, InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.operations import Details
from counterseal_client.signatures import build_call_id
from counterseal_client.tool_errors import ApprovalPending, ToolError
from counterseal_client.tools import ToolResult

from .calls import check_call_id, check_thread, format_result
from .flags import AdapterFlags

# The package is not needed, so its version is not checked.
FLAGS = AdapterFlags(
    framework="humanlayer",
    minimum="0.7.9",
    # As the decorators do, unless `wait_seconds` says otherwise.
    held_open=True,
    binds_request=False,
)

CONTACT_TOOL = "contact_human"
"""The tool of the policy by which `human_as_tool` asks people."""

_call_id: ContextVar[str] = ContextVar("humanlayer_call_id", default="")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class HumanLayer:
    """The decorators of HumanLayer for one run of an agent.

    `run_id` names the run at the gate; unlike HumanLayer's, it is never made up, since
    a run that starts again must have the same. `wait_seconds` is how long a call waits
    for people; None waits until the request ends. `details` are those of every
    proposal.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        run_id: str,
        wait_seconds: float | None = None,
        details: Details | None = None,
    ) -> None:
        self.run_id = check_thread(run_id, "run_id")
        self._gate = gate
        self._wait_seconds = wait_seconds
        self._details: Details = details or {}
        self._counts: Counter[str] = Counter()

    @contextmanager
    def name_call(self, call_id: str) -> Iterator[None]:
        """Give the call inside the model's own id. Without one, a call is named by its
        tool, its arguments and their count since this object was made, so a process
        that goes on with a stored run must use ids."""
        token = _call_id.set(check_call_id(call_id, [call_id]))
        try:
            yield
        finally:
            _call_id.reset(token)

    def require_approval(
        self,
        contact_channel: object = None,
        reject_options: Sequence[Any] | None = None,
    ) -> Decorator:
        """Put a function behind the gate, under its own name. `contact_channel` and
        `reject_options` are taken and left alone: the gate's people choose how they are
        reached, and a rejection has the gate's reasons."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            tool = self._gate.tool()(function)

            @wraps(function)
            def call_function(*args: Any, **kwargs: Any) -> Any:
                result = self._perform(tool, args, kwargs)
                if isinstance(result, str):
                    return result
                return format_result(result) if result.edited else result.value

            return call_function

        return decorate

    def human_as_tool(
        self,
        contact_channel: object = None,
        response_options: Sequence[Any] | None = None,
    ) -> Callable[..., str]:
        """A function for the model that asks people and returns their answer.

        At the gate the question is a proposal of the tool `contact_human`. A reviewer
        answers by an edit of its argument `answer`, or refuses with a reason; both
        arguments are taken and left alone, as by `require_approval`.
        """

        def read_answer(message: str, subject: str = "", answer: str = "") -> str:
            """Ask a person a question, and wait for the answer."""
            return answer or "They read it and wrote no answer."

        tool = self._gate.tool(CONTACT_TOOL)(read_answer)

        def contact_human(message: str, subject: str = "") -> str:
            """Ask a person a question, and wait for the answer."""
            asked = {"message": message, "subject": subject, "answer": ""}
            result = self._perform(tool, (), asked)
            return result if isinstance(result, str) else str(result.value)

        return contact_human

    def _perform(
        self, tool: GatedTool[..., Any], args: Any, kwargs: Any
    ) -> ToolResult | str:
        """The result of a call, or why there is none, for the model. Raises
        ApprovalPending, and what the function raises."""
        try:
            arguments = tool.definition.signature.bind_arguments(*args, **kwargs)
            return tool.perform(
                arguments,
                thread=self.run_id,
                call_id=_call_id.get() or self._count_call(tool.name, arguments),
                wait_seconds=self._wait_seconds,
                **self._details,
            )
        except ApprovalPending:
            raise
        except (ToolError, InvalidArguments, ApiError) as error:
            return str(error)

    def _count_call(self, tool: str, arguments: dict[str, Any]) -> str:
        first = build_call_id(tool, arguments, 1)
        self._counts[first] += 1
        return build_call_id(tool, arguments, self._counts[first])
