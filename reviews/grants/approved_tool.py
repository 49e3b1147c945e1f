"""What the version of a tool that was approved says of itself."""

from __future__ import annotations

from policies import tools
from policies.choices import ExecutionClass
from policies.documents import ToolDefinition
from reviews.models import Execution


def class_of(execution: Execution) -> ExecutionClass:
    return ExecutionClass(execution.grant.revision.known_tool.execution_class)


def definition_of(execution: Execution) -> ToolDefinition:
    return tools.definition(execution.grant.revision.known_tool)


def can_be_asked(execution: Execution) -> bool:
    """Whether it says where to look up what became of an effect."""
    return definition_of(execution).look_up is not None
