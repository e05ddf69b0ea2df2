"""Call sites on the CPU: from the types of a call, made from Python or inside `njit`, to a specialization."""

from __future__ import annotations

import functools
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from numba.core import errors as numba_errors
from numba.core import types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.typeof import typeof

from numba_enzyme import recall
from numba_enzyme.adapters.built_dispatcher import AttributedDispatcher, BuiltDispatcher, BuiltPrimal
from numba_enzyme.adapters.fingerprint import Unfingerprintable, call_fingerprint
from numba_enzyme.adapters.numba_types import contiguous, fits, from_tree, promoted, read_only, said, to_tree
from numba_enzyme.adapters.primal_target import PrimalDispatcher, fastmath_flags
from numba_enzyme.dispatch.annotations import annotated_trees
from numba_enzyme.dispatch.functions import check_function, kept, picklable
from numba_enzyme.dispatch.signature import is_missing, parameters, stub
from numba_enzyme.errors import SignatureError, UnsupportedError
from numba_enzyme.model.layout import Layout, Parameter
from numba_enzyme.model.specialization import Request, Specialization
from numba_enzyme.model.transform import Call, Mode, pick
from numba_enzyme.model.tree import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numba.core.compiler import CompileResult

    from numba_enzyme.model.transform import Argnums, Transform
    from numba_enzyme.model.tree import Tree


def derivative(transform: Transform, function: Callable[..., Any], argnums: Argnums) -> Derivative:
    """The one `Derivative` that these ask for, for as long as `function` lives and means the same."""
    if isinstance(function, Differentiable):
        function = function.primal
    check_function(function)
    made: Derivative = kept(function, (transform, argnums), lambda: Derivative(transform, function, argnums))
    return made


