"""The door for CUDA alone: all derivatives of a device function in one object, with handles to link by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba_enzyme.dispatch import device_externals
from numba_enzyme.dispatch.device import derivative
from numba_enzyme.errors import ArgumentError
from numba_enzyme.model import transform as transforms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TRANSFORMS = {
    t.name: t for t in (transforms.GRAD, transforms.VALUE_AND_GRAD, transforms.JVP, transforms.VJP, transforms.JACFWD, transforms.JACREV)
}


class CUDADifferentiable:
    """The derivatives of one device function. Each mode that was asked for is an attribute, called in kernels and device functions.

    `externals` holds a device handle for each mode whose call takes scalars and arrays alone, by name: what `cuda.declare_device` gives,
    with its code to link. It needs the signature, and builds a handle when it is first looked up.
    """

    def __init__(self, f: Any, signature: Any, cc: tuple[int, int] | None, modes: tuple[str, ...]) -> None:
        options = {"signature": signature, "cc": cc}
        self.function = f
        self.modes = modes
        self._derivatives = {name: derivative(_TRANSFORMS[name], f, None, options) for name in modes}
        self.externals: Mapping[str, Any] = device_externals.Externals(self._derivatives)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_derivatives"][name]
        except KeyError:
            known = ", ".join(self.__dict__.get("_derivatives", {}))
            raise AttributeError(f"{type(self).__name__} has no {name!r}; its modes are {known}") from None

    def __repr__(self) -> str:
        return f"<derivatives of {self.function.py_func.__qualname__} for CUDA: {', '.join(self.modes)}>"


def differentiate_cuda(
    f: Any, signature: Any = None, cc: tuple[int, int] | None = None, modes: Iterable[str] | None = None
) -> CUDADifferentiable:
    """The derivatives of a device function f, as attributes of one object.

    `signature` gives the types of f's arguments, as in `types.float64(types.float64, types.float64)`; without it they are those of each
    call. `cc` is the compute capability to build for, by default that of the kernel. `modes` names what is wanted among grad,
    value_and_grad, jvp, vjp, jacfwd and jacrev, by default all of them. Nothing is built before it is called or linked.

    Raises `ArgumentError` for a mode that does not exist and `SignatureError` if f is not a device function.
    """
    asked = tuple(_TRANSFORMS) if modes is None else (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [name for name in asked if name not in _TRANSFORMS]
    if unknown or not asked:
        raise ArgumentError(f"modes={modes!r}: the modes are {', '.join(_TRANSFORMS)}")
    return CUDADifferentiable(f, signature, cc, asked)
