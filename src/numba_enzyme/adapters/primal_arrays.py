"""Array functions that Numba hands to libraries or builds on lists, in plain loops that Enzyme sees through, for the primal target.

Products copy what they multiply to memory of their own. Enzyme then knows that nobody writes to it, and keeps a copy of the matrices for a
reverse sweep instead of every factor of every product. Solving is elimination with partial pivoting: which rows are exchanged is constant.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import intrinsic, overload, register_jitable
from numba.np import numpy_support
from numba.np.arrayobj import raise_with_shape_context

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "numba_enzyme_primal"

_I64, _POINTER = ir.IntType(64), ir.IntType(8).as_pointer()


def _replaces(function: Any) -> Callable[[Callable[..., Any]], None]:
    def register(implement: Callable[..., Any]) -> None:
        # Numba compares the parameters of an overload and of what it gives, annotations and all.
        implement.__annotations__ = {}

        @functools.wraps(implement)
        def bare(*args: Any, **kwargs: Any) -> Any:
            made = implement(*args, **kwargs)
            if made is not None:
                made.__annotations__ = {}
            return made

        overload(function, target=NAME, jit_options={"error_model": "numpy"})(bare)

    return register


def _is_float_array(ty: Any, *ndims: int) -> bool:
    return isinstance(ty, types.Array) and isinstance(ty.dtype, types.Float) and ty.ndim in ndims


# Memory that nothing else leads to.


@intrinsic  # type: ignore[untyped-decorator]
def _fresh(_typingctx: Any, array: Any, count: Any) -> Any:
    """A pointer to as many uninitialised numbers of the array's type."""
    pointer = types.CPointer(array.dtype)

    def codegen(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        element = context.get_value_type(array.dtype)
        size = builder.mul(args[1], _I64(context.get_abi_sizeof(element)))
        malloc = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_POINTER, [_I64]), "malloc")
        malloc.return_value.add_attribute("noalias")
        # Where LLVM makes two of one allocation Enzyme frees what they come to, and each of them again.
        malloc.attributes.add("noduplicate")
        return builder.bitcast(builder.call(malloc, [size]), element.as_pointer())

    return pointer(array, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def _release(_typingctx: Any, pointer: Any) -> Any:
    def codegen(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        free = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [_POINTER]), "free")
        builder.call(free, [builder.bitcast(args[0], _POINTER)])

    return types.void(pointer), codegen


@register_jitable  # type: ignore[untyped-decorator]
def _copied(a: Any) -> Any:
    """The elements of a matrix or vector, row by row."""
    copy = _fresh(a, a.size)
    if a.ndim == 1:
        for i in range(a.shape[0]):
            copy[i] = a[i]
    else:
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                copy[i * a.shape[1] + j] = a[i, j]
    return copy


# Products.