class Derivative(BuiltDispatcher):
    """A transform of a function: a Numba dispatcher that builds one specialization for each list of argument types.

    Being a dispatcher, it is called from Python through Numba's own C code and inside `njit` like any compiled function.
    """

    def __init__(self, transform: Transform, function: Callable[..., Any], argnums: Argnums) -> None:
        self.function = function
        source = function.py_func if isinstance(function, Dispatcher) else function
        self.transform = transform
        self.argnums = argnums
        self.function_name = source.__qualname__
        self.parameters = parameters(source, self.function_name)
        names = tuple(p.name for p in self.parameters)
        self.picked = pick(argnums, names, self.function_name)
        self.annotated = annotated_trees(source, names)
        super().__init__(stub(transform, source, self.parameters), self._build)
        if self.annotated is not None:
            self.compile(self._annotated_call())

    @functools.cached_property
    def primal(self) -> Any:
        """The function as a dispatcher. Its target is not needed, and not set up, where a build is found on disk."""
        return self.function if isinstance(self.function, Dispatcher) else PrimalDispatcher(self.function, targetoptions={"nopython": True})

    def primal_twin(self) -> PrimalDispatcher:
        """This derivative inside a function that is itself differentiated."""
        return BuiltPrimal(self.py_func, lambda argtypes: _pipeline().emit(self.specialize(argtypes)))

    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What this is, for the fingerprint of a function that calls it."""
        return ("derivative", self.transform.name, self.transform.has_aux, self.argnums, self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        return derivative, (self.transform, picklable(self.function), self.argnums)

    def _build(self, argtypes: tuple[Any, ...]) -> CompileResult:
        self._check_missing(argtypes)
        request = self.request(argtypes)
        quick = recall.quick_key(request)
        found = recall.recalled(quick, request) if quick else None
        return found or _pipeline().build(request.specialize(), quick)

    def _check_missing(self, argtypes: tuple[Any, ...]) -> None:
        missing = [name for name, ty in zip(self._argnames(), argtypes, strict=True) if is_missing(ty)]
        if missing:
            takes = f"{self.function_name}({', '.join(p.name for p in self.parameters)})"
            plain = self.transform.call is Call.ARGS
            called = f"as {takes} is" if plain else f"{self.transform.call.value}, with the arguments of {takes} as primals"
            raise SignatureError(f"{self.__qualname__} was called without {', '.join(missing)}: it is called {called}")

    def request(self, argtypes: tuple[Any, ...]) -> Request:
        """A call with arguments of these types, before anything is compiled for it."""
        try:
            fingerprint = call_fingerprint(self.fingerprint_parts(), argtypes)
        except Unfingerprintable:
            fingerprint = None
        return Request(self.__name__, self._argnames(), argtypes, fingerprint, lambda: self.specialize(argtypes))

    def specialize(self, argtypes: tuple[Any, ...]) -> Specialization:
        """What a call with arguments of these types asks for."""
        given, seeds = self._split(argtypes)
        primal_types = tuple(self._primal_type(n, ty) for n, ty in enumerate(given))
        primal = self._lower(given, primal_types)
        primal_types = tuple(primal.signature.args)
        # Enzyme's reverse mode over its own reverse mode gives wrong numbers, in silence, for loops with several ways round.
        mode = Mode.FORWARD if _pipeline().holds_reverse_sweep(primal) else self.transform.mode
        loss, aux = _split_result(self.transform, primal.signature.return_type, self.function_name)
        layout = self._layout(primal_types, loss, mode)
        if seeds is not None:
            self._check_seeds(layout, seeds)
        self._check_writes(layout, primal.signature.args)
        return Specialization(
            name=self.__name__,
            function=self.function_name,
            layout=layout,
            primal=primal,
            argnames=self._argnames(),
            argtypes=argtypes,
            restype=_returned(layout, aux),
            defaults=tuple(ty.value for ty in given[len(argtypes[0].types) :]) if seeds is not None else (),
            fastmath=fastmath_flags(self.primal),
        )

    def _argnames(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.py_func).parameters)

    def _split(self, argtypes: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """The types of the primal's arguments as they are given, and that of the seeds."""
        if self.transform.call is Call.ARGS:
            return argtypes, None
        primals, seeds = argtypes
        if not isinstance(primals, types.BaseTuple):
            raise SignatureError(
                f"{self.__qualname__} is called {self.transform.call.value}: primals must be the tuple of all arguments of "
                f"{self.function_name}, not {said(primals)}"
            )
        missing = self.parameters[len(primals.types) :]
        if len(primals.types) > len(self.parameters) or any(p.default is inspect.Parameter.empty for p in missing):
            raise SignatureError(
                f"{self.function_name} takes {len(self.parameters)} arguments ({', '.join(p.name for p in self.parameters)}), "
                f"but primals has {len(primals.types)}"
            )
        return (*primals.types, *(types.Omitted(p.default) for p in missing)), seeds

    def _primal_type(self, position: int, given: Any) -> Any:
        plain = typeof(given.value) if isinstance(given, types.Omitted) else types.unliteral(given)
        name = self.parameters[position].name
        if isinstance(plain, _OPAQUE):
            raise UnsupportedError(
                f"{self.__qualname__}: parameter {name!r} of {self.function_name} is {said(plain)}, whose "
                "code cannot be seen. Pass the numbers it holds, or call an njit function by its name"
            )
        if position not in self.picked and _holds(plain, _CONTAINERS):
            raise UnsupportedError(
                f"{self.__qualname__}: parameter {name!r} of {self.function_name} is {said(plain)}, which derivatives cannot read. "
                "Pass a tuple or an array"
            )
        if position not in self.picked:
            made = plain
        else:
            made = contiguous(promoted(plain))
            if to_tree(made) is None:
                others = tuple(n for n in self.picked if n != position)
                raise SignatureError(
                    f"{self.__qualname__}: parameter {name!r} of {self.function_name} is {said(plain)}, which has no derivative. "
                    + (f"Differentiate by the others and hold it constant: argnums={others!r}" if others else "Use argnums to name others")
                )
        if self.annotated is not None:
            tree = self.annotated[0][position]
            fixed = from_tree(tree)
            if to_tree(contiguous(promoted(plain))) != tree:
                raise SignatureError(f"{self.function_name} is annotated: parameter {name!r} is {said(fixed)}, and {said(plain)} was given")
            made = contiguous(plain) if isinstance(plain, types.Array) else fixed
        return made

    def _lower(self, given: tuple[Any, ...], primal_types: tuple[Any, ...]) -> CompileResult:
        changed = [self.parameters[n].name for n in self.picked if _is_promoted(given[n])]
        # An array's layout is for Numba to find.
        fixed = self.annotated is not None and not any(leaf.is_array for leaf in leaves(self.annotated[1]))
        restype = from_tree(self.annotated[1]) if fixed and self.annotated is not None else None
        # Where f compiles for arrays that are read only it writes to none that it is given, and much follows (entrypoints/flat.py).
        kept = tuple(read_only(ty) for ty in primal_types)
        try:
            if kept != primal_types:
                with suppress(Exception):  # Numba fails in many ways where something is written to that cannot be
                    return _pipeline().lower(self.primal, kept, restype, promoted=bool(changed))
            return _pipeline().lower(self.primal, primal_types, restype, promoted=bool(changed))
        except UnsupportedError as error:
            raise UnsupportedError(f"{self.function_name} cannot be differentiated: {error}") from None
        except numba_errors.NumbaError as error:
            if not changed:
                raise
            raise SignatureError(
                f"{self.function_name} cannot be compiled with {', '.join(changed)} as float64, to which integers are promoted where they "
                f"are differentiated. Hold what must stay an integer constant with argnums. Numba says: {error}"
            ) from error

    def _layout(self, primal_types: tuple[Any, ...], restype: Any, mode: Mode) -> Layout:
        trees = [to_tree(ty) if n in self.picked else None for n, ty in enumerate(primal_types)]
        named = [Parameter(p.name, tree) for p, tree in zip(self.parameters, trees, strict=True)]
        layout = Layout(self.transform, tuple(named), _result_tree(restype, self.function_name), self.picked, self.argnums, mode)
        outputs = layout.outputs()
        if self.transform.scalar_only and (len(outputs) != 1 or outputs[0].is_array):
            given = said(restype) if len(outputs) == 1 else len(outputs)
            raise SignatureError(
                f"gradients and Hessians need a function with one float as its result, but {self.function_name} gives {given}: use "
                "jacrev or jacfwd for all partials, jacfwd(jacrev(f)) for all second ones, or vjp with a weight for each result"
            )
        return layout

    def _check_seeds(self, layout: Layout, seeds: Any) -> None:
        if not fits(seeds, layout.seeds()):
            tangents = "tangents, one entry for each differentiated argument,"
            what = tangents if self.transform.call is Call.TANGENTS else "the cotangent"
            raise SignatureError(f"{self.__qualname__}: {what} must be shaped like {from_tree(layout.seeds())}, not {said(seeds)}")

    def _check_writes(self, layout: Layout, primal_types: tuple[Any, ...]) -> None:
        """Arrays that are differentiated are copied if f may write to them. Others are f's to change, but not several times in one call."""
        several = layout.transform.jacobian or layout.transform.has_aux or layout.mode is not self.transform.mode
        if not several:
            return
        for n, numba_type in enumerate(primal_types):
            if n not in self.picked and isinstance(numba_type, types.Array) and numba_type.mutable and self._writes_to(n, primal_types):
                raise UnsupportedError(
                    f"{self.__qualname__} runs {self.function_name} several times, and it writes to its argument "
                    f"{self.parameters[n].name!r}: let it work on a copy"
                )

    def _writes_to(self, position: int, primal_types: tuple[Any, ...]) -> bool:
        """Whether f does not compile with this argument read only."""
        kept = tuple(read_only(ty) if n == position else ty for n, ty in enumerate(primal_types))
        try:
            _pipeline().lower(self.primal, kept, None, promoted=False)
        except Exception:  # noqa: BLE001 - as above
            return True
        return False

    def _annotated_call(self) -> tuple[Any, ...]:
        """The types of the one call that annotations leave."""
        trees, result = self.annotated  # type: ignore[misc]
        primals = tuple(from_tree(tree) for tree in trees)
        if self.transform.call is Call.ARGS:
            return primals
        layout = self._layout(primals, from_tree(result), self.transform.mode)
        return types.BaseTuple.from_types(primals), from_tree(layout.seeds())


