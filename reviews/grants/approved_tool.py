"""Properties of the tool version that was approved for an execution."""

from __future__ import annotations

from policies import tools
from policies.choices import ExecutionClass
from policies.documents import ToolDefinition
from reviews.models import Execution


def class_of(execution: Execution) -> ExecutionClass:
    """What the tool's service promises about repetition."""
    return ExecutionClass(execution.grant.revision.known_tool.execution_class)


def definition_of(execution: Execution) -> ToolDefinition:
    """The tool's definition in the policy document."""
    return tools.definition(execution.grant.revision.known_tool)


def can_be_asked(execution: Execution) -> bool:
    """Whether the tool defines a look-up for the outcome of an effect."""
    return definition_of(execution).look_up is not None
