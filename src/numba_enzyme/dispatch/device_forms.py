"""The forms of a call in device code: by values, or with arrays for results, seeds and tuples.

`form` tells them apart by the call and says what each argument is; `check` refuses in the user's words what does not fit.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numba_enzyme.adapters import cuda_types
from numba_enzyme.adapters.cuda_callsite import Default
from numba_enzyme.errors import SignatureError
from numba_enzyme.model.device_call import Argument, DeviceCall, Role
from numba_enzyme.model.layout import Layout
from numba_enzyme.model.transform import Call
from numba_enzyme.model.tree import Leaf, Tree, leaves

if TYPE_CHECKING:
    from numba_enzyme.dispatch.device import DeviceDerivative, Typed


@dataclass(frozen=True)
class Form:
    """A call as it was written: the types it gives, what they are for, and the types of the innermost function's arguments."""

    call: DeviceCall
    order: tuple[int | str | Default, ...]
    types: tuple[Any, ...]
    base_types: tuple[Any, ...]


def form(derivative: DeviceDerivative, args: tuple[Any, ...], kws: dict[str, Any]) -> Form:
    call = derivative.transform.call
    if call is Call.ARGS:
        if derivative.transform.jacobian and args and cuda_types.is_array(args[0]) and args[0].ndim == 2:
            return _array_form(derivative, args, kws)
        return _args_form(derivative, args, kws)
    if kws:
        raise SignatureError(f"{derivative.__qualname__} takes no keyword arguments in device code")
    if args and cuda_types.is_array(args[0]):
        return _array_form(derivative, args, kws)
    return _seeded_form(derivative, args)


def _args_form(derivative: DeviceDerivative, args: tuple[Any, ...], kws: dict[str, Any]) -> Form:
    order = _bound(derivative, args, kws, first=0)
    types = tuple(_type_of(source, args, kws) for source in order)
    arguments = tuple(_primal(n, t) for n, t in enumerate(types))
    return Form(DeviceCall(arguments), order, types, _base_types(derivative, types))


def _seeded_form(derivative: DeviceDerivative, args: tuple[Any, ...]) -> Form:
    transform = derivative.transform
    if len(args) != 2 or not cuda_types.is_tuple(args[0]):
        raise SignatureError(f"{derivative.__qualname__} is called {_usage(derivative)}, not with {_listed(args)}")
    primals = tuple(cuda_types.elements(args[0]))
    if len(primals) != len(derivative.parameter_names):
        raise SignatureError(
            f"{derivative.__qualname__}: {derivative.function_name} takes {_counted(derivative.parameter_names)}, "
            f"but primals has {len(primals)}"
        )
    role = Role.TANGENT if transform.call is Call.TANGENTS else Role.COTANGENT
    arguments = [Argument(Role.PRIMAL, n) for n in range(len(primals))]
    if role is Role.TANGENT:
        arguments += [Argument(role, n) for n in derivative.picked]
    else:
        arguments.append(Argument(role))
    return Form(DeviceCall(tuple(arguments)), (0, 1), args, _base_types(derivative, primals))


def _array_form(derivative: DeviceDerivative, args: tuple[Any, ...], kws: dict[str, Any]) -> Form:
    """(out, *args), (tangent, *args, *tangents) or (cotangent, out, *args)."""
    transform = derivative.transform
    leading = [Role.COTANGENT, Role.OUT] if transform.call is Call.COTANGENT else [Role.OUT]
    if len(args) < len(leading):
        raise SignatureError(f"{derivative.__qualname__} is called {_usage(derivative)}, not with {_listed(args)}")
    arguments = [_leading(derivative, role, t) for role, t in zip(leading, args)]
    names = spread_names(derivative)
    if transform.call is Call.TANGENTS:
        return _tangents_form(derivative, args, arguments, names)
    order = _bound(derivative, args, kws, first=len(leading), names=names)
    types = tuple(_type_of(source, args, kws) for source in order)
    arguments += [_primal(n, t) for n, t in enumerate(types)]
    return Form(
        DeviceCall(tuple(arguments)),
        (*range(len(leading)), *order),
        (*args[: len(leading)], *types),
        _base_types_of_spread(derivative, types),
    )


