"""Types that a function's annotations fix."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Annotated, Any

from numba_enzyme.model.tree import Leaf, Node
from numba_enzyme.types import Dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba_enzyme.model.tree import Tree


def annotated_trees(function: Callable[..., Any], names: tuple[str, ...]) -> tuple[tuple[Tree, ...], Tree] | None:
    """The trees of the parameters and of the result, if every one of them is annotated with our types; otherwise None."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - annotations may say anything, and only ours are ours to read
        return None
    trees = [_tree(hints.get(name)) for name in (*names, "return")]
    known = [tree for tree in trees if tree is not None]
    return (tuple(known[:-1]), known[-1]) if len(known) == len(trees) else None


def _tree(annotation: Any) -> Tree | None:
    if typing.get_origin(annotation) is Annotated:
        marks = [mark for mark in annotation.__metadata__ if isinstance(mark, Dtype)]
        return Leaf(marks[0].name, marks[0].ndim) if marks else None
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is not tuple or not arguments or Ellipsis in arguments:
        return None
    children = [_tree(argument) for argument in arguments]
    known = [child for child in children if child is not None]
    return Node(tuple(known)) if len(known) == len(children) else None
