"""What the cache says of a build, in bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numba_enzyme.model.tree import Leaf, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numba_enzyme.model.tree import Tree


@dataclass(frozen=True)
class Build:
    """Where the code of a call is, and the shape of what it returns."""

    key: str
    returned: Tree


def dumps(build: Build, classes: Sequence[type]) -> bytes | None:
    """`build` in bytes, a named tuple as its place among `classes`; None if it is not one of them."""
    try:
        return json.dumps({"key": build.key, "returned": tree_to_json(build.returned, classes)}).encode()
    except ValueError:
        return None


def loads(data: bytes, classes: Sequence[type]) -> Build:
    """The build that `dumps` wrote, with the same `classes`."""
    entry = json.loads(data)
    return Build(entry["key"], tree_from_json(entry["returned"], classes))


def tree_to_json(tree: Tree, classes: Sequence[type]) -> Any:
    """`tree` as lists and strings, a named tuple as its place among `classes`; `ValueError` if it is not one of them."""
    if isinstance(tree, Leaf):
        return f"{tree.dtype} {tree.ndim}" if tree.is_array else tree.dtype
    named = None if tree.named is None else list(classes).index(tree.named)
    return [named, *(tree_to_json(child, classes) for child in tree.children)]


def tree_from_json(value: Any, classes: Sequence[type]) -> Tree:
    """The tree that `tree_to_json` wrote, with the same `classes`."""
    if isinstance(value, str):
        dtype, *ndim = value.split()
        return Leaf(dtype, int(ndim[0]) if ndim else None)
    named, *children = value
    return Node(tuple(tree_from_json(child, classes) for child in children), None if named is None else classes[named])
