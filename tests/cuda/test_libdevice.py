"""Every function of CUDA's mathematics library: right, or refused by name."""

import math
import re

import numpy as np
import pytest
import scipy.special as sp

import numba_enzyme as ne
from numba_enzyme.errors import DifferentiationError, NumbaEnzymeError

pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")

from numba_cuda_mlir import cuda, types
from numba_cuda_mlir.cuda import libdevice
from numba_cuda_mlir.numba_cuda import libdevicefuncs
from on_host import provide

f4, f8 = types.float32, types.float64
TWO = 2 / math.sqrt(math.pi)
NORMAL = math.sqrt(2 * math.pi) * math.exp(sp.ndtri(0.7) ** 2 / 2)


def fresh(expression, *names):
    namespace = {"math": math, "libdevice": libdevice, "np": np}
    exec(f"def f({', '.join(names)}):\n    return {expression}\n", namespace)
    return cuda.jit(device=True)(namespace["f"])


for _name, _function in {
    "__nv_sinpi": lambda x: math.sin(math.pi * x),
    "__nv_cospi": lambda x: math.cos(math.pi * x),
    "__nv_normcdf": lambda x: float(sp.ndtr(x)),
    "__nv_lgamma": math.lgamma,
    "__nv_tgamma": math.gamma,
    "__nv_erfinv": lambda x: float(sp.erfinv(x)),
    "__nv_erfcinv": lambda x: float(sp.erfcinv(x)),
    "__nv_normcdfinv": lambda x: float(sp.ndtri(x)),
}.items():
    provide(_name, _function)

