"""The shape of what a derivative gives."""

from __future__ import annotations

from numba_enzyme.model.layout import Layout
from numba_enzyme.model.transform import Call
from numba_enzyme.model.tree import Node, Tree


def returned(layout: Layout) -> Tree:
    """The shape of a call's result."""
    transform = layout.transform
    if transform.jacobian:
        return layout.jacobian()
    if transform.call is Call.TANGENTS:
        return layout.result
    if transform.with_value:
        return Node((layout.result, layout.partials()))
    return layout.partials()
