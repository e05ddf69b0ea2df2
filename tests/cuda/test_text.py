"""The rewrites between LLVM's dialects, one by one, and the view of a module in text."""

import pytest

from numba_enzyme.backend import cuda as backend
from numba_enzyme.llvm import nvvm, typed
from numba_enzyme.llvm.signed_zero import without_signed_zero_sums
from numba_enzyme.rules import libdevice

REWRITES = [
    (nvvm.without_source_name, 'source_filename = "x"\ndefine', "define"),
    (nvvm.without_attribute_groups, "declare double @sin(double) #0\nattributes #0 = { readnone }\n", "declare double @sin(double)\n"),
    (nvvm.without_new_attributes, "declare void @f(i8* noundef nonnull %x, i1 immarg)", "declare void @f(i8* %x, i1)"),
    (nvvm.without_new_attributes, "call i8* @g(i8* dereferenceable(128) %x)", "call i8* @g(i8* %x)"),
    (nvvm.without_string_attributes, 'declare i32 @f(i32) nofree "enzyme_inactive"\n', "declare i32 @f(i32) nofree\n"),
    (nvvm.without_string_attributes, 'target triple = "nvptx64-nvidia-cuda"\n', 'target triple = "nvptx64-nvidia-cuda"\n'),
    (
        nvvm.without_metadata,
        "  store double %x, double* %p, align 8, !alias.scope !0, !noalias !3\n!0 = !{}\n",
        "  store double %x, double* %p, align 8\n",
    ),
    (nvvm.without_metadata, "  call void @llvm.experimental.noalias.scope.decl(metadata !0)\n  ret void\n", "  ret void\n"),
    (nvvm.without_metadata, "  call void @llvm.lifetime.end.p0i8(i64 8, i8* %i)\n  ret void\n", "  ret void\n"),
    (nvvm.with_wide_integers_in_layout, "-i64:64:64-f32:32:32", "-i64:64:64-i128:128:128-f32:32:32"),
    (nvvm.negation_as_subtraction, "%y = fneg fast double %x", "%y = fsub fast double -0.000000e+00, %x"),
    (nvvm.without_flags_on_choices, "%y = select nnan nsz i1 %c, float %a, float %b", "%y = select i1 %c, float %a, float %b"),
    (nvvm.poison_as_undef, "insertvalue { double } poison, double %x, 0", "insertvalue { double } undef, double %x, 0"),
    (nvvm.without_freeze, "%y = freeze i64 %x", "%y = bitcast i64 %x to i64"),
    (
        nvvm.integer_choices_as_selects,
        "  %y = call i64 @llvm.umin.i64(i64 %a, i64 %b)\ndeclare i64 @llvm.umin.i64(i64, i64) #1\n",
        '  %"y.c" = icmp ult i64 %a, %b\n  %y = select i1 %"y.c", i64 %a, i64 %b\n',
    ),
    (
        nvvm.integer_choices_as_selects,
        "  %y = tail call i32 @llvm.abs.i32(i32 %a, i1 false)\n",
        '  %"y.n" = sub i32 0, %a\n  %"y.c" = icmp slt i32 %a, 0\n  %y = select i1 %"y.c", i32 %"y.n", i32 %a\n',
    ),
    (
        nvvm.without_alignment_of_atomics,
        "  %r = cmpxchg i32* @e, i32 0, i32 2 monotonic monotonic, align 4",
        "  %r = cmpxchg i32* @e, i32 0, i32 2 monotonic monotonic",
    ),
    (
        nvvm.inlined_everywhere,
        "define internal double @f(double %x) local_unnamed_addr nounwind {",
        "define internal double @f(double %x) alwaysinline {",
    ),
    (without_signed_zero_sums, "  %y = fadd double 0.000000e+00, %x", "  %y = fadd nsz double 0.000000e+00, %x"),
    (without_signed_zero_sums, "  %y = fadd double %x, 0.000000e+00", "  %y = fadd double %x, 0.000000e+00"),
    (libdevice.to_libm, "call double @__nv_sin(double %x)", "call double @sin(double %x)"),
    (libdevice.to_libm, "call i32 @__nv_isnand(double %x)", "call i32 @__nv_isnand(double %x)"),
    (libdevice.to_libdevice, "call float @llvm.cos.f32(float %x)", "call float @__nv_cosf(float %x)"),
    (libdevice.to_libdevice, "call double @llvm.maxnum.f64(double %x, double %y)", "call double @__nv_fmax(double %x, double %y)"),
    (libdevice.to_libdevice, "call double @llvm.powi.f64.i32(double %x, i32 3)", "call double @__nv_powi(double %x, i32 3)"),
    (libdevice.pure, "declare double @sin(double)", "declare double @sin(double) readnone nounwind willreturn"),
    (libdevice.pure, "declare double @frexp(double, i32*)", "declare double @frexp(double, i32*)"),
    (
        libdevice.with_powers,
        "  %y = call double @__nv_pow(double %x, double 2.5e+00)\n",
        "  %y = call double @llvm.pow.f64(double %x, double 2.5e+00)\ndeclare double @llvm.pow.f64(double, double)\n",
    ),
]


@pytest.mark.parametrize(("rewrite", "before", "after"), REWRITES, ids=[f"{r[0].__name__}-{n}" for n, r in enumerate(REWRITES)])
def test_rewrites(rewrite, before, after):
    assert rewrite(before) == after
    if rewrite not in (libdevice.pure, libdevice.with_powers, without_signed_zero_sums):
        assert rewrite(rewrite(before)) == after


def test_numbered_values_get_names():
    before = "define double @f(double, i64 %n) {\n  %3 = fadd double %0, 1.0\n  br label %4\n\n"
    before += "; <label>:4:      ; preds = %2\n  ret double %3\n}\n"
    after = typed.named_values(before)
    assert "define double @f(double %v0, i64 %n) {\nv2:\n  %v3 = fadd double %v0, 1.0\n  br label %v4" in after
    assert "\nv4:" in after


def test_memory_of_a_constant_size_goes_first():
    before = (
        "define void @f(i64 %n) {\nentry:\n  br label %l\n\nl:\n  %a = alloca double, i64 4\n  %b = alloca double, i64 %n\n  ret void\n}\n"
    )
    after = typed.allocas_first(before)
    assert after.index("%a = alloca") < after.index("br label %l") < after.index("%b = alloca")


def test_parts_and_signatures():
    module = typed.parts(
        '@"g" = internal global i32 0\ndeclare double @"sin"(double)\ndefine { double, float } @f(double %x, { i32 }* %p) {\n ret void\n}\n'
    )
    assert list(module.globals) == ["g"]
    assert list(module.declarations) == ["sin"]
    head = typed.signature(module.definitions["f"])
    assert head.returns == "{ double, float }"
    assert [(p.type, p.name) for p in head.parameters] == [("double", "%x"), ("{ i32 }*", "%p")]
    defined = typed.parts("define double @sin(double %x) {\n  ret double %x\n}\n")
    assert typed.merged([module, defined]).declarations == {}


def test_llvm_7_says_where_a_text_is_wrong():
    assert backend.complaint("define double @f(double %x) {\n  ret double %x\n}\n") == ""
    assert "derivative:2:" in backend.complaint("define double @f(double %x) {\n  %y = freeze double %x\n  ret double %y\n}\n")
