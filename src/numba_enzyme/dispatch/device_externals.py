"""Handles of derivatives for device code that links them by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from numba_enzyme.adapters import cuda_callsite, cuda_types, numba_cuda_mlir
from numba_enzyme.errors import SignatureError
from numba_enzyme.model.transform import Call
from numba_enzyme.model.tree import Leaf, leaves

if TYPE_CHECKING:
    from numba_enzyme.dispatch.device import DeviceDerivative
    from numba_enzyme.model.tree import Tree


class Externals(Mapping[str, Any]):
    """A handle for each derivative, declared when it is first looked up. A call gives its results through an array wherever it can."""

    def __init__(self, derivatives: Mapping[str, DeviceDerivative]) -> None:
        self._derivatives = derivatives
        self._declared: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._declared:
            self._declared[name] = _external(self._derivatives[name])
        return self._declared[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._derivatives)

    def __len__(self) -> int:
        return len(self._derivatives)


def _external(derivative: DeviceDerivative) -> Any:
    if derivative.signature is None:
        raise SignatureError(f"{derivative.__qualname__}: a handle needs the types of its arguments: give signature=")
    resolved = derivative.resolve(tuple(_argument_types(derivative)), {})
    flat = () if resolved.restype is None else cuda_types.flat_scalars(resolved.restype) or ()
    if len(flat) > 1 or any(cuda_types.is_tuple(t) for t in resolved.argtypes):
        raise SignatureError(
            f"{derivative.__qualname__}: numba-cuda-mlir declares no function with tuples, so this has no handle. Call it as "
            "an attribute, or take jvp, vjp, jacfwd or jacrev, which have calls with arrays"
        )
    cc = derivative.options.cc or numba_cuda_mlir.current_cc()
    symbol, code = resolved.request(cc, tuple(() for _ in resolved.argtypes))
    return cuda_callsite.external(symbol, cc, code, resolved.argtypes, flat[0] if flat else None)


def _argument_types(derivative: DeviceDerivative) -> Iterator[Any]:
    """The types of the call with arrays: for the result, and for each tuple."""
    given = derivative.signature or ()
    typed = derivative.typed(given)
    transform = derivative.transform
    primals = [_as_argument(t) for t in typed.types]
    result = leaves(typed.result)[0].dtype
    inputs = [typed.types[n] for n in derivative.picked]
    if transform.call is Call.COTANGENT:
        yield cuda_types.contiguous_array(result, 1)
        yield cuda_types.contiguous_array(_dtype(inputs), 1)
    elif transform.jacobian or transform.call is Call.TANGENTS:
        yield cuda_types.contiguous_array(result, 2 if transform.jacobian else 1)
    yield from primals
    if transform.call is Call.TANGENTS:
        yield from (_as_argument(t) for t in inputs)


def _as_argument(cuda_type: Any) -> Any:
    tree = cuda_types.to_tree(cuda_type)
    return cuda_type if tree is None or isinstance(tree, Leaf) else cuda_types.contiguous_array(_tree_dtype(tree), 1)


def _dtype(types: list[Any]) -> str:
    trees = [tree for t in types if (tree := cuda_types.to_tree(t)) is not None]
    return _tree_dtype(trees[0])


def _tree_dtype(tree: Tree) -> str:
    return leaves(tree)[0].dtype
