"""numba-cuda-mlir's types as trees of floats, and back. Checked on numba-cuda-mlir 0.5.4 and 0.6.0."""

from __future__ import annotations

from typing import Any

from numba_enzyme.adapters.numba_cuda_mlir import types
from numba_enzyme.model.tree import Leaf, Node, Tree

_NAMES = ("float32", "float64")


def unliteral(cuda_type: Any) -> Any:
    """`cuda_type` without the value that a literal's type carries."""
    literal = getattr(cuda_type, "literal_type", None)
    if literal is not None:
        return literal
    if isinstance(cuda_type, types().BaseTuple):
        return _tuple([unliteral(element) for element in cuda_type], cuda_type)
    return cuda_type


def promoted(cuda_type: Any) -> Any:
    """The type at which an argument of this type is differentiated: integers, within tuples too, become float64."""
    plain = unliteral(cuda_type)
    if isinstance(plain, types().BaseTuple):
        return _tuple([promoted(element) for element in plain], plain)
    return types().float64 if isinstance(plain, types().Integer) else plain


def to_tree(cuda_type: Any) -> Tree | None:
    """The tree of a float or of a tuple of them; None for a type that has no derivative."""
    if isinstance(cuda_type, types().Float) and cuda_type.name in _NAMES:
        return Leaf(cuda_type.name)
    if isinstance(cuda_type, types().BaseTuple):
        children = [to_tree(element) for element in cuda_type]
        if any(child is None for child in children):
            return None
        return Node(tuple(child for child in children if child is not None), getattr(cuda_type, "instance_class", None))
    return None


def from_tree(tree: Tree) -> Any:
    """The type of values shaped like `tree`."""
    if isinstance(tree, Leaf):
        return getattr(types(), tree.dtype)
    return types().BaseTuple.from_types([from_tree(child) for child in tree.children], tree.named or tuple)


def is_array(cuda_type: Any) -> bool:
    return isinstance(cuda_type, types().Array)


def is_tuple(cuda_type: Any) -> bool:
    return isinstance(cuda_type, types().BaseTuple)


def is_named(cuda_type: Any) -> bool:
    """Whether a type is a named tuple or holds one."""
    plain = unliteral(cuda_type)
    return isinstance(plain, types().BaseTuple) and (
        getattr(plain, "instance_class", None) is not None or any(is_named(element) for element in plain)
    )


def is_float_or_int(cuda_type: Any) -> bool:
    return isinstance(unliteral(cuda_type), (types().Float, types().Integer))


def elements(tuple_type: Any) -> list[Any]:
    """The types of a tuple's elements."""
    return list(tuple_type)


def is_contiguous(array_type: Any) -> bool:
    return bool(array_type.layout == "C")


def contiguous_array(dtype: str, ndim: int) -> Any:
    """The type of a contiguous array of floats."""
    return types().Array(getattr(types(), dtype), ndim, "C")


def flat_scalars(cuda_type: Any) -> list[Any] | None:
    """The scalars that a value of this type is handed over as, one after another; None if it holds anything else."""
    plain = unliteral(cuda_type)
    if isinstance(plain, types().BaseTuple):
        parts = [flat_scalars(element) for element in plain]
        return None if any(part is None for part in parts) else [scalar for part in parts for scalar in part or ()]
    return [plain] if isinstance(plain, (types().Number, types().Boolean)) and not isinstance(plain, types().Complex) else None


def _tuple(children: list[Any], like: Any) -> Any:
    return types().BaseTuple.from_types(children, getattr(like, "instance_class", None) or tuple)


def tuple_of(children: list[Any]) -> Any:
    return types().BaseTuple.from_types(children, tuple)


def typeof(value: Any) -> Any:
    """The type of a Python value."""
    from numba_cuda_mlir.numba_cuda.typing.typeof import typeof as typed  # noqa: PLC0415

    return typed(value)
