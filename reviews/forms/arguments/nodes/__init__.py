"""The places of a form: inputs, groups of inputs, lists of rows, and what is locked.

A node knows what was proposed and what was sent, prints itself by its attributes, and
reads itself back. What nobody touched is given back as the very value of the proposal.
Pure.
"""

from __future__ import annotations

from .base import At, Node
from .choices import Choice
from .lines import Line, Moment
from .locked import Locked
from .nested import Group, Rows

__all__ = ["At", "Choice", "Group", "Line", "Locked", "Moment", "Node", "Rows"]
