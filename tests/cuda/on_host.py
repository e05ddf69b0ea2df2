"""Runs derivatives of device functions on the CPU: what comes out of Enzyme for CUDA, compiled for this machine.

Everything up to Enzyme and Enzyme itself are what a GPU gets; libNVVM is left out. `evaluate(derivative, *args)` is the call that a kernel
would make, with arrays of NumPy.
"""

import ctypes
import functools
import math
import os
import re
import subprocess

import llvmlite.binding as ll
import numpy as np

from numba_enzyme import device_pipeline as pipeline
from numba_enzyme.adapters import cuda_types
from numba_enzyme.adapters.cuda_callsite import Default
from numba_enzyme.dispatch import device_forms
from numba_enzyme.enzyme import toolchain
from numba_enzyme.llvm import typed
from numba_enzyme.model.tree import Leaf
from numba_enzyme.rules import libdevice

LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
_C = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "i1": ctypes.c_int8,
    "i8": ctypes.c_int8,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
}
_LIBM = ctypes.CDLL("libm.so.6")
_MISSING = {}
_engines = []


def evaluate(derivative, *args, **kws):
    """What `derivative(*args)` gives in device code; arrays among `args` are written to."""
    types = tuple(typeof(a) for a in args)
    named = {k: typeof(v) for k, v in kws.items()}
    resolved = derivative.resolve(types, named)
    _symbol, run, signature, layout = _compiled(derivative, types, tuple(sorted(named.items())))
    given = []
    for source, wanted in zip(resolved.order, resolved.argtypes, strict=True):
        value = source.value if isinstance(source, Default) else args[source] if isinstance(source, int) else kws[source]
        given += _flat(value, wanted)
    slots = (ctypes.c_char * (8 * max(len(given), 1)))()
    for n, (value, parameter) in enumerate(zip(given, signature.parameters, strict=True)):
        kind = ctypes.c_void_p if parameter.type.endswith("*") else _C[parameter.type]
        kind.from_buffer(slots, 8 * n).value = value
    out = (ctypes.c_char * 8 * 4096)()
    run(ctypes.addressof(slots), ctypes.addressof(out))
    if resolved.restype is None:
        return None
    results = pipeline.cuda.results(signature.returns)
    values = iter(_C[t].from_buffer(out, 8 * n).value for n, t in enumerate(results))
    return _tree(layout.returned(), values)


def typeof(value):
    if isinstance(value, np.ndarray):
        return cuda_types.typeof(value)
    if isinstance(value, np.generic):
        return cuda_types.typeof(value)
    return cuda_types.typeof(value)


