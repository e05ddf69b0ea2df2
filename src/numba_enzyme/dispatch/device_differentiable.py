"""A device function together with its derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba_enzyme.adapters import cuda_attributes
from numba_enzyme.dispatch.device import check_function
from numba_enzyme.errors import SignatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class DeviceDifferentiable:
    """A device function with its derivatives as attributes; called in device code, it is the function."""

    def __init__(self, function: Any, transforms: Mapping[str, Callable[..., Any]]) -> None:
        check_function("differentiable", function)
        self.callee = function
        self._transforms = transforms
        self.__qualname__: str = function.__qualname__
        self.__name__: str = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        cuda_attributes.register(DeviceDifferentiable)

    def attribute(self, name: str) -> Any | None:
        transform = self.__dict__.get("_transforms", {}).get(name)
        return transform(self.callee) if transform else None

    def __getattr__(self, name: str) -> Any:
        found = self.attribute(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise SignatureError(f"{self.__qualname__} is a device function, and is called in kernels and device functions only")

    def __repr__(self) -> str:
        return f"<{self.__qualname__} with its derivatives, for CUDA>"

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceDifferentiable, (self.callee, self._transforms)

    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What this is, for the fingerprint of a function that calls it."""
        return ("function", self.callee)
