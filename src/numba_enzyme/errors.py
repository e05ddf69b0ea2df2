"""The errors that users see: one tree with `NumbaEnzymeError` at its root.

None of them derives from Numba's own errors. Numba tries several ways to compile a call and swallows its own errors between tries;
these pass through, so that their text reaches the user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable


class NumbaEnzymeError(Exception):
    """Root of every error this package raises on purpose."""


class SignatureError(NumbaEnzymeError, TypeError):
    """The wrong kind of thing: function, argument, annotation, activity or form of call."""


class ArgumentError(NumbaEnzymeError, ValueError):
    """The right kind of thing with a value that cannot be used."""


class UnsupportedError(NumbaEnzymeError, NotImplementedError):
    """Something known, and refused."""


class DifferentiationError(NumbaEnzymeError, RuntimeError):
    """Enzyme could not differentiate the function."""


class TapeMemoryError(NumbaEnzymeError, MemoryError):
    """A call of a derivative needs more memory than there is for its tape."""

    # Compiled code raises it with what is known when it is compiled. How much was needed, and allowed, it leaves where this reads it.
    left_by_code: ClassVar[Callable[[], tuple[int, int]]]

    def __init__(self, function: str, needed: int | None = None, allowed: int | None = None) -> None:
        if needed is None or allowed is None:
            needed, allowed = type(self).left_by_code()
        self.figures = (function, needed, allowed)
        super().__init__(
            f"the derivative of {function} needs a tape of at least {_gib(needed)}, and may take {_gib(allowed)} of memory. Differentiate "
            f"fewer steps of a long loop at a time, or set NUMBA_ENZYME_TAPE_LIMIT to the bytes that it may take"
        )

    def __reduce__(self) -> tuple[type[TapeMemoryError], tuple[str, int, int]]:
        return type(self), self.figures


def _gib(size: int) -> str:
    return f"{size / 2**30:.3g} GiB"


class ToolchainError(NumbaEnzymeError, RuntimeError):
    """The vendored `opt` and Enzyme plugin are missing, altered or do not run on this machine."""
