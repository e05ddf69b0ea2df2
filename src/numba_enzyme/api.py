"""What a user may ask for.

Each transform takes a function and gives a derivative: an ordinary Numba function with the same arguments, or with tuples of primals and
seeds. The source of the names and of their meaning is JAX; the source of the mathematics is Enzyme.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numba_enzyme.dispatch import host
from numba_enzyme.errors import SignatureError
from numba_enzyme.model import transform as transforms
from numba_enzyme.model.transform import normalize_argnums

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba_enzyme.model.transform import Transform


# Where the types of device functions and of their derivatives are defined; told by name, so that nothing of CUDA is imported.
_DEVICE_CODE = ("numba_cuda_mlir", "numba_enzyme.dispatch.device")


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, *, has_aux: bool = False, **options: Any) -> Any:
    """The partial derivatives of a scalar function, by one reverse sweep.

    `grad(f)(x, y)` is `(df/dx, df/dy)`: always a tuple, even of one. `argnums` picks parameters: an int gives that partial alone, a tuple
    gives a tuple in its own order. The others are held constant and may be of any type that Numba takes but containers. Each partial has
    the type of its argument, integers are promoted to float64, and tuples of floats have tuples of partials.

    Raises `SignatureError` if f's result is not one float or an argument has no derivative, `ArgumentError` for parameters that are not
    there, `DifferentiationError` if Enzyme cannot differentiate f, and whatever f itself raises.

    With `has_aux=True` f gives a pair, `(loss, aux)`, and the result is `(partials, aux)`. aux is numbers, arrays and tuples of them; f is
    run once more for it. Arrays are differentiated as floats are: a partial by an array has its shape.

    >>> from numba_enzyme import grad
    >>> grad(lambda x, y: x * y * y)(2.0, 3.0)
    (9.0, 12.0)
    >>> grad(lambda x, y: x * y * y, argnums=1)(2.0, 3.0)
    12.0
    """
    return _transformed(replace(transforms.GRAD, has_aux=has_aux), f, argnums, options)


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, *, has_aux: bool = False, **options: Any) -> Any:
    """The value of a scalar function and its partials, `(f(*args), grad(f)(*args))`, from one sweep. Arguments and errors as `grad`.

    With `has_aux=True` the result is `((loss, aux), partials)`.

    >>> from numba_enzyme import value_and_grad
    >>> value_and_grad(lambda x, y: x * y * y)(2.0, 3.0)
    (18.0, (9.0, 12.0))
    """
    return _transformed(replace(transforms.VALUE_AND_GRAD, has_aux=has_aux), f, argnums, options)


def jvp(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, **options: Any) -> Any:
    """The directional derivative J v, by one forward sweep.

    `jvp(f)(primals, tangents)`: `primals` is the tuple of all arguments of f, `tangents` has one entry for each differentiated one. The
    result is shaped like f's result and has its types.

    >>> from numba_enzyme import jvp
    >>> jvp(lambda x, y: (x * y, x + y))((2.0, 3.0), (1.0, 0.0))
    (3.0, 1.0)
    """
    return _transformed(transforms.JVP, f, argnums, options)


def vjp(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, **options: Any) -> Any:
    """The weighted sum of partials w J, by one reverse sweep.

    `vjp(f)(primals, cotangent)`: the cotangent is shaped like f's result, the partials come back as `grad`'s do.

    >>> from numba_enzyme import vjp
    >>> vjp(lambda x, y: (x * y, x + y))((2.0, 3.0), (1.0, 10.0))
    (13.0, 12.0)
    """
    return _transformed(transforms.VJP, f, argnums, options)


def jacfwd(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, **options: Any) -> Any:
    """All partials of all results by forward sweeps, several inputs at a time: for functions with few inputs.

    `jacfwd(f)(*args)` is nested `[output][argument]`: a tuple of partials for each result, or the partials alone if f gives a scalar.

    >>> from numba_enzyme import jacfwd
    >>> jacfwd(lambda x, y: (x * y, x + y))(2.0, 3.0)
    ((3.0, 2.0), (1.0, 1.0))
    """
    return _transformed(transforms.JACFWD, f, argnums, options)


def jacrev(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, **options: Any) -> Any:
    """All partials of all results by one reverse sweep for each result: for functions with few results. Nested as `jacfwd`'s.

    >>> from numba_enzyme import jacrev
    >>> jacrev(lambda x, y: (x * y, x + y))(2.0, 3.0)
    ((3.0, 2.0), (1.0, 1.0))
    """
    return _transformed(transforms.JACREV, f, argnums, options)


def hessian(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, **options: Any) -> Any:
    """The second partial derivatives of a scalar function, `[i][j]`: forward sweeps over the reverse sweep of `grad`.

    >>> from numba_enzyme import hessian
    >>> hessian(lambda x, y: x * y * y)(2.0, 3.0)
    ((0.0, 6.0), (6.0, 4.0))
    """
    return jacfwd(grad(f, argnums, **options), argnums)


def hvp(f: Callable[..., Any], argnums: int | tuple[int, ...] | None = None, **options: Any) -> Any:
    """The product of a scalar function's Hessian and a vector, `hvp(f)(primals, tangents)`, without the Hessian.

    >>> from numba_enzyme import hvp
    >>> hvp(lambda x, y: x * y * y)((2.0, 3.0), (1.0, 0.0))
    (0.0, 6.0)
    """
    return jvp(grad(f, argnums, **options), argnums)


def differentiable(f: Callable[..., Any]) -> Any:
    """f as a Numba function that offers its derivatives as attributes, each built when it is first read. f may be a device function.

    >>> from numba_enzyme import differentiable
    >>> @differentiable
    ... def area(x, y):
    ...     return x * y
    >>> area(2.0, 3.0), area.grad(2.0, 3.0)
    (6.0, (3.0, 2.0))
    """
    offered = {t.__name__: t for t in (grad, value_and_grad, jvp, vjp, jacfwd, jacrev, hessian, hvp)}
    if not _is_device_code(f):
        return host.Differentiable(f, offered)
    from numba_enzyme.dispatch import device_differentiable  # noqa: PLC0415 - the CUDA half is loaded for those who use it

    return device_differentiable.DeviceDifferentiable(getattr(f, "callee", f), offered)


def _is_device_code(f: Any) -> bool:
    return type(f).__module__.startswith(_DEVICE_CODE)


def _transformed(transform: Transform, f: Callable[..., Any], argnums: Any, options: dict[str, Any]) -> Any:
    if _is_device_code(f):
        from numba_enzyme.dispatch import device  # noqa: PLC0415 - the CUDA half is loaded for those who use it

        if transform.has_aux:
            raise SignatureError(f"{transform.name}: has_aux= is an option for functions of the CPU")
        return device.derivative(transform, getattr(f, "callee", f), normalize_argnums(argnums), options)
    for option in options:
        where = "an option for CUDA device functions" if option in ("signature", "cc") else "no option of it"
        raise SignatureError(f"{transform.name}: {option}= is {where}")
    return host.derivative(transform, f, normalize_argnums(argnums))
