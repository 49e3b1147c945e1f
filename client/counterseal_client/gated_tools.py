"""A function behind the gate, as its caller sees it (`Gate.tool`)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, cast

from .errors import CountersealError
from .models import Proposal
from .operations import Details
from .tools import ToolCall, ToolDefinition, ToolResult

if TYPE_CHECKING:
    from .gate import AsyncGate, Gate

P = ParamSpec("P")
R = TypeVar("R")


class _BaseTool:
    """What both kinds of tools show of themselves."""

    def __init__(self, definition: ToolDefinition) -> None:
        self.definition = definition
        self.__name__ = definition.name
        self.__doc__ = definition.description

    @property
    def name(self) -> str:
        """The tool's name in the policy."""
        return self.definition.name

    @property
    def description(self) -> str:
        """What the tool does: the function's docstring."""
        return self.definition.description

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, for a model."""
        return self.definition.signature.build_schema()

    def _build_call(
        self,
        arguments: dict[str, Any],
        thread: str,
        call_id: str,
        wait_seconds: float | None,
        details: Details,
    ) -> ToolCall:
        return self.definition.build_call(
            arguments,
            thread=thread,
            call_id=call_id,
            details=details,
            wait_seconds=wait_seconds,
        )


class GatedTool(_BaseTool, Generic[P, R]):
    """A function behind the gate. A call proposes the action, waits for the people whom
    the policy asks, redeems the grant, runs the function with the approved arguments,
    which a reviewer may have edited, and reports the outcome.

    The same call continues where an earlier process died: it waits on, or performs what
    was approved meanwhile, or returns the recorded result. Where the policy has the
    gate perform the tool, the function is not called, and the call returns what the
    gate recorded.

    A call that ends without a result raises a ToolError.
    """

    def __init__(self, gate: Gate, definition: ToolDefinition) -> None:
        super().__init__(definition)
        self._gate = gate

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the tool in the current thread (`Gate.thread`). Outside any, the call
        belongs to the run of this process: no other process can continue it, so it is
        withdrawn when a person interrupts it."""
        call = self.definition.build_call_here(*args, **kwargs)
        try:
            return cast("R", self._run(call).value)
        except KeyboardInterrupt:
            if not call.lasting:
                self._withdraw_call(call)
            raise

    def call(
        self,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        wait_seconds: float | None = None,
        **details: Unpack[Details],
    ) -> R:
        """Call the tool with arguments from a model, under the framework's own id for
        the call. `wait_seconds` 0 raises ApprovalPending instead of waiting for
        people."""
        result = self.perform(
            arguments,
            thread=thread,
            call_id=call_id,
            wait_seconds=wait_seconds,
            **details,
        )
        return cast("R", result.value)

    def perform(
        self,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        wait_seconds: float | None = None,
        **details: Unpack[Details],
    ) -> ToolResult:
        """As `call`, and return the performed arguments with the result."""
        return self._run(
            self._build_call(arguments, thread, call_id, wait_seconds, details)
        )

    def propose(
        self,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        **details: Unpack[Details],
    ) -> Proposal:
        """Propose the call without performing it, and return its current state."""
        call = self._build_call(arguments, thread, call_id, 0, details)
        first = self._gate.run(self.definition.propose_call(call))
        return self._gate.get(first.id)

    def withdraw(self, proposal: str) -> Proposal:
        """Withdraw a proposal of this tool that can no longer be performed."""
        return self._gate.run(self.definition.operations.withdraw(proposal))

    def _withdraw_call(self, call: ToolCall) -> None:
        """Withdraw what the call proposed, unless it is under way or ended."""
        with suppress(CountersealError):
            proposal = self._gate.run(self.definition.propose_call(call))
            self.withdraw(proposal.id)

    def _run(self, call: ToolCall) -> ToolResult:
        return self._gate.run(self.definition.run_call(call), self.definition.function)


class AsyncGatedTool(_BaseTool, Generic[P, R]):
    """`GatedTool` for AsyncGate: the same calls, to be awaited."""

    def __init__(self, gate: AsyncGate, definition: ToolDefinition) -> None:
        super().__init__(definition)
        self._gate = gate

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        call = self.definition.build_call_here(*args, **kwargs)
        return cast("R", (await self._run(call)).value)

    async def call(
        self,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        wait_seconds: float | None = None,
        **details: Unpack[Details],
    ) -> R:
        result = await self.perform(
            arguments,
            thread=thread,
            call_id=call_id,
            wait_seconds=wait_seconds,
            **details,
        )
        return cast("R", result.value)

    async def perform(
        self,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        wait_seconds: float | None = None,
        **details: Unpack[Details],
    ) -> ToolResult:
        return await self._run(
            self._build_call(arguments, thread, call_id, wait_seconds, details)
        )

    async def propose(
        self,
        arguments: dict[str, Any],
        *,
        thread: str,
        call_id: str,
        **details: Unpack[Details],
    ) -> Proposal:
        call = self._build_call(arguments, thread, call_id, 0, details)
        first = await self._gate.run(self.definition.propose_call(call))
        return await self._gate.get(first.id)

    async def withdraw(self, proposal: str) -> Proposal:
        return await self._gate.run(self.definition.operations.withdraw(proposal))

    async def _run(self, call: ToolCall) -> ToolResult:
        flow = self.definition.run_call(call)
        return await self._gate.run(flow, self.definition.function)