# An expression, a point, the derivative there and the second derivative by the first argument (None: not tested).
CASES = [
    ("math.sin(x)", (0.7,), (math.cos(0.7),), -math.sin(0.7)),
    ("math.cos(x)", (0.7,), (-math.sin(0.7),), -math.cos(0.7)),
    ("math.tan(x)", (0.7,), (1 / math.cos(0.7) ** 2,), 2 * math.tan(0.7) / math.cos(0.7) ** 2),
    ("math.asin(x)", (0.3,), (1 / math.sqrt(1 - 0.09),), 0.3 * (1 - 0.09) ** -1.5),
    ("math.acos(x)", (0.3,), (-1 / math.sqrt(1 - 0.09),), -0.3 * (1 - 0.09) ** -1.5),
    ("math.atan(x)", (0.3,), (1 / 1.09,), -0.6 / 1.09**2),
    ("math.atan2(x, y)", (-1.0, -2.0), (-0.4, 0.2), None),
    ("math.sinh(x)", (0.3,), (math.cosh(0.3),), math.sinh(0.3)),
    ("math.cosh(x)", (0.3,), (math.sinh(0.3),), math.cosh(0.3)),
    ("math.tanh(x)", (0.3,), (1 - math.tanh(0.3) ** 2,), -2 * math.tanh(0.3) * (1 - math.tanh(0.3) ** 2)),
    ("math.asinh(x)", (0.3,), (1 / math.sqrt(1.09),), None),
    ("math.acosh(x)", (1.3,), (1 / math.sqrt(0.69),), None),
    ("math.atanh(x)", (0.3,), (1 / 0.91,), None),
    ("math.exp(x)", (0.3,), (math.exp(0.3),), math.exp(0.3)),
    ("math.expm1(x)", (0.3,), (math.exp(0.3),), math.exp(0.3)),
    ("libdevice.exp2(x)", (0.3,), (math.log(2) * 2**0.3,), math.log(2) ** 2 * 2**0.3),
    ("libdevice.exp10(x)", (0.3,), (math.log(10) * 10**0.3,), math.log(10) ** 2 * 10**0.3),
    ("math.log(x)", (0.3,), (1 / 0.3,), -1 / 0.09),
    ("math.log2(x)", (0.3,), (1 / 0.3 / math.log(2),), -1 / 0.09 / math.log(2)),
    ("math.log10(x)", (0.3,), (1 / 0.3 / math.log(10),), -1 / 0.09 / math.log(10)),
    ("math.log1p(x)", (0.3,), (1 / 1.3,), -1 / 1.69),
    ("math.sqrt(x)", (0.3,), (0.5 / math.sqrt(0.3),), -0.25 * 0.3**-1.5),
    ("libdevice.rsqrt(x)", (0.3,), (-0.5 * 0.3**-1.5,), 0.75 * 0.3**-2.5),
    ("libdevice.cbrt(x)", (0.3,), (0.3 ** (-2 / 3) / 3,), None),
    ("libdevice.rcbrt(x)", (0.3,), (-(0.3 ** (-4 / 3)) / 3,), None),
    ("math.pow(x, y)", (1.5, 2.5), (2.5 * 1.5**1.5, math.log(1.5) * 1.5**2.5), 2.5 * 1.5 * 1.5**0.5),
    ("x ** y", (1.5, 2.5), (2.5 * 1.5**1.5, math.log(1.5) * 1.5**2.5), None),
    ("x ** 3", (1.5,), (3 * 1.5**2,), 6 * 1.5),
    ("x ** -2", (1.5,), (-2 * 1.5**-3,), None),
    ("math.hypot(x, y)", (3.0, 4.0), (0.6, 0.8), None),
    ("math.erf(x)", (0.5,), (TWO * math.exp(-0.25),), -TWO * math.exp(-0.25)),
    ("math.erfc(x)", (0.5,), (-TWO * math.exp(-0.25),), TWO * math.exp(-0.25)),
    (
        "libdevice.erfinv(x)",
        (0.5,),
        (math.exp(sp.erfinv(0.5) ** 2) / TWO,),
        2 * sp.erfinv(0.5) * (math.exp(sp.erfinv(0.5) ** 2) / TWO) ** 2,
    ),
    (
        "libdevice.erfcinv(x)",
        (0.5,),
        (-math.exp(sp.erfinv(0.5) ** 2) / TWO,),
        2 * sp.erfinv(0.5) * (math.exp(sp.erfinv(0.5) ** 2) / TWO) ** 2,
    ),
    ("libdevice.normcdfinv(x)", (0.7,), (NORMAL,), sp.ndtri(0.7) * NORMAL**2),
    ("libdevice.normcdf(x)", (0.5,), (math.exp(-0.125) / math.sqrt(2 * math.pi),), -0.5 * math.exp(-0.125) / math.sqrt(2 * math.pi)),
    ("math.gamma(x)", (2.5,), (0.93473452162608553,), math.gamma(2.5) * (sp.digamma(2.5) ** 2 + sp.polygamma(1, 2.5))),
    ("math.gamma(x)", (-1.7,), (math.gamma(-1.7) * sp.digamma(-1.7),), None),
    ("math.lgamma(x)", (2.5,), (0.70315664064524319,), float(sp.polygamma(1, 2.5))),
    ("math.lgamma(x)", (0.5,), (-1.9635100260214235,), float(sp.polygamma(1, 0.5))),
    ("math.lgamma(x)", (-1.3,), (sp.digamma(-1.3),), None),
    ("math.lgamma(x)", (40.0,), (sp.digamma(40.0),), float(sp.polygamma(1, 40.0))),
    ("libdevice.j0(x)", (0.7,), (-sp.j1(0.7),), None),
    ("libdevice.j1(x)", (0.7,), (sp.j0(0.7) - sp.j1(0.7) / 0.7,), None),
    ("libdevice.y0(x)", (0.7,), (-sp.y1(0.7),), None),
    ("libdevice.y1(x)", (0.7,), (sp.y0(0.7) - sp.y1(0.7) / 0.7,), None),
    ("libdevice.sinpi(x)", (0.3,), (math.pi * math.cos(math.pi * 0.3),), -(math.pi**2) * math.sin(math.pi * 0.3)),
    ("libdevice.cospi(x)", (2.3,), (-math.pi * math.sin(math.pi * 2.3),), -(math.pi**2) * math.cos(math.pi * 2.3)),
    ("libdevice.sincos(x)[0] * libdevice.sincos(x)[1]", (0.3,), (math.cos(0.6),), None),
    ("libdevice.sincospi(x)[0]", (0.3,), (math.pi * math.cos(math.pi * 0.3),), None),
    ("abs(x)", (-0.3,), (-1.0,), 0.0),
    ("math.fabs(x)", (-0.3,), (-1.0,), 0.0),
    ("math.copysign(x, y)", (0.3, -1.0), (-1.0, 0.0), None),
    ("min(x, y)", (0.3, 0.4), (1.0, 0.0), None),
    ("max(x, y) * x", (2.0, 3.0), (3.0, 2.0), None),
    ("libdevice.fmin(x, y)", (0.3, 0.4), (1.0, 0.0), None),
    ("libdevice.fmax(x, y)", (0.3, 0.4), (0.0, 1.0), None),
    ("libdevice.fdim(x, y)", (0.7, 0.4), (1.0, -1.0), None),
    ("libdevice.fma(x, y, x)", (0.7, 0.4), (1.4, 0.7), None),
    ("math.fmod(x, y)", (7.5, 2.0), (1.0, -3.0), None),
    ("x % y", (7.5, 2.0), (1.0, -3.0), None),
    ("(x // y) * x", (7.5, 2.0), (3.0, 0.0), None),
    ("libdevice.remainder(x, y)", (7.5, 2.0), (1.0, -4.0), None),
    ("math.floor(x) * x", (2.5,), (2.0,), None),
    ("math.ceil(x) * x", (2.5,), (3.0,), None),
    ("math.trunc(x) * x", (2.5,), (2.0,), None),
    ("libdevice.rint(x) * x", (2.7,), (3.0,), None),
    ("libdevice.round(x) * x", (2.7,), (3.0,), None),
    ("libdevice.nearbyint(x) * x", (2.7,), (3.0,), None),
    ("math.ldexp(x, 3)", (2.7,), (8.0,), None),
    ("libdevice.scalbn(x, 3)", (2.7,), (8.0,), None),
    ("libdevice.longlong_as_double(libdevice.double_as_longlong(x)) * x", (2.7,), (5.4,), None),
    ("x / y", (2.7, 2.0), (0.5, -2.7 / 4), 0.0),
    ("x if x > y else y * y", (0.3, 0.4), (0.0, 0.8), None),
    ("1.0 / (1.0 + math.exp(-x))", (0.3,), (0.24445831169074586,), None),
    ("(0.0 if math.isnan(math.log(x)) else math.log(x))", (2.0,), (0.5,), -0.25),
    ("int(x * 3.0) * x", (0.7,), (2.0,), None),
    ("np.sin(x) * np.exp(x)", (0.3,), (math.exp(0.3) * (math.sin(0.3) + math.cos(0.3)),), None),
    ("complex(x, y).real * (complex(x, y) * complex(x, y)).imag", (3.1, 2.7), (4 * 3.1 * 2.7, 2 * 3.1**2), None),
]


