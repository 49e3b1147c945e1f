"""One agent's connection to Counterseal, in blocking and in awaited calls.

`Gate` and `AsyncGate` have the same methods. Both only run the flows of `operations`
and `tools`: they send, wait and call the tools' functions.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast, overload

import anyio
import httpx2

from .calls import (
    CONNECT_SECONDS,
    Backoff,
    Connection,
    Effect,
    Flow,
    HttpAnswer,
    HttpCall,
    Pause,
    Step,
)
from .errors import Unreachable
from .gated_tools import AsyncGatedTool, GatedTool
from .models import Proposal
from .operations import Details, Operations
from .questions import (
    ask_people,
    get_question,
    open_question,
    wait_question,
    withdraw_question,
)
from .settings import find_credentials
from .tools import (
    EvidenceSource,
    ToolDefinition,
    ToolOptions,
    ToolRisk,
    check_declared,
    enter_thread,
    hold_claim,
)

P = ParamSpec("P")
R = TypeVar("R")
Value = TypeVar("Value")
Operation = Callable[Concatenate[Operations, P], Flow[Value]]


def _block(operation: Operation[P, Value]) -> Callable[Concatenate[Gate, P], Value]:
    """The operation as a method of Gate."""

    @functools.wraps(operation)
    def method(self: Gate, /, *args: P.args, **kwargs: P.kwargs) -> Value:
        return self.run(operation(self.operations, *args, **kwargs))

    return method


def _await(
    operation: Operation[P, Value],
) -> Callable[Concatenate[AsyncGate, P], Awaitable[Value]]:
    """The operation as a method of AsyncGate."""

    @functools.wraps(operation)
    async def method(self: AsyncGate, /, *args: P.args, **kwargs: P.kwargs) -> Value:
        return await self.run(operation(self.operations, *args, **kwargs))

    return method


class _BaseGate:
    """What both kinds share: the connection, and the tools that were declared."""

    def __init__(
        self,
        url: str | None,
        key: str | None,
        *,
        backoff: Backoff | None = None,
        approval_required_risk: ToolRisk = ToolRisk.HIGH,
    ) -> None:
        url, key = find_credentials(url, key)
        self.operations = Operations(Connection(url, key, backoff or Backoff()))
        self.approval_required_risk = approval_required_risk
        self.definitions: dict[str, ToolDefinition] = {}

    def thread(
        self, name: str, *, call_id: str = "", **details: Unpack[Details]
    ) -> AbstractContextManager[None]:
        """Name the run for the tools that are called inside, and give their proposals
        these details.

        Without `call_id`, a call is named by its tool and arguments: the same call in a
        repeated run finds its first proposal. Pass the framework's own id where there
        is one: a second call with that id and other arguments is then refused.
        """
        return enter_thread(name, call_id, details)

    def _define(
        self, function: Callable[..., Any], name: str, options: ToolOptions
    ) -> ToolDefinition:
        definition = ToolDefinition(
            function,
            self.operations,
            name=name,
            options=options,
            threshold=self.approval_required_risk,
        )
        self.definitions[definition.name] = definition
        return definition


class Gate(_BaseGate):
    """One agent's connection to Counterseal. Threads may share it.

    After the retries of `backoff`, every call raises ApiError when Counterseal refuses
    it and Unreachable when Counterseal does not respond.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        backoff: Backoff | None = None,
        approval_required_risk: ToolRisk = ToolRisk.HIGH,
        http: httpx2.Client | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """Without an address or a key, those of `counterseal_client.settings` hold.
        `http` replaces the connection pool, for proxies or a private CA. `sleep` takes
        seconds.

        Raises InvalidSettings.
        """
        super().__init__(
            url, key, backoff=backoff, approval_required_risk=approval_required_risk
        )
        self._http = http or httpx2.Client(follow_redirects=False)
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    propose = _block(Operations.propose)
    revise = _block(Operations.revise)
    withdraw = _block(Operations.withdraw)
    get = _block(Operations.get)
    wait = _block(Operations.wait)
    list_page = _block(Operations.list_page)
    messages = _block(Operations.messages)
    answer = _block(Operations.answer)
    ask_reviewers = _block(Operations.ask_reviewers)
    ask = _block(ask_people)
    open_question = _block(open_question)
    get_question = _block(get_question)
    wait_question = _block(wait_question)
    withdraw_question = _block(withdraw_question)
    redeem = _block(Operations.redeem)
    verify_grant = _block(Operations.verify_grant)
    report = _block(Operations.report)
    checkpoint = _block(Operations.checkpoint)
    resume = _block(Operations.resume)
    acknowledge = _block(Operations.acknowledge)
    finish = _block(Operations.finish)
    tools = _block(Operations.tools)
    whoami = _block(Operations.whoami)

    def list(self, *, status: str = "", thread: str = "") -> Iterator[Proposal]:
        """List this agent's proposals, newest first, page by page."""
        page = self.list_page(status=status, thread=thread)
        yield from page.items
        while page.next_cursor:
            page = self.list_page(status=status, thread=thread, cursor=page.next_cursor)
            yield from page.items

    @overload
    def tool(self, function: Callable[P, R], /) -> GatedTool[P, R]: ...
    @overload
    def tool(
        self,
        name: str = "",
        /,
        *,
        risk: ToolRisk = ToolRisk.SAFE,
        wait_seconds: float | None = None,
        audience: str = "",
        evidence: EvidenceSource | None = None,
    ) -> Callable[[Callable[P, R]], GatedTool[P, R]]: ...
    def tool(
        self,
        name: str | Callable[..., Any] = "",
        /,
        *,
        risk: ToolRisk = ToolRisk.SAFE,
        wait_seconds: float | None = None,
        audience: str = "",
        evidence: EvidenceSource | None = None,
    ) -> Any:
        """Declare a function as a tool that the gate controls, as `@gate.tool` or
        `@gate.tool(...)`; see `GatedTool` and `ToolOptions`. `name` is the tool's name
        in the policy, by default the function's."""
        if callable(name):
            return self.tool()(name)
        options = ToolOptions(risk, wait_seconds, audience, evidence)

        def decorate(function: Callable[P, R]) -> GatedTool[P, R]:
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"{function.__name__} is async: use AsyncGate.tool")
            return GatedTool(self, self._define(function, name, options))

        return decorate

    def check_tools(self) -> None:
        """Raise LookupError, with one sentence for each problem, unless the policy
        declares every tool of this gate and this agent may propose it."""
        if problems := self.run(check_declared(self.definitions, self.operations)):
            raise LookupError(" ".join(problems))

    def run(
        self, flow: Flow[Value], function: Callable[..., Any] | None = None
    ) -> Value:
        """Run a flow to its end. `function` performs its effects."""
        reply, failure = None, None
        while True:
            try:
                step = flow.throw(failure) if failure else flow.send(reply)
            except StopIteration as end:
                return cast("Value", end.value)
            reply, failure = None, None
            try:
                reply = self._take_step(step, function)
            except Exception as error:
                failure = error

    def _take_step(self, step: Step, function: Callable[..., Any] | None) -> Any:
        if isinstance(step, Pause):
            return self._sleep(step.seconds)
        if isinstance(step, Effect):
            assert function is not None
            with hold_claim(step.claim):
                return function(**step.arguments)
        try:
            return _read_response(self._http.send(_build_request(self._http, step)))
        except httpx2.TransportError as error:
            raise _describe_loss(step, error) from error


