"""Ready-made code as Numba compile results, for the primal target and for the CPU.

Checked on Numba 0.62 to 0.68.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import cgutils, funcdesc, itanium_mangler, types, typing
from numba.core.callconv import excinfo_ptr_t
from numba.core.compiler import compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from numba_enzyme.adapters import primal_target
from numba_enzyme.adapters.host_codegen import HostLibrary, create_codegen, create_library

if TYPE_CHECKING:
    from collections.abc import Callable

    import llvmlite.binding as ll
    from llvmlite import ir
    from numba.core.compiler import CompileResult

PACKAGE = "numba_enzyme"


def describe(name: str, tag: str, argnames: tuple[str, ...], argtypes: tuple[Any, ...], restype: Any) -> funcdesc.FunctionDescriptor:
    """Numba's description of a compiled function whose symbol is unique through `tag`."""

    def mangle(qualified: str, argument_types: Any, **_: Any) -> str:
        return str(itanium_mangler.mangle(qualified, argument_types, abi_tags=(tag,)))

    return funcdesc.FunctionDescriptor(
        native=True,
        modname=PACKAGE,
        qualname=name,
        unique_name=f"{name}_{tag}",
        doc="",
        typemap=None,
        restype=restype,
        calltypes=None,
        args=argnames,
        kws=(),
        mangler=mangle,
        argtypes=argtypes,
    )


def primal_context() -> Any:
    """The target context in which entry points are emitted."""
    context = primal_target.descriptor.target_context
    context.refresh()
    return context.subtarget(enable_nrt=True)


def primal_library(module: ir.Module, fndesc: funcdesc.FunctionDescriptor, callee: CompileResult) -> primal_target.PrimalLibrary:
    """An emitted entry point over the call tree of `callee`."""
    library: primal_target.PrimalLibrary = primal_context().codegen().create_library(fndesc.unique_name)
    with global_compiler_lock:
        library.add_linking_library(callee.library)
        library.add_ir_module(module)
        library.finalize()
    return library


def primal_result(library: primal_target.PrimalLibrary, fndesc: funcdesc.FunctionDescriptor) -> CompileResult:
    """An entry point that code of the primal target may call. Numba remembers it until it is told that its dispatcher died."""
    return _result(primal_context(), primal_target.descriptor.typing_context, library, fndesc, None)


def host_result(module: ll.ModuleRef, fndesc: funcdesc.FunctionDescriptor) -> CompileResult:
    """A finished module as a function of Numba's CPU target: callable from Python and linked into what calls it.

    The module has a context of its own, and goes with it.
    """
    library = create_library(fndesc.unique_name)
    # What calls it may be kept as object code (cache=True), and so may it.
    library.enable_object_caching()
    module.verify()
    library.finished = module
    environment = Environment.from_fndesc(fndesc)
    with global_compiler_lock:
        context = _host_context()
        boxing = context
        if not (all(_is_borrowed(ty) for ty in fndesc.argtypes) and _is_plain(fndesc.restype)):
            boxing = context.subtarget(enable_nrt=True)
            library.add_linking_library(rtsys.library)
        boxing.create_cpython_wrapper(library, fndesc, environment, None)
        return _loaded(context, library, fndesc, environment)


def _loaded(context: Any, library: HostLibrary, fndesc: funcdesc.FunctionDescriptor, environment: Environment) -> CompileResult:
    result = _result(context, cpu_target.typing_context, library, fndesc, environment)
    # Numba tells its own engine where the environment is, and the code is in another.
    library.codegen.set_env(context.get_env_name(fndesc), environment)
    return result


def _is_plain(numba_type: Any) -> bool:
    """Whether values of this type, or tuples of them, are made and taken apart without Numba's memory runtime."""
    if isinstance(numba_type, types.BaseTuple):
        return all(_is_plain(element) for element in numba_type.types)
    return isinstance(types.unliteral(numba_type), (types.Number, types.Boolean, types.NoneType, types.Omitted))


def _is_borrowed(numba_type: Any) -> bool:
    """Whether arguments of this type are read where Python keeps them, which is cheaper than to count a reference."""
    if isinstance(numba_type, types.BaseTuple):
        return all(_is_borrowed(element) for element in numba_type.types)
    return isinstance(numba_type, types.Array) or _is_plain(numba_type)


def saved(result: CompileResult) -> bytes:
    """The code of a `host_result`: for the machine, and as bitcode for callers to inline."""
    _, _, (machine_code, bitcode) = result.library.serialize_using_object_code()
    # What boxing arrays needs: their dtypes. Nothing else is ever among the constants.
    dtypes = json.dumps([dtype.str for dtype in result.environment.consts]).encode()
    code: bytes = struct.pack("<QQ", len(dtypes), len(machine_code)) + dtypes + machine_code + bitcode
    return code


def loaded(code: bytes, fndesc: funcdesc.FunctionDescriptor) -> CompileResult:
    """The `host_result` whose code was `saved`."""
    dtypes_length, length = struct.unpack_from("<QQ", code)
    start = 16 + dtypes_length
    state = (fndesc.unique_name, "object", (code[start : start + length], code[start + length :]))
    environment = Environment.from_fndesc(fndesc)
    environment.consts.extend(np.dtype(text) for text in json.loads(code[16:start]))
    with global_compiler_lock:
        context = _host_context()
        library = HostLibrary._unserialize(create_codegen(fndesc.unique_name), state)
        return _loaded(context, library, fndesc, environment)


def _host_context() -> Any:
    context = cpu_target.target_context
    context.refresh()
    return context


def _result(context: Any, typing_context: Any, library: Any, fndesc: funcdesc.FunctionDescriptor, environment: Any) -> CompileResult:
    entry_point = context.get_executable(library, fndesc, environment)
    context.insert_user_function(entry_point, fndesc, [library])
    return compile_result(
        typing_context=typing_context,
        target_context=context,
        entry_point=entry_point,
        typing_error=None,
        type_annotation=None,
        signature=typing.signature(fndesc.restype, *fndesc.argtypes),
        objectmode=False,
        lifted=(),
        fndesc=fndesc,
        library=library,
        call_helper=None,
        environment=environment,
        metadata={},
        reload_init=[],
    )


def return_if_raised(context: Any, builder: ir.IRBuilder, code: ir.Value, excinfo: ir.Value, leave: Callable[[], None]) -> None:
    """Returns from the function that `builder` is in, with what was raised, if `code` says that something was.

    `leave` emits what is done before.
    """
    convention = context.call_conv
    status = convention._get_return_status(builder, code, builder.bitcast(excinfo, excinfo_ptr_t))
    with cgutils.if_unlikely(builder, status.is_error):
        leave()
        convention.return_status_propagate(builder, status)
