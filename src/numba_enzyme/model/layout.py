"""The call layout: which value stands where in a derivative's arguments and results.

It is the one place that knows. The Numba types of a derivative, the arguments of its sweeps, the order of seeds and the shape of what it
returns are all read from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numba_enzyme.model.transform import Call, Mode
from numba_enzyme.model.tree import Leaf, Node, leaves, substitute

if TYPE_CHECKING:
    from numba_enzyme.model.transform import Argnums, Transform
    from numba_enzyme.model.tree import Tree


@dataclass(frozen=True)
class Parameter:
    """A parameter of the primal; `tree` is None for one that is held constant."""

    name: str
    tree: Tree | None


@dataclass(frozen=True)
class Layout:
    """A transform applied to a primal at concrete types."""

    transform: Transform
    parameters: tuple[Parameter, ...]
    result: Tree
    picked: tuple[int, ...]
    argnums: Argnums
    mode: Mode
    """The direction of its sweeps: the transform's own, unless the primal rules that out."""

    def inputs(self) -> tuple[Leaf, ...]:
        """The differentiated leaves in the order of the parameters, which is the order that sweeps use."""
        return tuple(leaf for p in self.parameters if p.tree is not None for leaf in leaves(p.tree))

    def outputs(self) -> tuple[Leaf, ...]:
        return leaves(self.result)

    def _offset(self, position: int) -> int:
        before = self.parameters[:position]
        return sum(len(leaves(p.tree)) for p in before if p.tree is not None)

    def _tree(self, position: int) -> Tree:
        tree = self.parameters[position].tree
        if tree is None:
            raise AssertionError(f"parameter {position} is constant")
        return tree

    def picked_inputs(self) -> tuple[int, ...]:
        """For each leaf of `partials()`, its index in `inputs()`: argnums may reorder parameters."""
        return tuple(self._offset(n) + k for n in self.picked for k in range(len(leaves(self._tree(n)))))

    def partials(self) -> Tree:
        """The shape of one output's partials, and of the tangents that a call takes with an int as argnums."""
        if isinstance(self.argnums, int):
            return self._tree(self.picked[0])
        return self.tangents()

    def tangents(self) -> Node:
        """One entry for each differentiated argument."""
        return Node(tuple(self._tree(n) for n in self.picked))

    def seeds(self) -> Tree:
        """The shape of what a call is given beside its primals."""
        return self.tangents() if self.transform.call is Call.TANGENTS else self.result

    def returned(self) -> Tree:
        """The shape of what a call gives."""
        if self.transform.jacobian:
            return self.jacobian()
        if self.transform.call is Call.TANGENTS:
            return self.result
        return Node((self.result, self.partials())) if self.transform.with_value else self.partials()

    def jacobian(self) -> Tree:
        """The partials of each output in turn, nested `[output][argument]`."""
        partials = self.partials()
        return substitute(self.result, (_blocks(output, partials) for output in self.outputs()))


def block(output: Leaf, given: Leaf) -> Leaf:
    """The partials of one leaf by another: `output.shape + given.shape`, in the type of what is differentiated by."""
    if not (output.is_array or given.is_array):
        return given
    return Leaf(given.dtype, (output.ndim or 0) + (given.ndim or 0))


def _blocks(output: Leaf, partials: Tree) -> Tree:
    return substitute(partials, (block(output, leaf) for leaf in leaves(partials)))
