"""Call sites in CUDA code: from the types of a call in a kernel or device function to a specialization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba_enzyme import device_pipeline as pipeline
from numba_enzyme.adapters import cuda_callsite, cuda_installation, cuda_types, numba_cuda_mlir
from numba_enzyme.adapters.cuda_callsite import Code, Resolved, Zeros
from numba_enzyme.adapters.fingerprint import meaning_of
from numba_enzyme.device_batch import Request
from numba_enzyme.dispatch import device_forms
from numba_enzyme.dispatch.device_forms import said
from numba_enzyme.dispatch.signature import parameters
from numba_enzyme.errors import ArgumentError, SignatureError
from numba_enzyme.frontend.cuda import DevicePrimal
from numba_enzyme.model.device_call import DeviceCall, DeviceSpecialization, by_values
from numba_enzyme.model.layout import Layout, Parameter
from numba_enzyme.model.transform import Argnums, Call, Mode, Transform, pick
from numba_enzyme.model.tree import Tree, leaves

_KEPT = "__numba_enzyme_device_derivatives__"


@dataclass(frozen=True)
class Options:
    """What a user may say about a derivative in device code."""

    signature: tuple[Any, ...] | None = None
    cc: numba_cuda_mlir.CC | None = None
    tape_bytes: int = 4096


def derivative(transform: Transform, function: Any, argnums: Argnums, options: dict[str, Any]) -> DeviceDerivative:
    """The one `DeviceDerivative` that these ask for, for as long as `function` lives."""
    check_function(transform.name, function)
    checked = _checked(transform, options)
    kept: dict[Any, DeviceDerivative] = function.__dict__.setdefault(_KEPT, {})
    key = (transform, argnums, checked)
    if key not in kept:
        kept[key] = DeviceDerivative(transform, function, argnums, checked)
    return kept[key]


def check_function(transform: str, function: Any) -> None:
    """Raises `SignatureError` unless `function` is a device function or a derivative of one."""
    if isinstance(function, DeviceDerivative) or numba_cuda_mlir.is_device_dispatcher(function):
        return
    name = getattr(getattr(function, "py_func", None), "__qualname__", repr(function))
    raise SignatureError(
        f"{transform}: {name} is a kernel. Put what it computes for each thread into a function under @cuda.jit(device=True), and "
        f"call {transform} of that in a kernel"
    )


def _checked(transform: Transform, options: dict[str, Any]) -> Options:
    unknown = options.keys() - {"signature", "cc", "tape_bytes"}
    if unknown:
        raise SignatureError(f"{transform.name}: {', '.join(sorted(unknown))}= is no option of it")
    made: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "signature" in made:
        signature = made["signature"]
        types = getattr(signature, "args", signature)
        if not isinstance(types, (tuple, list)) or not all(hasattr(t, "mangling_args") for t in types):
            raise SignatureError(
                f"{transform.name}: signature={signature!r} is no signature; write types.float64(types.float64, types.float64) with the "
                "types of numba_cuda_mlir"
            )
        made["signature"] = tuple(types)
    if "cc" in made:
        cc = made["cc"]
        if not (isinstance(cc, tuple) and len(cc) == 2 and all(isinstance(part, int) for part in cc)):
            raise ArgumentError(f"{transform.name}: cc={cc!r} is no compute capability; write cc=(9, 0)")
    if not isinstance(made.get("tape_bytes", 0), int) or made.get("tape_bytes", 8) < 8:
        raise ArgumentError(f"{transform.name}: tape_bytes={made['tape_bytes']!r} is not a number of bytes")
    return Options(**made)


@dataclass(frozen=True)
class Typed:
    """A function at concrete types: the names and types of its values one after another, and what it gives."""

    primal: DevicePrimal
    names: tuple[str, ...]
    types: tuple[Any, ...]
    pickable: tuple[bool, ...]
    result: Tree


class DeviceDerivative:
    """A transform of a device function: called in kernels and device functions, and typed anew at each call site."""

    def __init__(self, transform: Transform, function: Any, argnums: Argnums, options: Options) -> None:
        self.transform = transform
        self.function = function
        self.argnums = argnums
        self.options = options
        self.source: Callable[..., Any] = function.source if isinstance(function, DeviceDerivative) else function.py_func
        inner = function if isinstance(function, DeviceDerivative) else None
        self.function_name: str = str(function.__qualname__ if inner else self.source.__qualname__)
        self.__qualname__: str = f"{transform.name}({self.function_name})"
        self.__name__ = f"{transform.name}_{function.__name__}"
        self.__module__ = self.source.__module__
        self.base_parameters = parameters(self.source, self.source.__qualname__)
        self.parameter_names = inner.call_names if inner else tuple(p.name for p in self.base_parameters)
        self.picked = pick(argnums, self.parameter_names, self.function_name)
        self._resolved: dict[Any, Resolved] = {}
        self._typed: dict[Any, Typed] = {}
        self._meaning: str | None = None
        cuda_callsite.register(DeviceDerivative)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise SignatureError(
            f"{self.__qualname__} is a derivative of a device function, and is called in kernels and device functions only. "
            "Call it in a function under @cuda.jit, or take the derivative of a Python or njit function"
        )

    def __repr__(self) -> str:
        return f"<{self.__qualname__} for CUDA>"

    @property
    def call_names(self) -> tuple[str, ...]:
        """The parameters of a call by values."""
        if self.transform.call is Call.ARGS:
            return self.parameter_names
        return ("primals", "tangents" if self.transform.call is Call.TANGENTS else "cotangent")

    @property
    def fastmath(self) -> bool:
        if isinstance(self.function, DeviceDerivative):
            return self.function.fastmath
        return bool(self.function.targetoptions.get("fastmath") or self.function.targetoptions.get("fast_math"))

    @property
    def signature(self) -> tuple[Any, ...] | None:
        """The types of the innermost function's arguments, if anyone said them."""
        inner = self.function.signature if isinstance(self.function, DeviceDerivative) else None
        return self.options.signature or inner

    @property
    def base_picked(self) -> tuple[int, ...]:
        """The parameters of the innermost function that are differentiated somewhere."""
        return self.function.base_picked if isinstance(self.function, DeviceDerivative) else self.picked

    def fingerprint_parts(self) -> tuple[Any, ...]:
        """What this is, for the fingerprint of a function that calls it."""
        options = self.options
        return ("device derivative", self.transform.name, self.argnums, options.signature, options.cc, options.tape_bytes, self.function)

    def _look_again(self) -> None:
        """Forgets what was typed when the function meant something else: before a global that it reads was bound anew, say."""
        meaning = meaning_of(self)
        if meaning != self._meaning:
            self._meaning = meaning
            self._resolved.clear()
            self._typed.clear()

    # What call sites ask.

    def resolve(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Resolved:
        self._look_again()
        key = (tuple(cuda_types.unliteral(t) for t in args), tuple((n, cuda_types.unliteral(t)) for n, t in sorted(kws.items())))
        if key not in self._resolved:
            self._resolved[key] = self._resolve(*key[:1], dict(key[1]))
        return self._resolved[key]

    def _resolve(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Resolved:
        form = device_forms.form(self, args, kws)
        typed = self.typed(form.base_types)
        spread = form.call.out is not None
        layout = self.layout(typed, spread=spread, base_types=form.base_types)
        device_forms.check(self, form, layout, typed)
        argtypes = tuple(device_forms.expected(self, form, layout, typed))
        asked: dict[Any, tuple[str, Code]] = {}

        def request(cc: numba_cuda_mlir.CC, zeros: Zeros) -> tuple[str, Code]:
            call = device_forms.with_zeros(form.call, layout, zeros)
            key = (self.options.cc or cc, call.zeros)
            if key not in asked:
                cuda_installation.check(key[0])
                emitted = pipeline.emit_device(self._specialization(layout, call, typed))
                asked[key] = emitted.symbol, Request(emitted, key[0])
            return asked[key]

        return Resolved(form.order, argtypes, None if spread else cuda_types.from_tree(layout.returned()), request)

    def _specialization(self, layout: Layout, call: DeviceCall, typed: Typed) -> DeviceSpecialization:
        counts = self._counts(layout, typed)
        return DeviceSpecialization(
            self.__name__, self.function_name, layout, call, typed.primal, counts, self.fastmath, self.options.tape_bytes
        )

    @staticmethod
    def _counts(layout: Layout, typed: Typed) -> tuple[int, ...]:
        each = [len(cuda_types.flat_scalars(t) or ()) for t in typed.types]
        if len(layout.parameters) == len(each):
            return tuple(each)
        # Parameters that stand together in tuples are differentiated all of them.
        return tuple(len(leaves(p.tree)) if p.tree is not None else 0 for p in layout.parameters)

    # The function that is differentiated, at concrete types.

    def typed(self, base_types: tuple[Any, ...]) -> Typed:
        """The primal of this transform, for these types of the innermost function's arguments."""
        if base_types not in self._typed:
            inner = self.function
            self._typed[base_types] = inner.as_primal(base_types) if isinstance(inner, DeviceDerivative) else self._lowered(base_types)
        return self._typed[base_types]

    def _lowered(self, base_types: tuple[Any, ...]) -> Typed:
        types = tuple(self._primal_type(n, t) for n, t in enumerate(base_types))
        primal = self._compiled(base_types, types)
        result = cuda_types.to_tree(cuda_types.promoted(primal.return_type))
        if result is None or not leaves(result):
            raise SignatureError(
                f"{self.function_name} gives {said(primal.return_type)}, but only a float or a tuple of floats has a derivative. "
                "Results that leave through an array have none in device code yet: return them"
            )
        names = tuple(p.name for p in self.base_parameters)
        return Typed(primal, names, types, tuple(n in self.picked for n in range(len(names))), result)

    def _primal_type(self, position: int, given: Any) -> Any:
        name = self.base_parameters[position].name
        if cuda_types.is_array(given):
            raise SignatureError(
                f"{self.__qualname__}: parameter {name!r} of {self.function_name} is {said(given)}. Device functions with array parameters "
                "cannot be differentiated yet: take the elements as a tuple; a call may then hand over an array in its place, given "
                "signature="
            )
        if position not in self.picked:
            if cuda_types.flat_scalars(given) is None:
                raise SignatureError(
                    f"{self.__qualname__}: parameter {name!r} of {self.function_name} is {said(given)}, which is no scalar"
                )
            return given
        made = cuda_types.promoted(given)
        if cuda_types.to_tree(made) is None:
            others = tuple(n for n in self.picked if n != position)
            raise SignatureError(
                f"{self.__qualname__}: parameter {name!r} of {self.function_name} is {said(given)}, which has no derivative. "
                f"Differentiate by the others and hold it constant: argnums={others!r}"
            )
        return made

    def _compiled(self, given: tuple[Any, ...], types: tuple[Any, ...]) -> DevicePrimal:
        cc = self.options.cc or numba_cuda_mlir.current_cc()
        cuda_installation.check(cc)
        promoted = [n for n, (g, t) in enumerate(zip(given, types, strict=True)) if cuda_types.unliteral(g) != t]
        try:
            return pipeline.lower_device(self.function, types, cc)
        except Exception as error:
            if not promoted or not numba_cuda_mlir.is_compilation_error(error):
                raise
            names = ", ".join(self.base_parameters[n].name for n in promoted)
            others = tuple(n for n in self.base_picked if n not in promoted)
            way_out = f", as in argnums={others!r}" if others else ""
            raise SignatureError(
                f"{self.function_name} cannot be compiled with {names} as float64, to which integers are promoted where they are "
                f"differentiated. Hold what must stay an integer constant with argnums{way_out}. The compiler says: {error}"
            ) from error

    def as_primal(self, base_types: tuple[Any, ...]) -> Typed:
        """This derivative as a function that is differentiated itself."""
        self._look_again()
        typed = self.typed(base_types)
        layout = self.layout(typed, spread=True, base_types=base_types)
        device_forms.check_result(self, layout)
        emitted = pipeline.emit_device(self._specialization(layout, by_values(layout), typed))
        seeds = device_forms.seeds(self, layout)
        return Typed(
            emitted.core,
            (*typed.names, *(name for name, _ in seeds)),
            (*typed.types, *(cuda_types.from_tree(tree) for _, tree in seeds)),
            (*(n in self.spread_picked() for n in range(len(typed.names))), *(True for _ in seeds)),
            layout.returned(),
        )

    # Layouts.

    def groups(self) -> list[list[int]]:
        """For each parameter of a call by values, the values of the spread list that it holds."""
        inner = self.function
        if not isinstance(inner, DeviceDerivative):
            return [[n] for n in range(len(self.base_parameters))]
        return inner.call_groups()

    def call_groups(self) -> list[list[int]]:
        groups = self.groups()
        if self.transform.call is Call.ARGS:
            return groups
        known = sum(len(g) for g in groups)
        seeds = len(self.spread_picked()) if self.transform.call is Call.TANGENTS else 1
        return [[n for g in groups for n in g], list(range(known, known + seeds))]

    def spread_picked(self) -> list[int]:
        """The values of the spread list by which this transform differentiates."""
        groups = self.groups()
        return [n for position in self.picked for n in groups[position]]

    def layout(self, typed: Typed, *, spread: bool, base_types: tuple[Any, ...]) -> Layout:
        if not spread and isinstance(self.function, DeviceDerivative):
            return self._grouped_layout(typed, base_types)
        picked = [n for n in self.spread_picked() if typed.pickable[n] or self.argnums is not None]
        parameters = tuple(
            Parameter(name, cuda_types.to_tree(t) if n in picked else None)
            for n, (name, t) in enumerate(zip(typed.names, typed.types, strict=True))
        )
        for n in picked:
            if parameters[n].tree is None:
                raise SignatureError(f"{self.__qualname__}: {typed.names[n]!r} is {said(typed.types[n])}, which has no derivative")
        bare = isinstance(self.argnums, int) and len(picked) == 1
        return Layout(self.transform, parameters, typed.result, tuple(picked), picked[0] if bare else None, self._mode(typed))

    def _mode(self, typed: Typed) -> Mode:
        # Enzyme's reverse mode over its own reverse mode gives wrong numbers, in silence, for loops with several ways round.
        return Mode.FORWARD if pipeline.holds_reverse_sweep(typed.primal) else self.transform.mode

    def _grouped_layout(self, typed: Typed, base_types: tuple[Any, ...]) -> Layout:
        inner: DeviceDerivative = self.function
        made = [cuda_types.to_tree(t) for t in inner.value_types(base_types)]
        for name, tree in zip(self.parameter_names, made, strict=True):
            if tree is None:
                raise SignatureError(
                    f"{self.__qualname__}: {name!r} holds values that have no derivative. Take the derivative with arrays for its result, "
                    "or put a function around that takes the floats alone"
                )
        parameters = tuple(
            Parameter(n, t if k in self.picked else None) for k, (n, t) in enumerate(zip(self.parameter_names, made, strict=True))
        )
        return Layout(self.transform, parameters, typed.result, self.picked, self.argnums, self._mode(typed))

    def function_value_types(self, base_types: tuple[Any, ...]) -> list[Any]:
        """The types of the arguments of the function that is differentiated, in a call by values."""
        inner = self.function
        return inner.value_types(base_types) if isinstance(inner, DeviceDerivative) else list(self.typed(base_types).types)

    def value_types(self, base_types: tuple[Any, ...]) -> list[Any]:
        """The types of this derivative's arguments in a call by values."""
        given = self.function_value_types(base_types)
        if self.transform.call is Call.ARGS:
            return given
        if self.transform.call is Call.COTANGENT:
            return [cuda_types.tuple_of(given), cuda_types.from_tree(self.typed(base_types).result)]
        return [cuda_types.tuple_of(given), cuda_types.tuple_of([given[n] for n in self.picked])]
