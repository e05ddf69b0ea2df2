; Functions of CUDA's mathematics library that Enzyme does not know, in terms of what it knows. A definition goes into a module that uses
; it. Names that begin with numba_enzyme are hidden from Enzyme, which takes them for constants: numba_enzyme_value_X is the library's X, so
; that the value of a function stays the library's to the last bit, and numba_enzyme_constant is its argument. What is added to a value, or
; multiplies one, is zero, or one, and has the right derivatives of every order.

declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_constant(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_constantf(float) nofree nounwind readnone "enzyme_inactive"
declare double @sin(double)
declare double @cos(double)
declare double @exp(double)
declare double @log(double)
declare double @fabs(double)
declare double @floor(double)
declare double @rint(double)
declare double @sqrt(double)
declare double @cbrt(double)
declare double @erfc(double)
declare double @remainder(double, double)
declare float @sinf(float)
declare float @cosf(float)
declare float @rintf(float)
declare float @sqrtf(float)
declare float @cbrtf(float)
declare float @erfcf(float)
declare float @powf(float, float)
declare double @copysign(double, double)
declare float @copysignf(float, float)
declare float @fabsf(float)
declare double @tanh(double)
declare float @tanhf(float)

declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_sinpi(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_sinpif(float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_cospi(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_cospif(float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_normcdf(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_normcdff(float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_lgamma(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_tgamma(double) nofree nounwind readnone "enzyme_inactive"

define double @__nv_rsqrt(double %x) {
entry:
  %root = call double @sqrt(double %x)
  %y = fdiv double 1.0, %root
  ret double %y
}

define double @__nv_rcbrt(double %x) {
entry:
  %root = call double @cbrt(double %x)
  %y = fdiv double 1.0, %root
  ret double %y
}

; The remainder by the period is exact, and pi times it is as good as a small number is.
define double @__nv_sinpi(double %x) {
entry:
  %half = fmul double %x, 0.5
  %periods = call double @rint(double %half)
  %turns = fmul double %periods, 2.0
  %fixed = call double @numba_enzyme_constant(double %turns)
  %rest = fsub double %x, %fixed
  %angle = fmul double %rest, 0x400921FB54442D18
  %g = call double @sin(double %angle)
  %same = call double @numba_enzyme_constant(double %g)
  %zero = fsub double %g, %same
  %value = call double @numba_enzyme_value_sinpi(double %x)
  %y = fadd double %value, %zero
  ret double %y
}

; The remainder by the period is exact, and pi times it is as good as a small number is.
define double @__nv_cospi(double %x) {
entry:
  %half = fmul double %x, 0.5
  %periods = call double @rint(double %half)
  %turns = fmul double %periods, 2.0
  %fixed = call double @numba_enzyme_constant(double %turns)
  %rest = fsub double %x, %fixed
  %angle = fmul double %rest, 0x400921FB54442D18
  %g = call double @cos(double %angle)
  %same = call double @numba_enzyme_constant(double %g)
  %zero = fsub double %g, %same
  %value = call double @numba_enzyme_value_cospi(double %x)
  %y = fadd double %value, %zero
  ret double %y
}

define double @__nv_normcdf(double %x) {
entry:
  %scaled = fmul double %x, 0xBFE6A09E667F3BCD
  %tails = call double @erfc(double %scaled)
  %g = fmul double %tails, 0.5
  %same = call double @numba_enzyme_constant(double %g)
  %zero = fsub double %g, %same
  %value = call double @numba_enzyme_value_normcdf(double %x)
  %y = fadd double %value, %zero
  ret double %y
}

define float @__nv_rsqrtf(float %x) {
entry:
  %root = call float @sqrtf(float %x)
  %y = fdiv float 1.0, %root
  ret float %y
}

define float @__nv_rcbrtf(float %x) {
entry:
  %root = call float @cbrtf(float %x)
  %y = fdiv float 1.0, %root
  ret float %y
}

; The remainder by the period is exact, and pi times it is as good as a small number is.
define float @__nv_sinpif(float %x) {
entry:
  %half = fmul float %x, 0.5
  %periods = call float @rintf(float %half)
  %turns = fmul float %periods, 2.0
  %fixed = call float @numba_enzyme_constantf(float %turns)
  %rest = fsub float %x, %fixed
  %angle = fmul float %rest, 0x400921FB60000000
  %g = call float @sinf(float %angle)
  %same = call float @numba_enzyme_constantf(float %g)
  %zero = fsub float %g, %same
  %value = call float @numba_enzyme_value_sinpif(float %x)
  %y = fadd float %value, %zero
  ret float %y
}

; The remainder by the period is exact, and pi times it is as good as a small number is.
define float @__nv_cospif(float %x) {
entry:
  %half = fmul float %x, 0.5
  %periods = call float @rintf(float %half)
  %turns = fmul float %periods, 2.0
  %fixed = call float @numba_enzyme_constantf(float %turns)
  %rest = fsub float %x, %fixed
  %angle = fmul float %rest, 0x400921FB60000000
  %g = call float @cosf(float %angle)
  %same = call float @numba_enzyme_constantf(float %g)
  %zero = fsub float %g, %same
  %value = call float @numba_enzyme_value_cospif(float %x)
  %y = fadd float %value, %zero
  ret float %y
}

define float @__nv_normcdff(float %x) {
entry:
  %scaled = fmul float %x, 0xBFE6A09E60000000
  %tails = call float @erfcf(float %scaled)
  %g = fmul float %tails, 0.5
  %same = call float @numba_enzyme_constantf(float %g)
  %zero = fsub float %g, %same
  %value = call float @numba_enzyme_value_normcdff(float %x)
  %y = fadd float %value, %zero
  ret float %y
}

define float @__nv_exp10f(float %x) {
entry:
  %y = call float @powf(float 10.0, float %x)
  ret float %y
}

define float @__nv_saturatef(float %x) {
entry:
  %least = call float @__nv_fmaxf(float %x, float 0.0)
  %y = call float @__nv_fminf(float %least, float 1.0)
  ret float %y
}

; The remainder of two floats is one.
define float @__nv_remainderf(float %x, float %y) {
entry:
  %a = fpext float %x to double
  %b = fpext float %y to double
  %wide = call double @remainder(double %a, double %b)
  %r = fptrunc double %wide to float
  ret float %r
}

define float @__nv_double2float_rn(double %x) {
entry:
  %y = fptrunc double %x to float
  ret float %y
}

; The same bits: Enzyme follows a cast, where it could not follow a call.
define i64 @__nv_double_as_longlong(double %x) {
entry:
  %y = bitcast double %x to i64
  ret i64 %y
}

define double @__nv_longlong_as_double(i64 %x) {
entry:
  %y = bitcast i64 %x to double
  ret double %y
}

define i32 @__nv_float_as_int(float %x) {
entry:
  %y = bitcast float %x to i32
  ret i32 %y
}

define float @__nv_int_as_float(i32 %x) {
entry:
  %y = bitcast i32 %x to float
  ret float %y
}

define i32 @__nv_float_as_uint(float %x) {
entry:
  %y = bitcast float %x to i32
  ret i32 %y
}

define float @__nv_uint_as_float(i32 %x) {
entry:
  %y = bitcast i32 %x to float
  ret float %y
}

define void @__nv_sincos(double %x, i8* %sine, i8* %cosine) {
entry:
  %s = bitcast i8* %sine to double*
  %c = bitcast i8* %cosine to double*
  %a = call double @sin(double %x)
  store double %a, double* %s
  %b = call double @cos(double %x)
  store double %b, double* %c
  ret void
}

define void @__nv_sincospi(double %x, i8* %sine, i8* %cosine) {
entry:
  %s = bitcast i8* %sine to double*
  %c = bitcast i8* %cosine to double*
  %a = call double @__nv_sinpi(double %x)
  store double %a, double* %s
  %b = call double @__nv_cospi(double %x)
  store double %b, double* %c
  ret void
}

define void @__nv_sincosf(float %x, i8* %sine, i8* %cosine) {
entry:
  %s = bitcast i8* %sine to float*
  %c = bitcast i8* %cosine to float*
  %a = call float @sinf(float %x)
  store float %a, float* %s
  %b = call float @cosf(float %x)
  store float %b, float* %c
  ret void
}

define void @__nv_sincospif(float %x, i8* %sine, i8* %cosine) {
entry:
  %s = bitcast i8* %sine to float*
  %c = bitcast i8* %cosine to float*
  %a = call float @__nv_sinpif(float %x)
  store float %a, float* %s
  %b = call float @__nv_cospif(float %x)
  store float %b, float* %c
  ret void
}

; log(gamma(x)) for x >= 10, less a constant: Stirling's series (NIST Digital Library of Mathematical Functions, 5.11.1).
define double @numba_enzyme_rule_stirling(double %x) {
entry:
  %shifted = fsub double %x, 0.5
  %log = call double @log(double %x)
  %main = fmul double %shifted, %log
  %r0 = fsub double %main, %x
  %square = fmul double %x, %x
  %inverse = fdiv double 1.0, %square
  %p0 = fdiv double 1.0, %x
  %t0 = fmul double %p0, 0x3FB5555555555555
  %r1 = fadd double %r0, %t0
  %p1 = fmul double %p0, %inverse
  %t1 = fmul double %p1, 0xBF66C16C16C16C17
  %r2 = fadd double %r1, %t1
  %p2 = fmul double %p1, %inverse
  %t2 = fmul double %p2, 0x3F4A01A01A01A01A
  %r3 = fadd double %r2, %t2
  %p3 = fmul double %p2, %inverse
  %t3 = fmul double %p3, 0xBF43813813813814
  %r4 = fadd double %r3, %t3
  %p4 = fmul double %p3, %inverse
  %t4 = fmul double %p4, 0x3F4B951E2B18FF23
  %r5 = fadd double %r4, %t4
  %p5 = fmul double %p4, %inverse
  %t5 = fmul double %p5, 0xBF5F6AB0D9993C7D
  %r6 = fadd double %r5, %t5
  %p6 = fmul double %p5, %inverse
  %t6 = fmul double %p6, 0x3F7A41A41A41A41A
  %r7 = fadd double %r6, %t6
  %p7 = fmul double %p6, %inverse
  %t7 = fmul double %p7, 0xBF9E4286CB0F5398
  %r8 = fadd double %r7, %t7
  ret double %r8
}

; Below 10 by the recurrence, with a fixed number of factors (5.5.1).
define double @numba_enzyme_rule_log_gamma_positive(double %x) {
entry:
  %large = fcmp oge double %x, 10.0
  br i1 %large, label %series, label %recurrence
series:
  %far = call double @numba_enzyme_rule_stirling(double %x)
  ret double %far
recurrence:
  %x1 = fadd double %x, 1.0
  %f1 = fmul double %x, %x1
  %x2 = fadd double %x, 2.0
  %f2 = fmul double %f1, %x2
  %x3 = fadd double %x, 3.0
  %f3 = fmul double %f2, %x3
  %x4 = fadd double %x, 4.0
  %f4 = fmul double %f3, %x4
  %x5 = fadd double %x, 5.0
  %f5 = fmul double %f4, %x5
  %x6 = fadd double %x, 6.0
  %f6 = fmul double %f5, %x6
  %x7 = fadd double %x, 7.0
  %f7 = fmul double %f6, %x7
  %x8 = fadd double %x, 8.0
  %f8 = fmul double %f7, %x8
  %x9 = fadd double %x, 9.0
  %f9 = fmul double %f8, %x9
  %above = fadd double %x, 10.0
  %there = call double @numba_enzyme_rule_stirling(double %above)
  %product = call double @log(double %f9)
  %near = fsub double %there, %product
  ret double %near
}

; log(abs(gamma(x))) less a constant on each side of zero, below it by reflection (5.5.3).
define double @numba_enzyme_rule_log_abs_gamma(double %x) {
entry:
  %positive = fcmp ogt double %x, 0.0
  br i1 %positive, label %right, label %left
right:
  %direct = call double @numba_enzyme_rule_log_gamma_positive(double %x)
  ret double %direct
left:
  %whole = call double @floor(double %x)
  %fixed = call double @numba_enzyme_constant(double %whole)
  %fraction = fsub double %x, %fixed
  %angle = fmul double %fraction, 0x400921FB54442D18
  %sine = call double @sin(double %angle)
  %size = call double @fabs(double %sine)
  %log = call double @log(double %size)
  %mirror = fsub double 1.0, %x
  %other = call double @numba_enzyme_rule_log_gamma_positive(double %mirror)
  %sum = fadd double %log, %other
  %y = fsub double -0.0, %sum
  ret double %y
}

define double @__nv_lgamma(double %x) {
entry:
  %g = call double @numba_enzyme_rule_log_abs_gamma(double %x)
  %same = call double @numba_enzyme_constant(double %g)
  %zero = fsub double %g, %same
  %value = call double @numba_enzyme_value_lgamma(double %x)
  %y = fadd double %value, %zero
  ret double %y
}

define double @__nv_tgamma(double %x) {
entry:
  %g = call double @numba_enzyme_rule_log_abs_gamma(double %x)
  %same = call double @numba_enzyme_constant(double %g)
  %zero = fsub double %g, %same
  %one = call double @exp(double %zero)
  %value = call double @numba_enzyme_value_tgamma(double %x)
  %y = fmul double %value, %one
  ret double %y
}

define float @__nv_lgammaf(float %x) {
entry:
  %wide = fpext float %x to double
  %value = call double @__nv_lgamma(double %wide)
  %y = fptrunc double %value to float
  ret float %y
}

define float @__nv_tgammaf(float %x) {
entry:
  %wide = fpext float %x to double
  %value = call double @__nv_tgamma(double %wide)
  %y = fptrunc double %value to float
  ret float %y
}

declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_erfinv(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_erfinvf(float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_erfcinv(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_erfcinvf(float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_normcdfinv(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_normcdfinvf(float) nofree nounwind readnone "enzyme_inactive"
declare double @erf(double)
declare float @erff(float)
declare float @expf(float)

; Inverses: the root is the library's, and three steps of Newton's method from it, which do not move it, give it its derivatives. Each step
; doubles the order up to which they are right, less one: 1, 3, 7.

define double @__nv_erfinv(double %x) {
entry:
  %y0 = call double @numba_enzyme_value_erfinv(double %x)
  %f0 = call double @erf(double %y0)
  %miss0 = fsub double %x, %f0
  %square0 = fmul double %y0, %y0
  %exp0 = call double @exp(double %square0)
  %slope0 = fmul double %exp0, 0x3FEC5BF891B4EF6A
  %step0 = fmul double %miss0, %slope0
  %y1 = fadd double %y0, %step0
  %f1 = call double @erf(double %y1)
  %miss1 = fsub double %x, %f1
  %square1 = fmul double %y1, %y1
  %exp1 = call double @exp(double %square1)
  %slope1 = fmul double %exp1, 0x3FEC5BF891B4EF6A
  %step1 = fmul double %miss1, %slope1
  %y2 = fadd double %y1, %step1
  %f2 = call double @erf(double %y2)
  %miss2 = fsub double %x, %f2
  %square2 = fmul double %y2, %y2
  %exp2 = call double @exp(double %square2)
  %slope2 = fmul double %exp2, 0x3FEC5BF891B4EF6A
  %step2 = fmul double %miss2, %slope2
  %y3 = fadd double %y2, %step2
  %same = call double @numba_enzyme_constant(double %y3)
  %zero = fsub double %y3, %same
  %y = fadd double %y0, %zero
  ret double %y
}

define double @__nv_erfcinv(double %x) {
entry:
  %y0 = call double @numba_enzyme_value_erfcinv(double %x)
  %f0 = call double @erfc(double %y0)
  %miss0 = fsub double %x, %f0
  %square0 = fmul double %y0, %y0
  %exp0 = call double @exp(double %square0)
  %slope0 = fmul double %exp0, 0xBFEC5BF891B4EF6A
  %step0 = fmul double %miss0, %slope0
  %y1 = fadd double %y0, %step0
  %f1 = call double @erfc(double %y1)
  %miss1 = fsub double %x, %f1
  %square1 = fmul double %y1, %y1
  %exp1 = call double @exp(double %square1)
  %slope1 = fmul double %exp1, 0xBFEC5BF891B4EF6A
  %step1 = fmul double %miss1, %slope1
  %y2 = fadd double %y1, %step1
  %f2 = call double @erfc(double %y2)
  %miss2 = fsub double %x, %f2
  %square2 = fmul double %y2, %y2
  %exp2 = call double @exp(double %square2)
  %slope2 = fmul double %exp2, 0xBFEC5BF891B4EF6A
  %step2 = fmul double %miss2, %slope2
  %y3 = fadd double %y2, %step2
  %same = call double @numba_enzyme_constant(double %y3)
  %zero = fsub double %y3, %same
  %y = fadd double %y0, %zero
  ret double %y
}

define double @__nv_normcdfinv(double %x) {
entry:
  %twice = fmul double %x, 2.0
  %root = call double @__nv_erfcinv(double %twice)
  %g = fmul double %root, 0xBFF6A09E667F3BCD
  %same = call double @numba_enzyme_constant(double %g)
  %zero = fsub double %g, %same
  %value = call double @numba_enzyme_value_normcdfinv(double %x)
  %y = fadd double %value, %zero
  ret double %y
}

define float @__nv_erfinvf(float %x) {
entry:
  %y0 = call float @numba_enzyme_value_erfinvf(float %x)
  %f0 = call float @erff(float %y0)
  %miss0 = fsub float %x, %f0
  %square0 = fmul float %y0, %y0
  %exp0 = call float @expf(float %square0)
  %slope0 = fmul float %exp0, 0x3FEC5BF8A0000000
  %step0 = fmul float %miss0, %slope0
  %y1 = fadd float %y0, %step0
  %f1 = call float @erff(float %y1)
  %miss1 = fsub float %x, %f1
  %square1 = fmul float %y1, %y1
  %exp1 = call float @expf(float %square1)
  %slope1 = fmul float %exp1, 0x3FEC5BF8A0000000
  %step1 = fmul float %miss1, %slope1
  %y2 = fadd float %y1, %step1
  %f2 = call float @erff(float %y2)
  %miss2 = fsub float %x, %f2
  %square2 = fmul float %y2, %y2
  %exp2 = call float @expf(float %square2)
  %slope2 = fmul float %exp2, 0x3FEC5BF8A0000000
  %step2 = fmul float %miss2, %slope2
  %y3 = fadd float %y2, %step2
  %same = call float @numba_enzyme_constantf(float %y3)
  %zero = fsub float %y3, %same
  %y = fadd float %y0, %zero
  ret float %y
}

define float @__nv_erfcinvf(float %x) {
entry:
  %y0 = call float @numba_enzyme_value_erfcinvf(float %x)
  %f0 = call float @erfcf(float %y0)
  %miss0 = fsub float %x, %f0
  %square0 = fmul float %y0, %y0
  %exp0 = call float @expf(float %square0)
  %slope0 = fmul float %exp0, 0xBFEC5BF8A0000000
  %step0 = fmul float %miss0, %slope0
  %y1 = fadd float %y0, %step0
  %f1 = call float @erfcf(float %y1)
  %miss1 = fsub float %x, %f1
  %square1 = fmul float %y1, %y1
  %exp1 = call float @expf(float %square1)
  %slope1 = fmul float %exp1, 0xBFEC5BF8A0000000
  %step1 = fmul float %miss1, %slope1
  %y2 = fadd float %y1, %step1
  %f2 = call float @erfcf(float %y2)
  %miss2 = fsub float %x, %f2
  %square2 = fmul float %y2, %y2
  %exp2 = call float @expf(float %square2)
  %slope2 = fmul float %exp2, 0xBFEC5BF8A0000000
  %step2 = fmul float %miss2, %slope2
  %y3 = fadd float %y2, %step2
  %same = call float @numba_enzyme_constantf(float %y3)
  %zero = fsub float %y3, %same
  %y = fadd float %y0, %zero
  ret float %y
}

define float @__nv_normcdfinvf(float %x) {
entry:
  %twice = fmul float %x, 2.0
  %root = call float @__nv_erfcinvf(float %twice)
  %g = fmul float %root, 0xBFF6A09E60000000
  %same = call float @numba_enzyme_constantf(float %g)
  %zero = fsub float %g, %same
  %value = call float @numba_enzyme_value_normcdfinvf(float %x)
  %y = fadd float %value, %zero
  ret float %y
}

; Where a function has no derivative, or none that is finite, it counts as constant, as on the CPU (docs/conventions.md).

declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_atan2(double, double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_hypot(double, double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_cbrt(double) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_value_pow(double, double) nofree nounwind readnone "enzyme_inactive"
declare double @atan2(double, double)
declare double @hypot(double, double)
declare double @llvm.pow.f64(double, double)

define double @__nv_atan2(double %a, double %b) {
entry:
  %a0 = fcmp oeq double %a, 0.0
  %b0 = fcmp oeq double %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular
constant:
  %value = call double @numba_enzyme_value_atan2(double %a, double %b)
  ret double %value
regular:
  %result = call double @atan2(double %a, double %b)
  ret double %result
}

define double @__nv_hypot(double %a, double %b) {
entry:
  %a0 = fcmp oeq double %a, 0.0
  %b0 = fcmp oeq double %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular
constant:
  %value = call double @numba_enzyme_value_hypot(double %a, double %b)
  ret double %value
regular:
  %result = call double @hypot(double %a, double %b)
  ret double %result
}

define double @__nv_cbrt(double %x) {
entry:
  %zero = fcmp oeq double %x, 0.0
  br i1 %zero, label %constant, label %regular
constant:
  %value = call double @numba_enzyme_value_cbrt(double %x)
  ret double %value
regular:
  %result = call double @cbrt(double %x)
  ret double %result
}

; Where tanh is 1 to the last bit, Enzyme's second derivative (of 1 / cosh squared) overflows to inf / inf. Beyond 80 the argument is taken for
; 80: the value is the same, and a derivative below 1e-68 is 0. No branch: one costs a quarter of the time of a loop over tanh.
define double @__nv_tanh(double %x) {
entry:
  %size = call double @fabs(double %x)
  %flat = fcmp ogt double %size, 80.0
  %limit = call double @copysign(double 80.0, double %x)
  %argument = select i1 %flat, double %limit, double %x
  %y = call double @tanh(double %argument)
  ret double %y
}

; Of equals the first is taken. A NaN counts for nothing.
define double @__nv_fmin(double %x, double %y) {
entry:
  %less = fcmp ole double %x, %y
  %nan = fcmp uno double %y, 0.0
  %first = or i1 %less, %nan
  %r = select i1 %first, double %x, double %y
  ret double %r
}

define double @__nv_fmax(double %x, double %y) {
entry:
  %more = fcmp oge double %x, %y
  %nan = fcmp uno double %y, 0.0
  %first = or i1 %more, %nan
  %r = select i1 %first, double %x, double %y
  ret double %r
}

; A power with an exponent that is not written as a number: by its exponent it has a derivative for a positive base only. At zero it counts
; as constant for exponents below 1, and the exponents 1, 2 and 3 are products, whose derivatives of every order are right.
define double @__nv_guarded_pow(double %x, double %h) {
entry:
  %positive = fcmp ogt double %x, 0.0
  br i1 %positive, label %regular, label %fixed
regular:
  %power = call double @llvm.pow.f64(double %x, double %h)
  ret double %power
fixed:
  %exponent = call double @numba_enzyme_constant(double %h)
  %zero = fcmp oeq double %x, 0.0
  br i1 %zero, label %atzero, label %negative
negative:
  %signed = call double @llvm.pow.f64(double %x, double %exponent)
  ret double %signed
atzero:
  %isone = fcmp oeq double %exponent, 1.0
  br i1 %isone, label %one, label %notone
one:
  ret double %x
notone:
  %istwo = fcmp oeq double %exponent, 2.0
  br i1 %istwo, label %two, label %nottwo
two:
  %square = fmul double %x, %x
  ret double %square
nottwo:
  %isthree = fcmp oeq double %exponent, 3.0
  br i1 %isthree, label %three, label %other
three:
  %twice = fmul double %x, %x
  %cube = fmul double %twice, %x
  ret double %cube
other:
  %flat = fcmp olt double %exponent, 1.0
  br i1 %flat, label %constant, label %steep
constant:
  %value = call double @numba_enzyme_value_pow(double %x, double %exponent)
  ret double %value
steep:
  %last = call double @llvm.pow.f64(double %x, double %exponent)
  ret double %last
}

declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_atan2f(float, float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_hypotf(float, float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_cbrtf(float) nofree nounwind readnone "enzyme_inactive"
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_value_powf(float, float) nofree nounwind readnone "enzyme_inactive"
declare float @atan2f(float, float)
declare float @hypotf(float, float)
declare float @llvm.pow.f32(float, float)

define float @__nv_atan2f(float %a, float %b) {
entry:
  %a0 = fcmp oeq float %a, 0.0
  %b0 = fcmp oeq float %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular
constant:
  %value = call float @numba_enzyme_value_atan2f(float %a, float %b)
  ret float %value
regular:
  %result = call float @atan2f(float %a, float %b)
  ret float %result
}

define float @__nv_hypotf(float %a, float %b) {
entry:
  %a0 = fcmp oeq float %a, 0.0
  %b0 = fcmp oeq float %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular
constant:
  %value = call float @numba_enzyme_value_hypotf(float %a, float %b)
  ret float %value
regular:
  %result = call float @hypotf(float %a, float %b)
  ret float %result
}

define float @__nv_cbrtf(float %x) {
entry:
  %zero = fcmp oeq float %x, 0.0
  br i1 %zero, label %constant, label %regular
constant:
  %value = call float @numba_enzyme_value_cbrtf(float %x)
  ret float %value
regular:
  %result = call float @cbrtf(float %x)
  ret float %result
}

; Where tanh is 1 to the last bit, Enzyme's second derivative (of 1 / cosh squared) overflows to inf / inf. Beyond 20 the argument is taken for
; 20: the value is the same, and a derivative below 1e-16 is 0. No branch: one costs a quarter of the time of a loop over tanh.
define float @__nv_tanhf(float %x) {
entry:
  %size = call float @fabsf(float %x)
  %flat = fcmp ogt float %size, 20.0
  %limit = call float @copysignf(float 20.0, float %x)
  %argument = select i1 %flat, float %limit, float %x
  %y = call float @tanhf(float %argument)
  ret float %y
}

; Of equals the first is taken. A NaN counts for nothing.
define float @__nv_fminf(float %x, float %y) {
entry:
  %less = fcmp ole float %x, %y
  %nan = fcmp uno float %y, 0.0
  %first = or i1 %less, %nan
  %r = select i1 %first, float %x, float %y
  ret float %r
}

define float @__nv_fmaxf(float %x, float %y) {
entry:
  %more = fcmp oge float %x, %y
  %nan = fcmp uno float %y, 0.0
  %first = or i1 %more, %nan
  %r = select i1 %first, float %x, float %y
  ret float %r
}

; A power with an exponent that is not written as a number: by its exponent it has a derivative for a positive base only. At zero it counts
; as constant for exponents below 1, and the exponents 1, 2 and 3 are products, whose derivatives of every order are right.
define float @__nv_guarded_powf(float %x, float %h) {
entry:
  %positive = fcmp ogt float %x, 0.0
  br i1 %positive, label %regular, label %fixed
regular:
  %power = call float @llvm.pow.f32(float %x, float %h)
  ret float %power
fixed:
  %exponent = call float @numba_enzyme_constantf(float %h)
  %zero = fcmp oeq float %x, 0.0
  br i1 %zero, label %atzero, label %negative
negative:
  %signed = call float @llvm.pow.f32(float %x, float %exponent)
  ret float %signed
atzero:
  %isone = fcmp oeq float %exponent, 1.0
  br i1 %isone, label %one, label %notone
one:
  ret float %x
notone:
  %istwo = fcmp oeq float %exponent, 2.0
  br i1 %istwo, label %two, label %nottwo
two:
  %square = fmul float %x, %x
  ret float %square
nottwo:
  %isthree = fcmp oeq float %exponent, 3.0
  br i1 %isthree, label %three, label %other
three:
  %twice = fmul float %x, %x
  %cube = fmul float %twice, %x
  ret float %cube
other:
  %flat = fcmp olt float %exponent, 1.0
  br i1 %flat, label %constant, label %steep
constant:
  %value = call float @numba_enzyme_value_powf(float %x, float %exponent)
  ret float %value
steep:
  %last = call float @llvm.pow.f32(float %x, float %exponent)
  ret float %last
}
