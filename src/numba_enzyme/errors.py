"""The errors that users see: one tree with `NumbaEnzymeError` at its root.

None of them derives from Numba's own errors. Numba tries several ways to compile a call and swallows its own errors between tries;
these pass through, so that their text reaches the user.
"""

from __future__ import annotations


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


class ToolchainError(NumbaEnzymeError, RuntimeError):
    """The vendored `opt` and Enzyme plugin are missing, altered or do not run on this machine."""
