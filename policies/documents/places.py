"""Maps the path of an error in a policy document to the line of its YAML text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

LONGEST_PATH = 1000  # characters; longer paths have the line of their parent
LineNumbers = Mapping[str, int]


def map_paths_to_lines(root: yaml.Node | None) -> dict[str, int]:
    """Path -> line, counted from 1, for every key and list item below a YAML node.

    A path names a list item by its `id` or `name` if it has one, as `format_path` does.
    """
    return dict(_list_lines(root, "")) if root is not None else {}


def find_line(path: str, lines: LineNumbers) -> int | None:
    """The line of a path, or of its nearest parent in the text; None without one."""
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return lines.get(path)


def format_path(
    location: tuple[int | str, ...], data: Any, *, lacking: bool = False
) -> str:
    """A pydantic error location as a path, such as `rules.refund.over_500.then.tier`: a
    list item is named by its `id` or `name`, not by its number.

    A step that is not in `data` is one of pydantic's own (the branch of a union, the
    mark of a key) and is left out. With `lacking` the last step is the missing key, and
    stays.
    """
    steps, last = [], len(location) - 1
    for number, step in enumerate(location):
        inside, member = _find_member(data, step)
        if not inside:
            if lacking and number == last:
                steps.append(str(step))
            continue
        data = member
        name = _find_name(member) if isinstance(step, int) else None
        steps.append(str(name or step))
    return ".".join(steps)


def _find_member(data: Any, step: int | str) -> tuple[bool, Any]:
    try:
        return True, data[step]
    except (KeyError, IndexError, TypeError):
        return False, None


def _find_name(data: Any) -> Any:
    if not isinstance(data, Mapping):
        return None
    return data.get("id") or data.get("name")


def _list_lines(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    for step, at, inner in _list_members(node):
        where = f"{path}.{step}".lstrip(".")
        if len(where) > LONGEST_PATH:
            continue
        yield where, at.start_mark.line + 1
        yield from _list_lines(inner, where)


def _list_members(node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """For each member: its name, the node that has its line, and its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield str(key.value), key, value
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield _find_node_name(item) or str(number), item, item


def _find_node_name(item: yaml.Node) -> str:
    if not isinstance(item, yaml.MappingNode):
        return ""
    members = {
        str(key.value): str(value.value)
        for key, value in item.value
        if isinstance(value, yaml.ScalarNode)
    }
    return members.get("id") or members.get("name") or ""
