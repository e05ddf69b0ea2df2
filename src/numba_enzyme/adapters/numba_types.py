"""Numba types as trees of floats, and back.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.core import types

from numba_enzyme.model.tree import Leaf, Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numba_enzyme.model.tree import Tree

_FLOATS = {"float32": types.float32, "float64": types.float64}


def promoted(numba_type: Any) -> Any:
    """`numba_type` with integers, within tuples too, as float64."""
    plain = types.unliteral(numba_type)
    if isinstance(plain, types.Integer):
        return types.float64
    if isinstance(plain, types.BaseTuple):
        return from_children([promoted(element) for element in plain.types], plain)
    return plain


def contiguous(numba_type: Any) -> Any:
    """`numba_type` with arrays, within tuples too, in C order, which is how they are differentiated."""
    if isinstance(numba_type, types.Array):
        return numba_type.copy(layout="C")
    if isinstance(numba_type, types.BaseTuple):
        return from_children([contiguous(element) for element in numba_type.types], numba_type)
    return numba_type


def read_only(numba_type: Any) -> Any:
    """`numba_type` with arrays, within tuples too, that nobody can write to."""
    if type(numba_type) is types.Array:
        return numba_type.copy(readonly=True)
    if isinstance(numba_type, types.BaseTuple):
        return from_children([read_only(element) for element in numba_type.types], numba_type)
    return numba_type


def to_tree(numba_type: Any) -> Tree | None:
    """The tree of a float, of an array of floats or of a tuple of them; None for a type that has no derivative."""
    if isinstance(numba_type, types.Float) and numba_type.name in _FLOATS:
        return Leaf(numba_type.name)
    if type(numba_type) is types.Array and numba_type.dtype.name in _FLOATS:
        return Leaf(numba_type.dtype.name, numba_type.ndim)
    if isinstance(numba_type, types.BaseTuple):
        children = [to_tree(element) for element in numba_type.types]
        if any(child is None for child in children):
            return None
        return Node(tuple(child for child in children if child is not None), getattr(numba_type, "instance_class", None))
    return None


def from_tree(tree: Tree) -> Any:
    """The Numba type of values shaped like `tree`."""
    if isinstance(tree, Leaf):
        return types.Array(_FLOATS[tree.dtype], tree.ndim, "C") if tree.is_array else _FLOATS[tree.dtype]
    return types.BaseTuple.from_types([from_tree(child) for child in tree.children], tree.named or tuple)


def from_children(children: list[Any], like: Any) -> Any:
    """The tuple type with these element types that is named if `like` is."""
    return types.BaseTuple.from_types(children, getattr(like, "instance_class", None) or tuple)


def fits(numba_type: Any, tree: Tree) -> bool:
    """Whether values of `numba_type` can seed `tree`: numbers where it has leaves."""
    if isinstance(tree, Leaf):
        plain = types.unliteral(numba_type)
        if tree.is_array:
            return isinstance(plain, types.Array) and plain.ndim == tree.ndim and isinstance(plain.dtype, (types.Float, types.Integer))
        return isinstance(plain, (types.Float, types.Integer))
    return (
        isinstance(numba_type, types.BaseTuple)
        and len(numba_type.types) == len(tree.children)
        and all(fits(element, child) for element, child in zip(numba_type.types, tree.children, strict=True))
    )


def said(numba_type: Any) -> str:
    """A Numba type in a sentence."""
    plain = str(types.unliteral(numba_type))
    if plain == "none":
        return "None"
    return f"{'an' if plain[0] in 'aeiou' else 'a'} {plain}"


def named_classes(numba_types: Iterable[Any]) -> list[type]:
    """The classes of the named tuples in `numba_types`, in the order in which they are met."""
    found = []
    for numba_type in numba_types:
        if isinstance(numba_type, types.BaseTuple):
            if hasattr(numba_type, "instance_class"):
                found.append(numba_type.instance_class)
            found += named_classes(numba_type.types)
    return found