class Differentiable(AttributedDispatcher):
    """A function with its derivatives as attributes; called, it is the function."""

    def __init__(self, function: Callable[..., Any], transforms: Mapping[str, Callable[..., Any]]) -> None:
        check_function(function)
        self.primal = function
        self._transforms = transforms
        if isinstance(function, Dispatcher):
            super().__init__(function.py_func, targetoptions=function.targetoptions)
        else:
            super().__init__(function, targetoptions={"nopython": True})

    def attribute(self, name: str) -> Derivative | None:
        transform = self.__dict__.get("_transforms", {}).get(name)
        return transform(self.primal) if transform else None

    def __getattr__(self, name: str) -> Any:
        found = self.attribute(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found

    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What this is, for the fingerprint of a function that calls it."""
        return ("function", self.primal)

    def __reduce__(self) -> tuple[Any, ...]:
        return Differentiable, (picklable(self.primal), self._transforms)


# Values whose code is not in the IR: objects of jitclasses, pointers to functions.
_OPAQUE = (types.ClassInstanceType, types.FunctionType)

# Values that Numba keeps in memory of another make than arrays.
_CONTAINERS = (types.List, types.Set, types.ListType, types.DictType)


def _pipeline() -> Any:
    """Loaded when something has to be built."""
    from numba_enzyme import pipeline  # noqa: PLC0415

    return pipeline


def _result_tree(restype: Any, function: str) -> Tree:
    # The value of an integer result is exact and its derivative zero, as for a float that floor() gives.
    tree = to_tree(promoted(restype))
    if tree is None or not leaves(tree):
        raise SignatureError(f"{function} gives {said(restype)}, but only a float or a tuple of floats has a derivative")
    return tree


def _holds(numba_type: Any, kinds: tuple[Any, ...]) -> bool:
    if isinstance(numba_type, types.BaseTuple):
        return any(_holds(element, kinds) for element in numba_type.types)
    return isinstance(numba_type, kinds)


def _split_result(transform: Transform, restype: Any, function: str) -> tuple[Any, Any]:
    """The type of what is differentiated, and of what is handed through beside it (None if nothing is)."""
    if not transform.has_aux:
        return restype, None
    if not isinstance(restype, types.BaseTuple) or len(restype.types) != 2:
        raise SignatureError(f"{transform.name} with has_aux=True needs a pair (loss, aux), but {function} gives {said(restype)}")
    loss, aux = restype.types
    if not _is_aux(aux):
        raise SignatureError(
            f"{transform.name}: aux of {function} is {said(aux)}; only numbers, arrays and tuples of them are handed through"
        )
    return loss, aux


def _is_aux(numba_type: Any) -> bool:
    if isinstance(numba_type, types.BaseTuple):
        return all(_is_aux(element) for element in numba_type.types)
    inner = numba_type.dtype if isinstance(numba_type, types.Array) else types.unliteral(numba_type)
    return isinstance(inner, (types.Number, types.Boolean))


def _returned(layout: Layout, aux: Any) -> Any:
    if aux is None:
        return from_tree(layout.returned())
    kept, partials = contiguous(aux), from_tree(layout.partials())
    if layout.transform.with_value:
        return types.BaseTuple.from_types([types.BaseTuple.from_types([from_tree(layout.result), kept]), partials])
    return types.BaseTuple.from_types([partials, kept])


def _is_promoted(given: Any) -> bool:
    return not isinstance(given, types.Omitted) and promoted(given) != types.unliteral(given)
