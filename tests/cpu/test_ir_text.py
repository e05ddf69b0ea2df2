"""Rewrites of IR text, and the words for what Enzyme refuses."""

from __future__ import annotations

import functools

import pytest

from numba_enzyme import DifferentiationError, grad
from numba_enzyme.enzyme.diagnosis import explained, readable
from numba_enzyme.llvm import dialect, region
from numba_enzyme.llvm.memory_types import with_memory_types, without_memory_types
from numba_enzyme.llvm.signed_zero import without_signed_zero_adjoints

PURE = " nounwind willreturn memory(none)"


@pytest.mark.parametrize(
    ("rewrite", "before", "after"),
    [
        (dialect.captures_as_nocapture, "define void @f(ptr captures(none) %x) {", "define void @f(ptr nocapture %x) {"),
        (
            dialect.without_memory_effects,
            "attributes #0 = { nounwind memory(argmem: read, inaccessiblemem: none) }",
            "attributes #0 = { nounwind }",
        ),
        (dialect.without_declared_purity, "declare double @tanh(double) readnone", "declare double @tanh(double)"),
        (dialect.without_new_attributes, "attributes #0 = { nounwind nocreateundeforpoison }", "attributes #0 = { nounwind }"),
        (dialect.without_empty_groups, "attributes #3 = { }", 'attributes #3 = { "empty" }'),
        (dialect.inlined_everywhere, "define i32 @f(ptr %x) #0 {", "define i32 @f(ptr %x) #0 alwaysinline {"),
        (dialect.inlined_everywhere, "define i32 @f(ptr %x) noinline {", "define i32 @f(ptr %x) alwaysinline {"),
        (dialect.inlined_everywhere, "declare i32 @f(ptr)", "declare i32 @f(ptr)"),
        (
            dialect.without_errno,
            "  %1 = call double @sqrt(double %0) #1\n  %2 = call float @powf(float %x, float 2.0)",
            f"  %1 = call double @sqrt(double %0){PURE} #1\n  %2 = call float @powf(float %x, float 2.0){PURE}",
        ),
        (dialect.without_errno, "  %3 = call double @sqrtish(double %0)", "  %3 = call double @sqrtish(double %0)"),
        (
            functools.partial(dialect.with_liberties, flags=("nsz", "reassoc")),
            "  %1 = tail call fast double @f(double %0)\n  %fast = fadd fast double %1, %fast",
            "  %1 = tail call nsz reassoc double @f(double %0)\n  %fast = fadd nsz reassoc double %1, %fast",
        ),
        (functools.partial(dialect.with_liberties, flags=()), "  %1 = fadd fast double %0, %0", "  %1 = fadd fast double %0, %0"),
        (
            dialect.resolved_pointers,
            '@".numba.unresolved$_ZN1fE" = external global ptr',
            '@".numba.unresolved$_ZN1fE" = internal constant ptr @"_ZN1fE"',
        ),
        (
            dialect.constant_addresses,
            "@numba.dynamic.globals.7f = internal global ptr inttoptr (i64 5 to ptr)",
            "@numba.dynamic.globals.7f = internal constant ptr inttoptr (i64 5 to ptr)",
        ),
    ],
)
def test_one_rewrite(rewrite, before, after):
    assert rewrite(before).split() == after.split()
    assert rewrite(rewrite(before)) == rewrite(before)


def test_a_use_of_readonly_in_a_definition_stays():
    text = "define void @f(ptr readonly %x) {"
    assert dialect.without_declared_purity(text) == text


def test_stable_names_depend_on_order_alone():
    one = '@_ZN8__main__1fB3v12B38c8tJEd @_ZN8__main__1gB2v7B38c8tJEd @".const.picklebuf.140021" @_ZN12numba_enzyme4gradB9primal17Ed'
    two = '@_ZN8__main__1fB2v1B38c8tJEd @_ZN8__main__1gB3v99B38c8tJEd @".const.picklebuf.99" @_ZN12numba_enzyme4gradB8primal1Ed'
    other = two.replace("1gB3v99B", "1gB2v1B")
    assert dialect.with_stable_names(one) == dialect.with_stable_names(two)
    assert dialect.with_stable_names(one) != dialect.with_stable_names(other)


ADJOINTS = """define internal { double } @diffeflat(double %x) {
entry:
  %"x'de" = alloca double, align 8
  %0 = fadd double %x, 0.000000e+00
  %user = fsub double 0.000000e+00, %x
  br label %invertentry

invertentry:                                      ; preds = %entry
  %1 = load double, ptr %"x'de", align 8
  %2 = fadd double %1, %0
  %3 = fsub double 0.000000e+00, %2
  %again_unwrap = fsub double 0.000000e+00, %x
  %4 = fadd double %x, %2
  ret { double } undef
}"""


