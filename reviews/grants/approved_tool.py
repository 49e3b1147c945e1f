"""Properties of the tool version that was approved for an execution."""

from __future__ import annotations

from policies import tools
from policies.choices import ExecutionClass
from policies.documents import ToolDefinition
from reviews.models import Execution


def load_execution_class(execution: Execution) -> ExecutionClass:
    """What the tool's service promises about repetition."""
    return ExecutionClass(execution.grant.revision.known_tool.execution_class)


def load_tool_definition(execution: Execution) -> ToolDefinition:
    """The tool's definition in the policy document."""
    return tools.load_definition(execution.grant.revision.known_tool)


def has_look_up(execution: Execution) -> bool:
    """Whether the tool defines a look-up for the outcome of an effect."""
    return load_tool_definition(execution).look_up is not None
