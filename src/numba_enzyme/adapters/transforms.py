"""What is said to compiled code that makes a derivative itself: Numba's own words would be that it cannot tell the type of a function.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl

from numba_enzyme.errors import UnsupportedError

# Where the functions that make derivatives are defined; told by name, since imports go the other way.
_TRANSFORMS = "numba_enzyme.api"

_other = typeof_impl.dispatch(object)


def check_no_transform(value: Any, caller: str) -> None:
    """Raises `UnsupportedError` if `value` makes derivatives; `caller` is whose code uses it."""
    if isinstance(value, FunctionType) and value.__module__ == _TRANSFORMS:
        raise UnsupportedError(
            f"{caller} calls {value.__name__} itself, which compiled code cannot. Make the derivative outside of it, as in "
            f"`df = {value.__name__}(f)`, and call that"
        )


@typeof_impl.register(FunctionType)  # type: ignore[untyped-decorator]
def _typeof_function(value: FunctionType, context: Any) -> Any:
    compiling = cpu_target.typing_context.callstack
    check_no_transform(value, compiling[0].func_id.func_qualname if len(compiling) else "compiled code")
    return _other(value, context)
