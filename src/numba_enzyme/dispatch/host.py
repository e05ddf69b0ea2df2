"""Call sites on the CPU: from the types of a call, made from Python or inside `njit`, to a specialization."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from numba.core import config, types
from numba.core import errors as numba_errors
from numba.core.compiler import CompileResult
from numba.core.datamodel.models import OpaqueModel
from numba.core.dispatcher import Dispatcher, _FunctionCompiler
from numba.core.imputils import lower_getattr_generic
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.core.typing.typeof import typeof
from numba.extending import register_model

from numba_enzyme import pipeline
from numba_enzyme.adapters.numba_types import from_tree, promoted, to_tree
from numba_enzyme.adapters.primal_target import PrimalDispatcher, meaning_of
from numba_enzyme.dispatch.signature import parameters, stub
from numba_enzyme.errors import SignatureError, UnsupportedError
from numba_enzyme.model.layout import Layout, Parameter
from numba_enzyme.model.specialization import Specialization
from numba_enzyme.model.transform import Argnums, Call, Transform, pick
from numba_enzyme.model.tree import Leaf, Node, Tree, leaves


def derivative(transform: Transform, function: Callable[..., Any], argnums: Argnums) -> Derivative:
    """The one `Derivative` that these ask for, for as long as `function` lives and means the same.

    It is kept on the function itself: a derivative holds its function, and any table elsewhere would keep both alive for ever.
    """
    if isinstance(function, Differentiable):
        function = function.primal
    _check_function(function)
    kept = function.__dict__.get(_KEPT)
    if kept is None or kept.owner() is not function:
        kept = _Kept(weakref.ref(function))
        setattr(function, _KEPT, kept)
    meaning = meaning_of(function)
    if kept.meaning != meaning:
        kept.meaning = meaning
        kept.derivatives.clear()
    key = (transform, argnums)
    if key not in kept.derivatives:
        kept.derivatives[key] = Derivative(transform, function, argnums)
    return kept.derivatives[key]


_KEPT = "__numba_enzyme_derivatives__"


@dataclass
class _Kept:
    """What has been derived of one function. It says whose it is, since functools.wraps copies attributes to other functions."""

    owner: weakref.ref[Any]
    meaning: str | None = None
    derivatives: dict[Any, Derivative] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        # A function pickled by value takes its attributes along; compiled code is not among what can travel.
        return _nothing_kept, ()


def _nothing_kept() -> _Kept:
    return _Kept(lambda: None)  # type: ignore[arg-type]


def _check_function(function: Any) -> None:
    if isinstance(function, (FunctionType, CPUDispatcher)):
        if config.DISABLE_JIT:
            raise UnsupportedError("NUMBA_DISABLE_JIT is set, and without Numba's compiler there is no code to differentiate: unset it")
        return
    said = getattr(function, "__qualname__", None) or repr(function)
    raise SignatureError(
        f"{said} is {_kind(function)}, but a transform takes a Python function or one compiled with njit. "
        "Wrap it: `lambda x: f(x)`, with the names that f reads as globals or closure variables that Numba understands"
    )


def _kind(function: Any) -> str:
    for kind, text in _KINDS:
        if isinstance(function, kind):
            return text
    return f"a {type(function).__name__}"


_KINDS = (
    (MethodType, "a method bound to an object"),
    (functools.partial, "a functools.partial"),
    ((BuiltinFunctionType, np.ufunc), "a function without Python source"),
    (type, "a class"),
)


class Derivative(CPUDispatcher):  # type: ignore[misc]
    """A transform of a function: a Numba dispatcher that builds one specialization for each list of argument types.

    Being a dispatcher, it is called from Python through Numba's own C code and inside `njit` like any compiled function.
    """

    def __init__(self, transform: Transform, function: Callable[..., Any], argnums: Argnums) -> None:
        self.primal = function if isinstance(function, Dispatcher) else PrimalDispatcher(function, targetoptions={"nopython": True})
        source = self.primal.py_func
        self.function_name = source.__qualname__
        self.parameters = parameters(source, self.function_name)
        self.transform = transform
        self.argnums = argnums
        self.picked = pick(argnums, tuple(p.name for p in self.parameters), self.function_name)
        super().__init__(stub(transform, source, self.parameters), targetoptions={"nopython": True})
        self._compiler = _Compiler(self, pipeline.build)
        self._reduced = (transform, function, argnums)

    def fingerprint_parts(self) -> tuple[Any, ...]:
        return ("derivative", self.transform.name, self.argnums, self.primal)

    def primal_twin(self) -> PrimalDispatcher:
        """This derivative inside a function that is itself differentiated."""
        made = PrimalDispatcher(self.py_func, targetoptions={"nopython": True})
        made._compiler = _Compiler(self, pipeline.emit)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Derivative, self._reduced

    def specialize(self, argtypes: tuple[Any, ...]) -> Specialization:
        """What a call with arguments of these types asks for."""
        given, seeds = self._split(argtypes)
        primal_types = tuple(self._primal_type(n, ty) for n, ty in enumerate(given))
        primal = self._lower(given, primal_types)
        result = _result_tree(primal.signature.return_type, self.function_name)
        layout = Layout(
            self.transform,
            tuple(
                Parameter(p.name, to_tree(ty) if n in self.picked else None)
                for n, (p, ty) in enumerate(zip(self.parameters, primal_types, strict=True))
            ),
            result,
            self.picked,
            self.argnums,
        )
        self._check_result(layout)
        self._check_seeds(layout, seeds)
        return Specialization(
            name=self.__name__,
            function=self.function_name,
            layout=layout,
            primal=primal,
            argnames=tuple(inspect.signature(self.py_func).parameters),
            argtypes=argtypes,
            restype=from_tree(_returned(layout)),
            defaults=tuple(p.default for p in self.parameters[len(argtypes[0].types) :]) if seeds is not None else (),
            fastmath=self.primal.targetoptions.get("fastmath") is True,
        )

    def _split(self, argtypes: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """The types of the primal's arguments as they are given, and that of the seeds."""
        if self.transform.call is Call.ARGS:
            return argtypes, None
        primals, seeds = argtypes
        if not isinstance(primals, types.BaseTuple):
            raise SignatureError(
                f"{self.__qualname__} is called {self.transform.call.value}: primals must be the tuple of all arguments of "
                f"{self.function_name}, not {_said(primals)}"
            )
        missing = self.parameters[len(primals.types) :]
        if len(primals.types) > len(self.parameters) or any(p.default is inspect.Parameter.empty for p in missing):
            raise SignatureError(
                f"{self.function_name} takes {len(self.parameters)} arguments ({', '.join(p.name for p in self.parameters)}), "
                f"but primals has {len(primals.types)}"
            )
        return (*primals.types, *(types.Omitted(p.default) for p in missing)), seeds

    def _primal_type(self, position: int, given: Any) -> Any:
        plain = typeof(given.value) if isinstance(given, types.Omitted) else given
        if position not in self.picked:
            return types.unliteral(plain)
        made = promoted(plain)
        if to_tree(made) is None:
            name = self.parameters[position].name
            others = tuple(n for n in self.picked if n != position)
            raise SignatureError(
                f"{self.__qualname__}: parameter {name!r} of {self.function_name} is {_said(plain)}, which has no derivative. "
                f"Differentiate by the others and hold it constant: argnums={others!r}"
            )
        return made

    def _lower(self, given: tuple[Any, ...], primal_types: tuple[Any, ...]) -> CompileResult:
        changed = [self.parameters[n].name for n in self.picked if _is_promoted(given[n])]
        try:
            return pipeline.lower(self.primal, primal_types, promoted=bool(changed))
        except numba_errors.NumbaError as error:
            if not changed:
                raise
            raise SignatureError(
                f"{self.function_name} cannot be compiled with {', '.join(changed)} as float64, to which integers are promoted where they "
                f"are differentiated. Hold what must stay an integer constant with argnums. Numba says: {error}"
            ) from error

    def _check_result(self, layout: Layout) -> None:
        if self.transform.scalar_only and len(layout.outputs()) != 1:
            raise SignatureError(
                f"{self.transform.name} needs a function with one float as its result, but {self.function_name} gives "
                f"{len(layout.outputs())}: use jacrev or jacfwd for all partials, or vjp with a weight for each result"
            )

    def _check_seeds(self, layout: Layout, seeds: Any) -> None:
        if seeds is None:
            return
        wanted = layout.tangents() if self.transform.call is Call.TANGENTS else layout.result
        if not _fits(seeds, wanted):
            what = "tangents, one entry for each differentiated argument," if self.transform.call is Call.TANGENTS else "the cotangent"
            raise SignatureError(f"{self.__qualname__}: {what} must be shaped like {from_tree(wanted)}, not {_said(seeds)}")