class AsyncGate(_BaseGate):
    """`Gate` for asyncio and trio: the same methods, to be awaited."""

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        backoff: Backoff | None = None,
        approval_required_risk: ToolRisk = ToolRisk.HIGH,
        http: httpx2.AsyncClient | None = None,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        super().__init__(
            url, key, backoff=backoff, approval_required_risk=approval_required_risk
        )
        self._http = http or httpx2.AsyncClient(follow_redirects=False)
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    propose = _await(Operations.propose)
    revise = _await(Operations.revise)
    withdraw = _await(Operations.withdraw)
    get = _await(Operations.get)
    wait = _await(Operations.wait)
    list_page = _await(Operations.list_page)
    messages = _await(Operations.messages)
    answer = _await(Operations.answer)
    ask_reviewers = _await(Operations.ask_reviewers)
    ask = _await(ask_people)
    open_question = _await(open_question)
    get_question = _await(get_question)
    wait_question = _await(wait_question)
    withdraw_question = _await(withdraw_question)
    redeem = _await(Operations.redeem)
    verify_grant = _await(Operations.verify_grant)
    report = _await(Operations.report)
    checkpoint = _await(Operations.checkpoint)
    resume = _await(Operations.resume)
    acknowledge = _await(Operations.acknowledge)
    finish = _await(Operations.finish)
    tools = _await(Operations.tools)
    whoami = _await(Operations.whoami)

    async def list(
        self, *, status: str = "", thread: str = ""
    ) -> AsyncIterator[Proposal]:
        """List this agent's proposals, newest first, page by page."""
        cursor = ""
        while True:
            page = await self.list_page(status=status, thread=thread, cursor=cursor)
            for proposal in page.items:
                yield proposal
            cursor = page.next_cursor
            if not cursor:
                return

    @overload
    def tool(self, function: Callable[P, Awaitable[R]], /) -> AsyncGatedTool[P, R]: ...
    @overload
    def tool(
        self,
        name: str = "",
        /,
        *,
        risk: ToolRisk = ToolRisk.SAFE,
        wait_seconds: float | None = None,
        audience: str = "",
        evidence: EvidenceSource | None = None,
    ) -> Callable[[Callable[P, Awaitable[R]]], AsyncGatedTool[P, R]]: ...
    def tool(
        self,
        name: str | Callable[..., Any] = "",
        /,
        *,
        risk: ToolRisk = ToolRisk.SAFE,
        wait_seconds: float | None = None,
        audience: str = "",
        evidence: EvidenceSource | None = None,
    ) -> Any:
        """As `Gate.tool`, for an async function."""
        if callable(name):
            return self.tool()(name)
        options = ToolOptions(risk, wait_seconds, audience, evidence)

        def decorate(function: Callable[P, Awaitable[R]]) -> AsyncGatedTool[P, R]:
            if not inspect.iscoroutinefunction(function):
                raise TypeError(f"{function!r} is not async: use Gate.tool")
            return AsyncGatedTool(self, self._define(function, name, options))

        return decorate

    async def check_tools(self) -> None:
        flow = check_declared(self.definitions, self.operations)
        if problems := await self.run(flow):
            raise LookupError(" ".join(problems))

    async def run(
        self, flow: Flow[Value], function: Callable[..., Any] | None = None
    ) -> Value:
        """Run a flow to its end. `function` performs its effects."""
        reply, failure = None, None
        while True:
            try:
                step = flow.throw(failure) if failure else flow.send(reply)
            except StopIteration as end:
                return cast("Value", end.value)
            reply, failure = None, None
            try:
                reply = await self._take_step(step, function)
            except Exception as error:
                failure = error

    async def _take_step(self, step: Step, function: Callable[..., Any] | None) -> Any:
        if isinstance(step, Pause):
            return await self._sleep(step.seconds)
        if isinstance(step, Effect):
            assert function is not None
            with hold_claim(step.claim):
                return await function(**step.arguments)
        try:
            request = _build_request(self._http, step)
            return _read_response(await self._http.send(request))
        except httpx2.TransportError as error:
            raise _describe_loss(step, error) from error


def _build_request(
    http: httpx2.Client | httpx2.AsyncClient, call: HttpCall
) -> httpx2.Request:
    return http.build_request(
        call.method,
        call.url,
        content=call.content,
        headers=dict(call.headers),
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=call.read_seconds),
    )


def _read_response(response: httpx2.Response) -> HttpAnswer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpAnswer(response.status_code, headers, response.content)


def _describe_loss(call: HttpCall, error: httpx2.TransportError) -> Unreachable:
    return Unreachable(
        f"{call.method} {call.url}: {str(error) or type(error).__name__}"
    )