def _flat(value, wanted):
    if isinstance(value, np.ndarray):
        strides = [s // value.itemsize for s in value.strides]
        return [value.ctypes.data, value.ctypes.data, 0, *value.shape, *strides]
    if isinstance(value, tuple):
        return [x for v, t in zip(value, cuda_types.elements(wanted), strict=True) for x in _flat(v, t)]
    return [float(value) if "float" in str(wanted) else int(value)]


def _tree(tree, values):
    if isinstance(tree, Leaf):
        return next(values)
    return tuple(_tree(child, values) for child in tree.children)


@functools.cache
def _compiled(derivative, types, kws):
    form = device_forms.form(derivative, types, dict(kws))
    at = derivative.typed(form.base_types)
    layout = derivative.layout(at, spread=form.call.out is not None, base_types=form.base_types)
    emitted = pipeline.emit_device(derivative._specialization(layout, form.call, at))
    after = pipeline.differentiate_device(emitted, pipeline.prepared(emitted))
    text = pipeline.finish_device(emitted, after)
    return emitted.symbol, *host_code(text, emitted.symbol), layout


def host_code(text, symbol):
    """The function `symbol` of a differentiated module as one that reads its arguments from slots of 8 bytes and writes results to them."""
    signature = typed.signature(typed.parts(text).definitions[symbol])
    results = pipeline.cuda.results(signature.returns)
    lines = []
    for n, p in enumerate(signature.parameters):
        kind = p.type if p.type.endswith("*") or p.type in ("double", "float") or p.type in ("i8", "i32", "i64", "i1") else None
        lines += [
            f"  %p{n} = getelementptr i8, i8* %in, i64 {8 * n}",
            f"  %q{n} = bitcast i8* %p{n} to {kind}*",
            f"  %a{n} = load {kind}, {kind}* %q{n}",
        ]
    arguments = ", ".join(f"{p.type} %a{n}" for n, p in enumerate(signature.parameters))
    call = f"call {signature.returns} @{symbol}({arguments})"
    lines.append(f"  {call}" if signature.returns == "void" else f"  %r = {call}")
    for n, t in enumerate(results):
        value = "%r" if len(results) == 1 else f"%v{n}"
        if len(results) > 1:
            lines.append(f"  %v{n} = extractvalue {signature.returns} %r, {n}")
        lines += [
            f"  %s{n} = getelementptr i8, i8* %out, i64 {8 * n}",
            f"  %t{n} = bitcast i8* %s{n} to {t}*",
            f"  store {t} {value}, {t}* %t{n}",
        ]
    text += "\ndefine void @run(i8* %in, i8* %out) {\n" + "\n".join(lines) + "\n  ret void\n}\n"
    text = text.replace("@__numba_cuda_mlir_error_code = external global i32", "@__numba_cuda_mlir_error_code = internal global i32 0")
    text = re.sub(r'target datalayout = "[^"]*"', f'target datalayout = "{LAYOUT}"', text)
    text = re.sub(r'target triple = "[^"]*"', 'target triple = "x86_64-pc-linux-gnu"', text)
    text = re.sub(r"@powi(f?)\(", lambda m: f"@llvm.powi.f{'32' if m[1] else '64'}.i32(", text)
    text = re.sub(
        r" (?:readnone|readonly|willreturn|mustprogress|nofree|nosync)(?=[ \n])",
        "",
        re.sub(r"^attributes #.*\n", "", text, flags=re.MULTILINE),
    )
    text = re.sub(r"(?<=[)\w]) #\d+", "", text)
    opaque = _opaque(text)
    module = ll.parse_assembly(re.sub(r" (?:readnone|readonly|writeonly|argmemonly|nocapture)(?=[ ,)\n])", "", opaque))
    module.verify()
    called = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    for name in called:
        if name.startswith("__nv_") and hasattr(_LIBM, name[5:]) and not ll.address_of_symbol(name):
            ll.add_symbol(name, ctypes.cast(getattr(_LIBM, name[5:]), ctypes.c_void_p).value)
    missing = [name for name in called if not ll.address_of_symbol(name) and not hasattr(_LIBM, name)]
    assert not missing, f"this machine has no {', '.join(missing)}"
    engine = ll.create_mcjit_compiler(module, _machine())
    engine.finalize_object()
    _engines.append(engine)
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("run")), signature


def _opaque(text):
    tools = toolchain.find()
    command = [str(tools.opt), "-opaque-pointers=1", "-passes=strip-dead-prototypes", "-S", "-", "-o", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _machine():
    ll.initialize_native_target()
    ll.initialize_native_asmprinter()
    return ll.Target.from_default_triple().create_target_machine()


def provide(name, function, arity=1):
    """Gives a function that this machine's libm lacks to the code that is run here."""
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)
    _MISSING[name] = kind(function)
    ll.add_symbol(name, ctypes.cast(_MISSING[name], ctypes.c_void_p).value)


def _is_nan(name, kind):
    _MISSING[name] = ctypes.CFUNCTYPE(ctypes.c_int32, kind)(lambda x: int(math.isnan(x)))
    ll.add_symbol(name, ctypes.cast(_MISSING[name], ctypes.c_void_p).value)


_is_nan("__nv_isnand", ctypes.c_double)
_is_nan("__nv_isnanf", ctypes.c_float)


def _assertion_failed(message, file, line, function, *_):
    # As the driver writes it. Nothing may follow a failed assertion on the device either.
    os.write(2, b"%s:%d: %s: Assertion `%s` failed.\n" % (file, line, function, message))
    os._exit(3)


_ASSERT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64)(_assertion_failed)
ll.add_symbol("__assertfail", ctypes.cast(_ASSERT, ctypes.c_void_p).value)
_KEYWORD = ctypes.c_int32(0)
for _name in ("enzyme_const", "enzyme_dup", "enzyme_dupnoneed", "enzyme_out", "enzyme_width"):
    ll.add_symbol(_name, ctypes.addressof(_KEYWORD))

__all__ = ["evaluate", "host_code", "libdevice", "provide"]