class Differentiable(CPUDispatcher):  # type: ignore[misc]
    """A function with its derivatives as attributes; called, it is the function."""

    def __init__(self, function: Callable[..., Any], transforms: Mapping[str, Callable[..., Any]]) -> None:
        _check_function(function)
        self.primal = function
        source = function if isinstance(function, FunctionType) else function.py_func
        options = {"nopython": True} if isinstance(function, FunctionType) else function.targetoptions
        super().__init__(source, targetoptions=options)
        self._transforms = transforms

    def __getattr__(self, name: str) -> Any:
        transforms = self.__dict__.get("_transforms", {})
        if name not in transforms:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return transforms[name](self.primal)

    @property
    def _numba_type_(self) -> _DifferentiableType:
        return _DifferentiableType(self)

    def fingerprint_parts(self) -> tuple[Any, ...]:
        return ("function", self.primal)

    def __reduce__(self) -> tuple[Any, ...]:
        return Differentiable, (self.primal, self._transforms)


class _DifferentiableType(types.Dispatcher):  # type: ignore[misc]
    """A `Differentiable` inside `njit`: a function whose attributes are functions."""


register_model(_DifferentiableType)(OpaqueModel)


@infer_getattr
class _DifferentiableAttributes(AttributeTemplate):  # type: ignore[misc]
    key = _DifferentiableType

    def generic_resolve(self, typ: _DifferentiableType, attr: str) -> Any:
        return types.Dispatcher(getattr(typ.dispatcher, attr)) if attr in typ.dispatcher._transforms else None


