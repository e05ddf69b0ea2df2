"""No derivative is ever another function's."""

from __future__ import annotations

import functools
import gc
import importlib
import sys
import weakref

import numpy as np
from numba import njit

from numba_enzyme import grad, jvp, value_and_grad

K = 2.0


def uses_global(x):
    return K * x


@njit
def compiled_uses_global(x):
    return K * x


def uses_callee(x):
    return compiled_uses_global(x) * x


def make(k):
    def f(x):
        return k * x * x

    return f


def test_one_derivative_for_one_function():
    f = make(2.0)
    assert grad(f) is grad(f)
    assert grad(f) is not grad(f, 0)
    assert grad(f) is not value_and_grad(f)
    assert grad(make(2.0)) is not grad(make(2.0))


def test_closures():
    assert (grad(make(2.0))(3.0), grad(make(5.0))(3.0)) == ((12.0,), (30.0,))
    array = np.array([2.0])

    def reads():
        return grad(lambda x: x * array[0])(1.0)

    first = reads()
    array[0] = 5.0
    assert (first, reads()) == ((2.0,), (5.0,))


def test_two_lambdas_on_one_line():
    f, g = (lambda x: x * x), (lambda x: x * x * x)
    assert (grad(f)(2.0), grad(g)(2.0)) == ((4.0,), (12.0,))


def test_a_rebound_global(monkeypatch):
    before = grad(uses_global)
    assert before(1.0) == (2.0,)
    assert grad(uses_callee)(1.0) == (4.0,)
    monkeypatch.setattr(sys.modules[__name__], "K", 5.0)
    after = value_and_grad(uses_global)
    assert after(1.0) == (5.0, (5.0,))
    assert grad(uses_global)(1.0) == (5.0,)
    assert grad(uses_callee)(1.0) == (10.0,)
    assert before(1.0) == (2.0,)
    monkeypatch.setattr(sys.modules[__name__], "K", 2.0)
    assert grad(uses_global)(1.0) == (2.0,)
    assert grad(uses_callee)(1.0) == (4.0,)


def test_an_edited_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source = tmp_path / "edited_constants.py"
    source.write_text("K = 2.0\ndef h(x):\n    return 3.0 * x\n")
    import edited_constants

    def f(x):
        return edited_constants.K * x + edited_constants.h(x)

    assert grad(f)(1.0) == (5.0,)
    source.write_text("K = 20.0\ndef h(x):\n    return 30.0 * x\n")
    importlib.reload(edited_constants)
    assert grad(f)(1.0) == (50.0,)


def test_the_same_text_in_two_modules():
    results = []
    for name, k in (("one", 2.0), ("two", 5.0)):
        namespace = {"__name__": name, "K": k}
        exec("def f(x):\n    return K * x", namespace)
        results.append(grad(namespace["f"])(1.0))
    assert results == [(2.0,), (5.0,)]


def test_wraps_copies_attributes_and_nothing_else():
    def f(x):
        return x * x

    assert grad(f)(3.0) == (6.0,)

    @functools.wraps(f)
    def g(x):
        return x * x * x

    assert grad(g)(3.0) == (27.0,)
    assert grad(f)(3.0) == (6.0,)

    @njit
    def h(x):
        return x * x

    def caller(x):
        return h(x)

    assert grad(caller)(3.0) == (6.0,)


def test_defaults():
    def with_default(k):
        def f(x, scale=k):
            return x * scale

        return f

    assert (grad(with_default(2.0), 0)(1.0), grad(with_default(5.0), 0)(1.0)) == (2.0, 5.0)
    assert (jvp(with_default(2.0), 0)((1.0,), (1.0,)), jvp(with_default(5.0), 0)((1.0,), (1.0,))) == (2.0, 5.0)


def test_derivatives_of_other_functions_inside():
    def outer(inner):
        derivative = grad(inner, 0)
        return lambda x: derivative(x) * x

    assert (grad(outer(make(2.0)), 0)(3.0), grad(outer(make(5.0)), 0)(3.0)) == (24.0, 60.0)


def test_a_dead_closure_dies_with_its_build():
    f = make(7.0)
    derivative = grad(f)
    assert derivative(1.0) == (14.0,)
    assert jvp(f)((1.0,), (1.0,)) == 14.0
    alive = [weakref.ref(f), weakref.ref(derivative), weakref.ref(derivative.primal)]
    del f, derivative
    gc.collect()
    assert [reference() for reference in alive] == [None, None, None]