@pytest.mark.parametrize(("expression", "point", "want", "second"), CASES, ids=[c[0] + str(c[1]) for c in CASES])
def test_values(evaluate, expression, point, want, second):
    f = fresh(expression, *"xy"[: len(point)])
    got = evaluate(ne.grad(f), *point)
    np.testing.assert_allclose(got, want, rtol=2e-13, atol=1e-14)
    for n in range(len(point)):
        tangents = tuple(float(k == n) for k in range(len(point)))
        np.testing.assert_allclose(evaluate(ne.jvp(f), point, tangents), want[n], rtol=2e-13, atol=1e-14)
    if second is not None:
        np.testing.assert_allclose(evaluate(ne.jacfwd(ne.grad(f, argnums=0), argnums=0), *point), second, rtol=2e-12, atol=1e-14)
        np.testing.assert_allclose(evaluate(ne.grad(ne.grad(f, argnums=0), argnums=0), *point), second, rtol=2e-12, atol=1e-14)


SINGLE = [
    c for c in CASES if not re.search(r"libdevice\.(?:longlong|scalbn|j|y|erfinv|erfcinv|normcdfinv|sinpi|cospi|normcdf|sincospi)", c[0])
]


@pytest.mark.parametrize(("expression", "point", "want"), [c[:3] for c in SINGLE], ids=[c[0] + str(c[1]) for c in SINGLE])
def test_float32(evaluate, expression, point, want):
    single = re.sub(r"libdevice\.(\w+)", r"libdevice.\1f", expression)
    f = fresh(single, *"xy"[: len(point)])
    got = evaluate(ne.grad(f), *(np.float32(p) for p in point))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def libdevice_functions():
    for name, (result, arguments) in sorted(libdevicefuncs.functions.items()):
        floats = [a for a in arguments if str(a.ty).startswith("float")]
        if floats and str(result).startswith("float") and not any(a.is_ptr for a in arguments):
            yield pytest.param(name, arguments, id=name)


REFUSED = re.compile(
    r"__nv_(?:(?:[df](?:add|sub|mul|div)|dsqrt|fsqrt|fma|fmaf|double2float|frsqrt)_r[nduz]|erfcxf?|nextafterf?|fast_fdividef)"
)


@pytest.mark.parametrize(("name", "arguments"), list(libdevice_functions()))
def test_every_function_is_right_or_refused_by_name(name, arguments):
    parameters = [f"a{n}" for n in range(len(arguments))]
    f = fresh(f"libdevice.{name[5:]}({', '.join(parameters)})", *parameters)
    active = tuple(n for n, a in enumerate(arguments) if str(a.ty).startswith("float"))
    resolved = ne.grad(f, argnums=active).resolve(tuple(a.ty for a in arguments), {})
    if REFUSED.fullmatch(name) and name != "__nv_double2float_rn":
        with pytest.raises(DifferentiationError, match=rf"{name}, which has no derivative"):
            resolved.link((9, 0), ())
    else:
        _, ltoir = resolved.link((9, 0), ())
        assert len(ltoir) > 500


def test_bits_of_a_float_taken_apart_are_refused_or_right():
    f = fresh("libdevice.hiloint2double(libdevice.double2hiint(x), libdevice.double2loint(x)) * x", "x")
    with pytest.raises(NumbaEnzymeError, match=r"double2hiint|hiloint2double"):
        ne.grad(f).resolve((f8,), {}).link((9, 0), ())


def test_fast_functions_have_fast_derivatives():
    from numba_enzyme.rules import libdevice as rule

    assert rule.is_fast("declare float @__nv_fast_sinf(float)\n")
    assert not rule.is_fast("declare float @__nv_fast_sinf(float)\ndeclare float @__nv_cosf(float)\n")
    assert "@__nv_fast_cosf(" in rule.to_libdevice("  %y = call float @llvm.cos.f32(float %x)\n", fast=True)
    assert "@__nv_cosf(" in rule.to_libdevice("  %y = call float @llvm.cos.f32(float %x)\n")