def _tangents_form(derivative: DeviceDerivative, args: tuple[Any, ...], arguments: list[Argument], names: tuple[str, ...]) -> Form:
    picked = derivative.spread_picked()
    given = len(args) - 1 - len(names)
    if given < len(picked) or given % len(picked):
        raise SignatureError(
            f"{derivative.__qualname__} is called (tangent, *args, *tangents): one array, {_counted(names)}, and for each set of tangents "
            f"one for each of {', '.join(names[n] for n in picked)}; not {len(args)} arguments"
        )
    types = args[1 : 1 + len(names)]
    arguments += [_primal(n, t) for n, t in enumerate(types)]
    for k, t in enumerate(args[1 + len(names) :]):
        arguments.append(_valued(Role.TANGENT, picked[k % len(picked)], t))
    call = DeviceCall(tuple(arguments), given // len(picked))
    return Form(call, tuple(range(len(args))), args, _base_types_of_spread(derivative, types))


def spread_names(derivative: DeviceDerivative) -> tuple[str, ...]:
    """The names of the primal's values when no tuples hold them together."""
    from numba_enzyme.dispatch.device import DeviceDerivative as Kind  # noqa: PLC0415

    inner = derivative.function
    if not isinstance(inner, Kind):
        return tuple(p.name for p in derivative.base_parameters)
    names = spread_names(inner)
    if inner.transform.call is Call.ARGS:
        return names
    if inner.transform.call is Call.COTANGENT:
        return (*names, "cotangent")
    return (*names, *(f"d{names[n]}" for n in inner.spread_picked()))


def seeds(derivative: DeviceDerivative, layout: Layout) -> list[tuple[str, Tree]]:
    """The names and shapes of what a derivative takes besides its function's arguments."""
    if derivative.transform.call is Call.TANGENTS:
        return [(f"d{layout.parameters[n].name}", tree) for n in layout.picked if (tree := layout.parameters[n].tree) is not None]
    return [("cotangent", layout.result)] if derivative.transform.call is Call.COTANGENT else []


def _bound(
    derivative: DeviceDerivative, args: tuple[Any, ...], kws: dict[str, Any], first: int, names: tuple[str, ...] = ()
) -> tuple[int | str | Default, ...]:
    """Where each parameter's argument comes from; `first` arguments stand before them."""
    names = names or derivative.parameter_names
    defaults = {p.name: p.default for p in derivative.base_parameters if p.default is not inspect.Parameter.empty}
    positional = len(args) - first
    found: list[int | str | Default] = []
    for n, name in enumerate(names):
        if n < positional:
            found.append(first + n)
        elif name in kws:
            found.append(name)
        elif name in defaults:
            found.append(Default(defaults[name]))
    unknown = kws.keys() - set(names[positional:])
    if len(found) != len(names) or positional > len(names) or unknown:
        extra = f" and {', '.join(sorted(unknown))}=" if unknown else ""
        raise SignatureError(
            f"{derivative.__qualname__} is called {_usage(derivative)}, and {derivative.function_name} takes {_counted(names)}; "
            f"the call has {positional}{extra}"
        )
    return tuple(found)


def _type_of(source: int | str | Default, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
    if isinstance(source, Default):
        return cuda_types.typeof(source.value)
    return args[source] if isinstance(source, int) else kws[source]


def _primal(parameter: int, given: Any) -> Argument:
    return _valued(Role.PRIMAL, parameter, given)


def _valued(role: Role, parameter: int, given: Any) -> Argument:
    if cuda_types.is_array(given):
        return Argument(role, parameter, given.ndim, str(given.dtype))
    return Argument(role, parameter)


def _leading(derivative: DeviceDerivative, role: Role, given: Any) -> Argument:
    if not cuda_types.is_array(given):
        raise SignatureError(f"{derivative.__qualname__} is called {_usage(derivative)}: {role.value} must be an array, not {said(given)}")
    return Argument(role, 0, given.ndim, str(given.dtype))


def _base_types(derivative: DeviceDerivative, types: Sequence[Any]) -> tuple[Any, ...]:
    """The innermost function's argument types, out of those of a call by values."""
    from numba_enzyme.dispatch.device import DeviceDerivative as Kind  # noqa: PLC0415

    inner = derivative.function
    if isinstance(inner, Kind):
        if inner.transform.call is Call.ARGS:
            return _base_types(inner, types)
        if not cuda_types.is_tuple(types[0]):
            raise SignatureError(f"{derivative.__qualname__}: primals of {inner.__qualname__} must be a tuple, not {said(types[0])}")
        return _base_types(inner, cuda_types.elements(types[0]))
    return _signed(derivative, types)


def _base_types_of_spread(derivative: DeviceDerivative, types: Sequence[Any]) -> tuple[Any, ...]:
    return _signed(derivative, types[: len(derivative.base_parameters)])


def _signed(derivative: DeviceDerivative, types: Sequence[Any]) -> tuple[Any, ...]:
    signature = derivative.signature
    if signature is not None:
        if len(signature) != len(derivative.base_parameters):
            raise SignatureError(
                f"{derivative.__qualname__}: signature= has {len(signature)} arguments, but {derivative.source.__qualname__} takes "
                f"{_counted(tuple(p.name for p in derivative.base_parameters))}"
            )
        return signature
    for parameter, given in zip(derivative.base_parameters, types):
        if cuda_types.is_array(given):
            raise SignatureError(
                f"{derivative.__qualname__}: {parameter.name!r} is {said(given)}, and an array does not say its length. If "
                f"{derivative.source.__qualname__} takes a tuple there, say which: "
                f"signature=types.float64(types.UniTuple(types.float64, n), ...)"
            )
    return tuple(types)


def with_zeros(call: DeviceCall, layout: Layout, zeros: Sequence[Sequence[bool]]) -> DeviceCall:
    """`call`, knowing which tangents are written as zeros. `zeros` has an entry for each argument as it was written."""
    if layout.transform.call is not Call.TANGENTS:
        return call
    if call.out is None:
        flat = list(zeros[1])
    else:
        flat = []
        for argument, known in zip(call.arguments, zeros):
            if argument.role is Role.TANGENT:
                tree = layout.parameters[argument.parameter].tree
                flat += [False] * len(leaves(tree)) if argument.ndim and tree is not None else list(known)
    return replace(call, zeros=tuple(flat) if any(flat) else ())


# Checks, once the primal's types are known.


def check_result(derivative: DeviceDerivative, layout: Layout) -> None:
    if layout.transform.scalar_only and len(layout.outputs()) != 1:
        raise SignatureError(
            f"{layout.transform.name} needs a function with one float as its result, but {derivative.function_name} gives "
            f"{len(layout.outputs())}: use jacrev or jacfwd for all partials, or vjp with a weight for each result"
        )


def check(derivative: DeviceDerivative, form: Form, layout: Layout, typed: Typed) -> None:
    check_result(derivative, layout)
    if form.call.out is None:
        _check_values(derivative, form, layout)
        return
    for argument, given in zip(form.call.arguments, form.types):
        if argument.ndim:
            _check_array(derivative, argument, given, layout)
        elif argument.role is Role.PRIMAL:
            _check_value(derivative, typed.names[argument.parameter], given, typed.types[argument.parameter])
        elif argument.role is Role.TANGENT:
            tree = layout.parameters[argument.parameter].tree
            if tree is not None:
                _check_value(derivative, f"d{typed.names[argument.parameter]}", given, cuda_types.from_tree(tree))


def _check_values(derivative: DeviceDerivative, form: Form, layout: Layout) -> None:
    by_args = derivative.transform.call is Call.ARGS
    given = form.types if by_args else cuda_types.elements(form.types[0])
    for name, got, wanted in zip(derivative.parameter_names, given, derivative.function_value_types(form.base_types)):
        _check_value(derivative, name, got, wanted)
    if not by_args:
        _check_seeds(derivative, form, layout)


def _check_value(derivative: DeviceDerivative, name: str, given: Any, wanted: Any) -> None:
    got, need = cuda_types.flat_scalars(given), cuda_types.flat_scalars(wanted)
    if got is None or need is None or len(got) != len(need) or cuda_types.is_tuple(given) != cuda_types.is_tuple(wanted):
        raise SignatureError(f"{derivative.__qualname__}: {name!r} must be {said(wanted)}, not {said(given)}")


def _check_seeds(derivative: DeviceDerivative, form: Form, layout: Layout) -> None:
    call = derivative.transform.call
    wanted = layout.tangents() if call is Call.TANGENTS else layout.result
    if not _fits(form.types[1], wanted):
        what = "tangents, one entry for each differentiated argument," if call is Call.TANGENTS else "the cotangent"
        raise SignatureError(
            f"{derivative.__qualname__}: {what} must be shaped like {cuda_types.from_tree(wanted)}, not {said(form.types[1])}"
        )


def _check_array(derivative: DeviceDerivative, argument: Argument, given: Any, layout: Layout) -> None:
    what, floats, dims = _wanted_array(derivative, argument, layout)
    prefix = f"{derivative.__qualname__}: {what}"
    if argument.ndim not in dims:
        raise SignatureError(f"{prefix} must be an array with {' or '.join(map(str, dims))} dimensions, not {said(given)}")
    if not cuda_types.is_contiguous(given):
        raise SignatureError(
            f"{prefix} must be contiguous (layout C), not {said(given)}: copy it, or take a slice along its last dimension"
        )
    dtypes = sorted({leaf.dtype for leaf in floats})
    if len(dtypes) != 1:
        raise SignatureError(f"{prefix} stands for floats of different types ({', '.join(dtypes)}), which no array can hold: use tuples")
    if argument.dtype != dtypes[0]:
        raise SignatureError(f"{prefix} must have dtype {dtypes[0]}, as {derivative.function_name} has, not {argument.dtype}")
    if argument.role is Role.OUT and not given.mutable:
        raise SignatureError(f"{prefix} cannot be written to: it is {said(given)}")


def _wanted_array(derivative: DeviceDerivative, argument: Argument, layout: Layout) -> tuple[str, tuple[Leaf, ...], tuple[int, ...]]:
    """What an array argument is called, the floats that it stands for, and the dimensions it may have."""
    transform = derivative.transform
    if argument.role is Role.OUT:
        if transform.jacobian:
            return "jac", layout.outputs() + leaves(layout.partials()), (2,)
        if transform.call is Call.TANGENTS:
            return "tangent", layout.outputs(), (1, 2)
        return "out", leaves(layout.partials()), (1, 2)
    if argument.role is Role.COTANGENT:
        return "cotangent", layout.outputs(), (1, 2)
    parameter = layout.parameters[argument.parameter]
    if parameter.tree is None:
        raise SignatureError(
            f"{derivative.__qualname__}: {parameter.name!r} is held constant and must be handed over as it is, not as an array"
        )
    return parameter.name if argument.role is Role.PRIMAL else f"d{parameter.name}", leaves(parameter.tree), (1,)


def expected(derivative: DeviceDerivative, form: Form, layout: Layout, typed: Typed) -> Iterator[Any]:
    """The types at which the arguments of the call are handed over."""
    call = derivative.transform.call
    if form.call.out is None and call is not Call.ARGS:
        primals = derivative.function_value_types(form.base_types)
        yield cuda_types.tuple_of(primals)
        yield cuda_types.from_tree(layout.tangents() if call is Call.TANGENTS else layout.result)
        return
    for argument, given in zip(form.call.arguments, form.types):
        if argument.ndim:
            yield given
        elif argument.role is Role.PRIMAL:
            yield typed.types[argument.parameter] if form.call.out else derivative.function_value_types(form.base_types)[argument.parameter]
        elif argument.role is Role.TANGENT:
            tree = layout.parameters[argument.parameter].tree
            yield cuda_types.from_tree(tree) if tree is not None else given
        else:
            yield cuda_types.from_tree(layout.result)


def _fits(given: Any, tree: Tree) -> bool:
    if isinstance(tree, Leaf):
        return cuda_types.is_float_or_int(given)
    if not cuda_types.is_tuple(given):
        return False
    elements = cuda_types.elements(given)
    return len(elements) == len(tree.children) and all(_fits(t, child) for t, child in zip(elements, tree.children))


_USAGE = {
    Call.TANGENTS: "(primals, tangents) or (tangent, *args, *tangents)",
    Call.COTANGENT: "(primals, cotangent) or (cotangent, out, *args)",
}


def _usage(derivative: DeviceDerivative) -> str:
    if derivative.transform.call is Call.ARGS:
        return "(*args) or (jac, *args)" if derivative.transform.jacobian else "(*args)"
    return _USAGE[derivative.transform.call]


def _listed(types: Sequence[Any]) -> str:
    return f"({', '.join(str(t) for t in types)})"


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} {'argument' if len(names) == 1 else 'arguments'} ({', '.join(names)})"


def said(cuda_type: Any) -> str:
    plain = str(cuda_types.unliteral(cuda_type))
    return "None" if plain == "none" else f"{'an' if plain[0] in 'aeiou' else 'a'} {plain}"
