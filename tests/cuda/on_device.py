"""Runs derivatives of device functions on a GPU, each in a kernel of one thread: `evaluate` has the form of that of `on_host`."""

import functools

import numpy as np
from on_host import typeof

from numba_enzyme.adapters import cuda_types


def evaluate(derivative, *args, **kws):
    """What `derivative(*args)` gives in a kernel; arrays among `args` are written to."""
    from numba_cuda_mlir import cuda

    named = tuple(sorted(kws))
    given = [*args, *(kws[name] for name in named)]
    restype = derivative.resolve(tuple(typeof(a) for a in args), {n: typeof(kws[n]) for n in named}).restype
    leaves = [leaf for value in given for leaf in _leaves(value)]
    on_device = [cuda.to_device(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    out = cuda.to_device(np.zeros(max(_count(restype), 1)))
    shape = tuple(_shape(value) for value in given)
    _kernel(derivative, shape, named, None if restype is None else str(restype), _paths(restype))[1, 1](out, *on_device)
    cuda.synchronize()
    for leaf, there in zip(leaves, on_device, strict=True):
        if isinstance(leaf, np.ndarray) and leaf.flags.writeable:
            leaf[...] = there.copy_to_host()
    return None if restype is None else _tree(restype, iter(out.copy_to_host().tolist()))


@functools.cache
def _kernel(derivative, shape, named, restype, paths):
    from numba_cuda_mlir import cuda

    names = iter(f"p{n}" for n in range(1000))
    texts = [_text(s, names) for s in shape]
    count = len(shape) - len(named)
    call = ", ".join([*texts[:count], *(f"{name}={text}" for name, text in zip(named, texts[count:], strict=True))])
    parameters = ", ".join(["out", *(f"p{n}" for n in range(sum(_size(s) for s in shape)))])
    body = [f"    r = derivative({call})", *(f"    out[{n}] = r{path}" for n, path in enumerate(paths))]
    if restype is None:
        body = [f"    derivative({call})"]
    namespace = {"derivative": derivative}
    exec(f"def kernel({parameters}):\n" + "\n".join(body) + "\n", namespace)
    return cuda.jit(namespace["kernel"])


def _leaves(value):
    if isinstance(value, tuple):
        for element in value:
            yield from _leaves(element)
    else:
        yield value


def _shape(value):
    return tuple(_shape(v) for v in value) if isinstance(value, tuple) else None


def _size(shape):
    return 1 if shape is None else sum(_size(s) for s in shape)


def _text(shape, names):
    return next(names) if shape is None else "(" + "".join(f"{_text(s, names)}, " for s in shape) + ")"


def _count(restype):
    return len(_paths(restype))


def _paths(restype):
    if restype is None:
        return ()
    if not cuda_types.is_tuple(restype):
        return ("",)
    return tuple(f"[{n}]{path}" for n, element in enumerate(cuda_types.elements(restype)) for path in _paths(element))


def _tree(restype, values):
    if not cuda_types.is_tuple(restype):
        return next(values)
    return tuple(_tree(element, values) for element in cuda_types.elements(restype))