@register_jitable  # type: ignore[untyped-decorator]
def _matrix_matrix(a: Any, b: Any) -> Any:
    rows, inner, columns = a.shape[0], a.shape[1], b.shape[1]
    if inner != b.shape[0]:
        raise ValueError("incompatible array sizes for np.dot(a, b) (matrix * matrix)")
    out = np.zeros((rows, columns), a.dtype)
    p, q = _copied(a), _copied(b)
    for i in range(rows):
        # Four at a time: the reverse sweep sums over j, and has four sums to work on at once.
        for block in range(inner // 4):
            k = block * 4
            a0, a1, a2, a3 = p[i * inner + k], p[i * inner + k + 1], p[i * inner + k + 2], p[i * inner + k + 3]
            for j in range(columns):
                out[i, j] += (
                    a0 * q[k * columns + j] + a1 * q[(k + 1) * columns + j] + a2 * q[(k + 2) * columns + j] + a3 * q[(k + 3) * columns + j]
                )
        for k in range(inner - inner % 4, inner):
            factor = p[i * inner + k]
            for j in range(columns):
                out[i, j] += factor * q[k * columns + j]
    _release(p)
    _release(q)
    return out


@register_jitable  # type: ignore[untyped-decorator]
def _matrix_vector(a: Any, x: Any) -> Any:
    if a.shape[1] != x.size:
        raise ValueError("incompatible array sizes for np.dot(a, b) (matrix * vector)")
    out = np.zeros(a.shape[0], a.dtype)
    p, q = _copied(a), _copied(x)
    for i in range(a.shape[0]):
        total = out.dtype.type(0.0)
        for j in range(x.size):
            total += p[i * x.size + j] * q[j]
        out[i] = total
    _release(p)
    _release(q)
    return out


@register_jitable  # type: ignore[untyped-decorator]
def _vector_matrix(x: Any, a: Any) -> Any:
    if a.shape[0] != x.size:
        raise ValueError("incompatible array sizes for np.dot(a, b) (vector * matrix)")
    columns = a.shape[1]
    out = np.zeros(columns, a.dtype)
    p, q = _copied(a), _copied(x)
    for i in range(x.size):
        factor = q[i]
        for j in range(columns):
            out[j] += factor * p[i * columns + j]
    _release(p)
    _release(q)
    return out


@register_jitable  # type: ignore[untyped-decorator]
def _vector_vector(x: Any, y: Any) -> Any:
    if x.size != y.size:
        raise ValueError("incompatible array sizes for np.dot(a, b) (vector * vector)")
    total = x.dtype.type(0.0)
    for i in range(x.size):
        total += x[i] * y[i]
    return total


_PRODUCTS = {(2, 2): _matrix_matrix, (2, 1): _matrix_vector, (1, 2): _vector_matrix, (1, 1): _vector_vector}


def _implemented(function: Any, count: int) -> Any:
    """A function for Numba to compile that calls `function`, with parameters named as NumPy's here are."""
    return (lambda a: function(a)) if count == 1 else (lambda a, b: function(a, b))  # noqa: PLW0108


def _product(a: Any, b: Any) -> Any:
    if not (_is_float_array(a, 1, 2) and _is_float_array(b, 1, 2)):
        return None
    if a.dtype != b.dtype:
        raise TypingError("the arguments of a product must all have the same dtype")
    return _implemented(_PRODUCTS[a.ndim, b.ndim], 2)


@_replaces(np.dot)
def _dot(a: Any, b: Any) -> Any:
    return _product(a, b)


@_replaces(operator.matmul)
def _matmul(a: Any, b: Any) -> Any:
    return _product(a, b)


@_replaces(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    return _product(a, b) if _is_float_array(a, 1) and _is_float_array(b, 1) else None


# Linear algebra.


@_replaces(np.linalg.norm)
def _norm(x: Any, ord: Any = None) -> Any:  # noqa: A002 - NumPy's name
    if not (_is_float_array(x, 1, 2) and isinstance(ord, (types.NoneType, types.Omitted, type(None)))):
        return None

    def norm(x: Any, ord: Any = None) -> Any:  # noqa: A002
        largest = x.dtype.type(0.0)
        for v in x.flat:
            largest = max(largest, abs(v))
        if largest == 0.0:
            return largest
        # Squares of what is between these neither overflow nor vanish.
        scale = x.dtype.type(1.0) if 1e-15 < largest < 1e15 else largest
        total = x.dtype.type(0.0)
        for v in x.flat:
            total += (v / scale) ** 2
        return scale * math.sqrt(total)

    return norm


@register_jitable  # type: ignore[untyped-decorator]
def _eliminated(a: Any, right: Any, columns: int) -> Any:  # noqa: C901 - one loop nest
    """Brings a copy of `a` to triangular form, and `right`, which has so many columns, with it. The copy, and the sign of the exchanges."""
    n = a.shape[0]
    if n != a.shape[1]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square.")
    u = _copied(a)
    sign = a.dtype.type(1.0)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(u[i * n + k]) > abs(u[pivot * n + k]):
                pivot = i
        if pivot != k:
            sign = -sign
            for j in range(n):
                u[k * n + j], u[pivot * n + j] = u[pivot * n + j], u[k * n + j]
            for j in range(columns):
                right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        if u[k * n + k] != 0.0:
            for i in range(k + 1, n):
                factor = u[i * n + k] / u[k * n + k]
                for j in range(k, n):
                    u[i * n + j] -= factor * u[k * n + j]
                for j in range(columns):
                    right[i, j] -= factor * right[k, j]
    return u, sign


@register_jitable  # type: ignore[untyped-decorator]
def _solved(a: Any, right: Any) -> Any:
    n, columns = right.shape
    if n != a.shape[0]:
        raise np.linalg.LinAlgError("Incompatible sizes for np.linalg.solve")
    x = right.copy()
    u, _ = _eliminated(a, x, columns)
    for k in range(n):
        if u[k * n + k] == 0.0:
            raise np.linalg.LinAlgError("Matrix is singular to machine precision.")
    for back in range(n):
        i = n - 1 - back
        for j in range(columns):
            total = x[i, j]
            for k in range(i + 1, n):
                total -= u[i * n + k] * x[k, j]
            x[i, j] = total / u[i * n + i]
    _release(u)
    return x


@_replaces(np.linalg.solve)
def _solve(a: Any, b: Any) -> Any:
    if not (_is_float_array(a, 2) and _is_float_array(b, 1, 2) and a.dtype == b.dtype):
        return None
    if b.ndim == 1:
        return lambda a, b: _solved(a, b.copy().reshape(b.size, 1))[:, 0].copy()
    return _implemented(_solved, 2)


@_replaces(np.linalg.inv)
def _inv(a: Any) -> Any:
    return (lambda a: _solved(a, np.eye(a.shape[0], dtype=a.dtype))) if _is_float_array(a, 2) else None


@_replaces(np.linalg.det)
def _det(a: Any) -> Any:
    if not _is_float_array(a, 2):
        return None

    def det(a: Any) -> Any:
        n = a.shape[0]
        u, result = _eliminated(a, np.zeros((n, 0), a.dtype), 0)
        for k in range(n):
            result *= u[k * n + k]
        _release(u)
        return result

    return det


@_replaces(np.linalg.slogdet)
def _slogdet(a: Any) -> Any:
    if not _is_float_array(a, 2):
        return None

    def slogdet(a: Any) -> Any:
        n = a.shape[0]
        u, sign = _eliminated(a, np.zeros((n, 0), a.dtype), 0)
        total = a.dtype.type(0.0)
        for k in range(n):
            diagonal = u[k * n + k]
            sign *= np.sign(diagonal)
            total += math.log(abs(diagonal))
        _release(u)
        return sign, total

    return slogdet


# Order: values move, and where they come from is constant.


@register_jitable  # type: ignore[untyped-decorator]
def _order(a: Any) -> Any:
    """The indices that sort a vector, those of equals in their order and of NaN last."""
    n = a.size
    order, merged = np.arange(n), np.empty(n, np.int64)
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, end):
                take = i < middle
                if take and j < end:
                    x, y = a[order[i]], a[order[j]]
                    take = not (y < x or (x != x and y == y))  # noqa: PLR0124 - a NaN
                if take:
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        for k in range(n):
            order[k] = merged[k]
        width *= 2
    return order


@register_jitable  # type: ignore[untyped-decorator]
def _sorted(a: Any) -> Any:
    order = _order(a)
    out = np.empty(a.size, a.dtype)
    for i in range(a.size):
        out[i] = a[order[i]]
    return out


@_replaces(np.sort)
def _sort(a: Any) -> Any:
    return _implemented(_sorted, 1) if _is_float_array(a, 1) else None


def _sort_in_place(a: Any) -> Any:
    a[:] = _sorted(a)


def _argsort(a: Any) -> Any:
    return _order(a)


# What Numba lowers without an overload, by the key of its implementation.
_LOWERED = {"array.sort": _sort_in_place, "array.argsort": _argsort, np.argsort: _argsort}


def lowered(context: Any, key: Any, signature: Any) -> Callable[..., Any] | None:
    """What is lowered here for a call, as Numba's own implementations are; None if that is left to Numba."""
    function = _LOWERED.get(key) if isinstance(key, str) or key is np.argsort else None
    if function is None or not _is_float_array(signature.args[0], 1):
        return None

    def implementation(builder: Any, args: Any, loc: Any = None) -> Any:
        own = signature.replace(args=signature.args[:1])
        return context.compile_internal(builder, function, own, args[:1])

    return implementation


# Elsewhere.


def _shape(_a: Any, _ones: Any) -> Any:
    raise NotImplementedError


@overload(_shape)
def _shape_overload(a, ones):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if isinstance(a, types.Array):
        return lambda a, ones: a.shape  # noqa: ARG005
    return lambda a, ones: ones  # noqa: ARG005


def _at(_a: Any, _index: Any) -> Any:
    raise NotImplementedError


@overload(_at)
def _at_overload(a, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if not isinstance(a, types.Array):
        return lambda a, index: a  # noqa: ARG005

    def element(a, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        for axis in range(a.ndim):
            if a.shape[axis] == 1:
                index = tuple_setitem(index, axis, 0)
        return a[index]

    return element


@register_jitable  # type: ignore[untyped-decorator]
def _common(one: Any, other: Any) -> Any:
    for axis in range(len(one)):
        if one[axis] == 1:
            one = tuple_setitem(one, axis, other[axis])
        elif other[axis] not in (1, one[axis]):
            raise ValueError("shape mismatch: objects cannot be broadcast to a single shape.")
    return one


@_replaces(np.where)
def _where(condition: Any, x: Any, y: Any) -> Any:
    dimensions = {ty.ndim for ty in (condition, x, y) if isinstance(ty, types.Array)}
    if len(dimensions) != 1 or not all(isinstance(ty, (types.Array, types.Number, types.Boolean)) for ty in (condition, x, y)):
        return None
    dtypes = [numpy_support.as_dtype(ty.dtype if isinstance(ty, types.Array) else types.unliteral(ty)) for ty in (x, y)]
    dtype = numpy_support.from_dtype(np.promote_types(*dtypes))
    ones = (1,) * dimensions.pop()

    def where(condition: Any, x: Any, y: Any) -> Any:
        shape = _common(_shape(condition, ones), _common(_shape(x, ones), _shape(y, ones)))
        out = np.empty(shape, dtype)
        for index in np.ndindex(shape):
            out[index] = _at(x, index) if _at(condition, index) else _at(y, index)
        return out

    return where


@_replaces(raise_with_shape_context)
def _raise_with_shape_context(src_shapes: Any, index_shape: Any) -> Any:
    def refuse(src_shapes: Any, index_shape: Any) -> Any:
        raise ValueError("cannot assign slice from input of different size")

    return refuse
