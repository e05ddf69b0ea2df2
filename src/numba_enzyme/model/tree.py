"""Trees of floating-point leaves: the shape of a differentiable argument or result.

A float or an array of floats is a `Leaf`; a tuple, nested or named, is a `Node`. Everything that is said about "the leaves in order" means
from left to right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True)
class Leaf:
    """One float, or one array of floats, of a derivative's input or output."""

    dtype: str
    """`"float32"` or `"float64"`."""
    ndim: int | None = None
    """The dimensions of an array; None for a float."""

    @property
    def is_array(self) -> bool:
        return self.ndim is not None


@dataclass(frozen=True)
class Node:
    """A tuple of trees; `named` is the class of a named tuple."""

    children: tuple[Tree, ...]
    named: type | None = None


Tree: TypeAlias = Leaf | Node
T = TypeVar("T")


def leaves(tree: Tree) -> tuple[Leaf, ...]:
    """The leaves of `tree` from left to right."""
    if isinstance(tree, Leaf):
        return (tree,)
    return tuple(leaf for child in tree.children for leaf in leaves(child))


def substitute(tree: Tree, trees: Iterator[Tree]) -> Tree:
    """`tree` with each leaf replaced by the next of `trees`."""
    if isinstance(tree, Leaf):
        return next(trees)
    return Node(tuple(substitute(child, trees) for child in tree.children), tree.named)


def fold(tree: Tree, values: Iterator[T], build: Callable[[Node, Sequence[Any]], T]) -> T:
    """Puts `values`, one for each leaf in order, together with `build`, from the inside out."""
    if isinstance(tree, Leaf):
        return next(values)
    return build(tree, [fold(child, values, build) for child in tree.children])