@lower_getattr_generic(_DifferentiableType)  # type: ignore[untyped-decorator]
def _lower_attribute(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    return context.get_dummy_value()


class _Compiler(_FunctionCompiler):  # type: ignore[misc]
    """Where Numba would compile a dispatcher's Python function, builds the derivative instead."""

    def __init__(self, derivative: Derivative, build: Callable[[Specialization], CompileResult]) -> None:
        super().__init__(derivative.py_func, derivative.targetdescr, derivative.targetoptions, {}, None)
        self._derivative = derivative
        self._build = build

    def _compile_core(self, args: tuple[Any, ...], return_type: Any) -> CompileResult:
        return self._build(self._derivative.specialize(tuple(args)))


def _returned(layout: Layout) -> Tree:
    """The shape of what a call of the derivative gives."""
    transform = layout.transform
    if transform.jacobian:
        return layout.jacobian()
    if transform.call is Call.TANGENTS:
        return layout.result
    if transform.with_value:
        return Node((layout.result, layout.partials()))
    return layout.partials()


def _result_tree(restype: Any, function: str) -> Tree:
    # The value of an integer result is exact and its derivative zero, as for a float that floor() gives.
    tree = to_tree(promoted(restype))
    if tree is None or not leaves(tree):
        raise SignatureError(f"{function} gives {_said(restype)}, but only a float or a tuple of floats has a derivative")
    return tree


def _is_promoted(given: Any) -> bool:
    return not isinstance(given, types.Omitted) and promoted(given) != types.unliteral(given)


def _fits(numba_type: Any, tree: Tree) -> bool:
    if isinstance(tree, Leaf):
        return isinstance(numba_type, (types.Float, types.Integer))
    return (
        isinstance(numba_type, types.BaseTuple)
        and len(numba_type.types) == len(tree.children)
        and all(_fits(t, child) for t, child in zip(numba_type.types, tree.children, strict=True))
    )


def _said(numba_type: Any) -> str:
    plain = types.unliteral(numba_type)
    article = "an" if str(plain)[0] in "aeiou" else "a"
    return "None" if plain == types.none else f"{article} {plain}"