def test_only_adjoints_are_free_of_the_sign_of_zero():
    changed = [
        (before, after)
        for before, after in zip(ADJOINTS.splitlines(), without_signed_zero_adjoints(ADJOINTS).splitlines(), strict=True)
        if before != after
    ]
    assert changed == [
        ("  %2 = fadd double %1, %0", "  %2 = fadd nsz double %1, %0"),
        ("  %3 = fsub double 0.000000e+00, %2", "  %3 = fsub nsz double 0.000000e+00, %2"),
    ]


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("_ZN8__main__4stepB2v1B38c8tJTIeFIjxB2IKSgI4CrvQClUYkACQB1EiFSRRB9GgCAA_3d_3dEd", "__main__.step"),
        ("numba_gil_ensure", "Python objects (objmode or print)"),
        ("erfcx", "erfcx"),
    ],
)
def test_readable_symbols(symbol, text):
    assert readable(symbol) == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("error: in function preprocess_flat: Enzyme: No reverse pass found for erfcx\n at context: ...", "uses erfcx"),
        ("Enzyme: No forward mode derivative found for erfcx\n", "uses erfcx"),
        ("Enzyme: No create nofree of empty function (numba_unpickle) numba_unpickle)", "uses Python objects"),
        ("Enzyme: Cannot deduce type of phi %x", "cannot tell which memory holds floats"),
        ("opt was stopped after 5 seconds; NUMBA_ENZYME_TIMEOUT sets the limit", "NUMBA_ENZYME_TIMEOUT"),
        ("warning: something\nopt: Enzyme.cpp:1: Assertion `x' failed.", "Assertion `x' failed"),
        ("", "without a word"),
    ],
)
def test_explanations_name_the_function(said, text):
    error = explained(DifferentiationError(said), "step")
    assert str(error).startswith("step cannot be differentiated: ")
    assert text in str(error)


@pytest.mark.parametrize("text", ["use range(3) here", "out of memory(x) now", "code is noinline here", "captures(none)", "7"])
def test_strings_of_the_program_are_left_alone(text):
    line = f'@s = internal constant [99 x i8] c"{text}\\00"'
    assert dialect.rewritten(line) == line
    namespace = {}
    exec(f"def f(x):\n    if x < 0:\n        raise ValueError({text!r})\n    return x * x", namespace)
    assert grad(namespace["f"])(3.0) == (6.0,)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        grad(namespace["f"])(-3.0)
    assert caught.value.args == (text,)


def test_what_enzyme_calls_invariant_does_not_outlive_a_call():
    kept = "  %x = load ptr, ptr %cache, align 8, !alias.scope !3"
    assert dialect.without_invariance(f"{kept}, !invariant.group !7\n") == f"{kept}\n"


def test_memory_says_what_it_holds():
    ir = "  %x = load double, ptr %p, align 8\n  store float %y, ptr %q, align 4\n  store i8 0, ptr %r, align 1\n"
    typed = with_memory_types(ir)
    double, single, byte = typed.splitlines()[:3]
    assert double.endswith("!tbaa !900001")
    assert single.endswith("!tbaa !900002")
    assert "tbaa" not in byte
    assert without_memory_types(typed).startswith(ir)
    assert with_memory_types("  store i8 0, ptr %r, align 1\n") == "  store i8 0, ptr %r, align 1\n"


SWEEPS = """define i32 @entry(ptr %retptr, double %x) #1 alwaysinline {
  %mark = call i64 @numba_enzyme_mark()
  call void @"diffe flat"(double %x)
  call void @numba_enzyme_reset(i64 %mark)
  ret i32 0
}
define internal void @"diffe flat"(double %x) alwaysinline {
  %tape = tail call noalias nonnull ptr @malloc(i64 8) #2, !enzyme_cache_alloc !1
  %more = call ptr @grown(ptr %tape)
  %y = call double @plain(double %x)
  call void @free(ptr nonnull %more) #2
  ret void
}
define internal ptr @grown(ptr %old) {
  %new = call ptr @realloc(ptr %old, i64 16)
  ret ptr %new
}
define internal double @plain(double %x) {
  ret double %x
}"""

IN_REGION = """define i32 @"body"(ptr %numba_enzyme_region, ptr %retptr, double %x) #1 noinline {
  %mark = call i64 @numba_enzyme_region_mark(ptr %numba_enzyme_region)
  call void @"diffe flat"(ptr %numba_enzyme_region, double %x)
  call void @numba_enzyme_region_reset(ptr %numba_enzyme_region, i64 %mark)
  ret i32 0
}
define internal void @"diffe flat"(ptr %numba_enzyme_region, double %x) alwaysinline {
  %tape = tail call noalias nonnull ptr @numba_enzyme_region_take(ptr %numba_enzyme_region, i64 8), !enzyme_cache_alloc !1
  %more = call ptr @grown(ptr %numba_enzyme_region, ptr %tape)
  %y = call double @plain(double %x)
  call void @numba_enzyme_region_give(ptr %numba_enzyme_region, ptr nonnull %more)
  ret void
}
define internal ptr @grown(ptr %numba_enzyme_region, ptr %old) {
  %new = call ptr @numba_enzyme_region_extend(ptr %numba_enzyme_region, ptr %old, i64 16)
  ret ptr %new
}
define internal double @plain(double %x) {
  ret double %x
}"""


def test_memory_comes_from_the_region_of_the_call():
    assert region.asks_for_memory(SWEEPS)
    assert region.in_region(SWEEPS, "entry", "body").startswith(IN_REGION)


def test_marks_go_where_nothing_asks_for_memory():
    text = "define void @f() {\n  %mark = call i64 @numba_enzyme_mark()\n  tail call void @numba_enzyme_reset(i64 %mark)\n  ret void\n}"
    assert not region.asks_for_memory(text)
    assert region.without_marks(text) == "define void @f() {\n  ret void\n}"
