"""Agno: tools whose calls pause the run until people have decided.

    tools = [process_refund]                       # functions behind the gate
    agent = Agent(tools=[build_tool(tool) for tool in tools], db=..., ...)
    run = agent.run(..., session_id="order_78291")
    propose_calls(run, tools)                      # the process may end
    run = agent.get_run_output(run_id, session_id)
    resume_run(agent, run, tools, gate)            # later, in any process

A confirmation only wakes the tool: it asks the gate for its own proposal and redeems
the grant right before the effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from agno.agent import Agent
from agno.run import RunContext
from agno.run.agent import RunOutput
from agno.run.requirement import RunRequirement
from agno.run.team import TeamRunOutput
from agno.team import Team
from agno.tools.function import Function, FunctionCall

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import AsyncGatedTool, GatedTool
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ToolError

from .calls import NamedCall, check_call_id, check_call_ids, check_thread, format_result
from .coroutines import AnyTool, perform_call
from .decisions import describe_waiting, is_ready, look_up, read_refusal
from .flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="agno",
    minimum="3.1.10",
    # Agno has no edit of a confirmed call, but an edited call reaches the tool with
    # its grant.
    supports_edit=True,
    partial_ok=False,
    binds_request=False,
)
FLAGS.check_version("the adapter was not tested with a release before it.")

Run: TypeAlias = RunOutput | TeamRunOutput
Tools: TypeAlias = Sequence[GatedTool[..., Any]]
DescribeCall = Callable[[str, dict[str, Any], str], Details]
"""Takes the name of the tool, the arguments and the id of a call."""


class UnansweredRequirements(ValueError):
    """Requirements of other tools are not answered. Agno takes no answer for a refusal,
    so the run was not continued."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"Requirements of {', '.join(names)} are not answered, and Agno would take"
            " that for a refusal. Answer them in the run before you resume it."
        )


def describe_call(tool: str, arguments: dict[str, Any], call_id: str) -> Details:
    """The details of a proposal by default: none. Agno shows a tool no words of the
    model."""
    return {}


def build_tool(tool: AnyTool, *, describe: DescribeCall = describe_call) -> Function:
    """Build a tool of Agno.

    The thread of the gate is the session's id, the call id the model's. `describe` must
    return the same details as that of `propose_calls` and `resume_run`.
    """

    def run(fc: FunctionCall, run_context: RunContext, **arguments: Any) -> str:
        assert not isinstance(tool, AsyncGatedTool)
        session, call_id = run_context.session_id, fc.call_id or ""
        call = name_call(session, call_id, tool.name, arguments, describe)
        try:
            return format_result(tool.perform(arguments, **call.names, wait_seconds=0))
        except (ToolError, InvalidArguments) as error:
            return str(error)

    async def run_async(
        fc: FunctionCall, run_context: RunContext, **arguments: Any
    ) -> str:
        session, call_id = run_context.session_id, fc.call_id or ""
        call = name_call(session, call_id, tool.name, arguments, describe)
        try:
            return format_result(await perform_call(tool, arguments, call))
        except (ToolError, InvalidArguments) as error:
            return str(error)

    return Function(
        name=tool.name,
        description=tool.description or tool.name,
        parameters=tool.schema,
        entrypoint=run_async if isinstance(tool, AsyncGatedTool) else run,
        skip_entrypoint_processing=True,
        requires_confirmation=True,
    )


def name_call(
    session_id: str | None,
    call_id: str | None,
    tool: str,
    arguments: dict[str, Any],
    describe: DescribeCall,
) -> NamedCall:
    """The names of a call. Raises ValueError for one that the gate could not name."""
    thread = check_thread(session_id or "", "the session's id")
    known = check_call_id(call_id, [call_id])
    return NamedCall(thread, known, describe(tool, arguments, known))


def propose_calls(
    run: Run, tools: Tools, *, describe: DescribeCall = describe_call
) -> list[dict[str, Any]]:
    """Propose the calls of the gate's tools for which the run has paused, and return
    what waits for people. Raises DuplicateCallId for an id that stands twice: then none
    of them was proposed.

    If the process dies before this, `resume_run` proposes them.
    """
    waiting = []
    for requirement, tool in list_requirements(run, tools):
        proposal = propose_call(run, requirement, tool, describe)
        if proposal is not None and not is_ready(proposal):
            waiting.append(describe_waiting(proposal, read_call_id(requirement)))
    return waiting


def list_requirements(
    run: Run, tools: Tools
) -> Iterator[tuple[RunRequirement, GatedTool[..., Any]]]:
    """The requirements that wait for the gate, with their tools."""
    by_name = {tool.name: tool for tool in tools}
    found = [one for one in run.active_requirements if one.needs_confirmation]
    check_call_ids([read_call_id(requirement) for requirement in found])
    for requirement in found:
        name = requirement.tool_execution.tool_name
        if name in by_name:
            yield requirement, by_name[name]


def read_call_id(requirement: RunRequirement) -> str:
    """The id of the model's call."""
    return str(requirement.tool_execution.tool_call_id or "")


def propose_call(
    run: Run,
    requirement: RunRequirement,
    tool: GatedTool[..., Any],
    describe: DescribeCall,
) -> Any:
    """The proposal of a call; None for arguments that do not fit the function, which
    the tool itself tells the model."""
    arguments = dict(requirement.tool_execution.tool_args or {})
    call_id = read_call_id(requirement)
    call = name_call(run.session_id, call_id, tool.name, arguments, describe)
    try:
        return tool.propose(arguments, **call.names)
    except InvalidArguments:
        return None


def resume_run(
    agent: Agent | Team,
    run: Run,
    tools: Tools,
    gate: Gate,
    *,
    wait_seconds: float = 0,
    describe: DescribeCall = describe_call,
) -> Any:
    """Continue the run when people have decided all that waits in it, and return what
    the agent returns. None when something is still undecided, or nothing waits.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call. Raises UnansweredRequirements for requirements of
    other tools that the run has no answer for.
    """
    answers = []
    for requirement, tool in list_requirements(run, tools):
        proposal = propose_call(run, requirement, tool, describe)
        if proposal is not None and not is_ready(proposal):
            proposal = look_up(proposal.id, gate, wait_seconds)
            if not is_ready(proposal):
                return None
        answers.append((requirement, read_refusal(proposal) if proposal else ""))
    for requirement, refusal in answers:
        if refusal:
            requirement.reject(refusal)
        else:
            requirement.confirm()
    if others := [one.tool_execution.tool_name for one in run.active_requirements]:
        raise UnansweredRequirements(others)
    if not answers:
        return None
    return agent.continue_run(
        run_id=run.run_id, session_id=run.session_id, requirements=run.requirements
    )
