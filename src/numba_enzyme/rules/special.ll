; Numba's helpers for scalar mathematics in terms of what Enzyme knows; what is not simply another function of libm is in special.py.
; Names that begin with numba_enzyme are hidden from LLVM and Enzyme, which would make something of the names that they stand for
; (resolved.ll).

declare double @atan2(double, double)
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_atan2(double, double)

; At the origin, where it has no derivative, atan2 counts as constant.
define double @numba_enzyme_guarded_atan2(double %a, double %b) {
  %a0 = fcmp oeq double %a, 0.0
  %b0 = fcmp oeq double %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular

constant:
  %value = call double @numba_enzyme_atan2(double %a, double %b)
  ret double %value

regular:
  %result = call double @atan2(double %a, double %b)
  ret double %result
}

declare double @hypot(double, double)
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_hypot(double, double)

; At the origin, where it has no derivative, hypot counts as constant.
define double @numba_enzyme_guarded_hypot(double %a, double %b) {
  %a0 = fcmp oeq double %a, 0.0
  %b0 = fcmp oeq double %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular

constant:
  %value = call double @numba_enzyme_hypot(double %a, double %b)
  ret double %value

regular:
  %result = call double @hypot(double %a, double %b)
  ret double %result
}

declare double @cbrt(double)
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_cbrt(double)
declare double @llvm.pow.f64(double, double)
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_pow(double, double)
declare "enzyme_type"="{[-1]:Float@double}" double @numba_enzyme_constant(double)

; At zero cbrt counts as constant, as sqrt does.
define double @numba_enzyme_guarded_cbrt(double %x) {
  %zero = fcmp oeq double %x, 0.0
  br i1 %zero, label %constant, label %regular

constant:
  %value = call double @numba_enzyme_cbrt(double %x)
  ret double %value

regular:
  %result = call double @cbrt(double %x)
  ret double %result
}

; A power with an exponent that is not written as a number. By its exponent it has a derivative for a positive base only, and counts as
; constant elsewhere. At zero it counts as constant where its derivative is infinite or 0 * inf (exponents below 1), and the exponents 1, 2
; and 3 are products, whose derivatives of every order are right.
define double @numba_enzyme_guarded_pow(double %x, double %h) {
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
  %value = call double @numba_enzyme_pow(double %x, double %exponent)
  ret double %value

steep:
  %last = call double @llvm.pow.f64(double %x, double %exponent)
  ret double %last
}

declare double @tanh(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.copysign.f64(double, double)

; Where tanh is 1 to the last bit, Enzyme's second derivative (of 1 / cosh squared) overflows to inf / inf. Beyond 80 the argument is taken for
; 80: the value is the same, and a derivative below 1e-68 is 0. No branch: one costs a quarter of the time of a loop over tanh.
define double @numba_enzyme_guarded_tanh(double %x) {
  %size = call double @llvm.fabs.f64(double %x)
  %flat = fcmp ogt double %size, 80.0
  %limit = call double @llvm.copysign.f64(double 80.0, double %x)
  %argument = select i1 %flat, double %limit, double %x
  %y = call double @tanh(double %argument)
  ret double %y
}

declare double @ldexp(double, i32)
declare double @numba_enzyme_nextafter(double, double)
declare double @numba_enzyme_step(double, double)
declare double @numba_enzyme_frexp(double, ptr)

; The step to the neighbour is constant between powers of two. Adding it is exact, except where x is infinite.
define double @numba_nextafter(double %x, double %toward) {
  %step = call double @numba_enzyme_step(double %x, double %toward)
  %sum = fadd double %x, %step
  %zero = fsub double %x, %x
  %finite = fcmp oeq double %zero, 0.0
  %next = call double @numba_enzyme_nextafter(double %x, double %toward)
  %y = select i1 %finite, double %sum, double %next
  ret double %y
}

define double @nextafter(double %x, double %toward) {
  %y = call double @numba_nextafter(double %x, double %toward)
  ret double %y
}

define double @numba_ldexp(double %x, i32 %exponent) {
  %y = call double @ldexp(double %x, i32 %exponent)
  ret double %y
}

; The exponent is constant between the points where it jumps, so the mantissa is x times a constant power of two, without rounding.
define double @numba_frexp(double %x, ptr %exponent) {
  %ignored = call double @numba_enzyme_frexp(double %x, ptr %exponent)
  %power = load i32, ptr %exponent
  %inverse = sub i32 0, %power
  %mantissa = call double @ldexp(double %x, i32 %inverse)
  ret double %mantissa
}

declare float @atan2f(float, float)
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_atan2f(float, float)

; At the origin, where it has no derivative, atan2 counts as constant.
define float @numba_enzyme_guarded_atan2f(float %a, float %b) {
  %a0 = fcmp oeq float %a, 0.0
  %b0 = fcmp oeq float %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular

constant:
  %value = call float @numba_enzyme_atan2f(float %a, float %b)
  ret float %value

regular:
  %result = call float @atan2f(float %a, float %b)
  ret float %result
}

declare float @hypotf(float, float)
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_hypotf(float, float)

; At the origin, where it has no derivative, hypot counts as constant.
define float @numba_enzyme_guarded_hypotf(float %a, float %b) {
  %a0 = fcmp oeq float %a, 0.0
  %b0 = fcmp oeq float %b, 0.0
  %origin = and i1 %a0, %b0
  br i1 %origin, label %constant, label %regular

constant:
  %value = call float @numba_enzyme_hypotf(float %a, float %b)
  ret float %value

regular:
  %result = call float @hypotf(float %a, float %b)
  ret float %result
}

declare float @cbrtf(float)
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_cbrtf(float)
declare float @llvm.pow.f32(float, float)
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_powf(float, float)
declare "enzyme_type"="{[-1]:Float@float}" float @numba_enzyme_constantf(float)

; At zero cbrt counts as constant, as sqrt does.
define float @numba_enzyme_guarded_cbrtf(float %x) {
  %zero = fcmp oeq float %x, 0.0
  br i1 %zero, label %constant, label %regular

constant:
  %value = call float @numba_enzyme_cbrtf(float %x)
  ret float %value

regular:
  %result = call float @cbrtf(float %x)
  ret float %result
}

; A power with an exponent that is not written as a number. By its exponent it has a derivative for a positive base only, and counts as
; constant elsewhere. At zero it counts as constant where its derivative is infinite or 0 * inf (exponents below 1), and the exponents 1, 2
; and 3 are products, whose derivatives of every order are right.
define float @numba_enzyme_guarded_powf(float %x, float %h) {
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
  %value = call float @numba_enzyme_powf(float %x, float %exponent)
  ret float %value

steep:
  %last = call float @llvm.pow.f32(float %x, float %exponent)
  ret float %last
}

declare float @tanhf(float)
declare float @llvm.fabs.f32(float)
declare float @llvm.copysign.f32(float, float)

; Where tanh is 1 to the last bit, Enzyme's second derivative (of 1 / cosh squared) overflows to inf / inf. Beyond 20 the argument is taken for
; 20: the value is the same, and a derivative below 1e-16 is 0. No branch: one costs a quarter of the time of a loop over tanh.
define float @numba_enzyme_guarded_tanhf(float %x) {
  %size = call float @llvm.fabs.f32(float %x)
  %flat = fcmp ogt float %size, 20.0
  %limit = call float @llvm.copysign.f32(float 20.0, float %x)
  %argument = select i1 %flat, float %limit, float %x
  %y = call float @tanhf(float %argument)
  ret float %y
}

declare float @ldexpf(float, i32)
declare float @numba_enzyme_nextafterf(float, float)
declare float @numba_enzyme_stepf(float, float)
declare float @numba_enzyme_frexpf(float, ptr)

; The step to the neighbour is constant between powers of two. Adding it is exact, except where x is infinite.
define float @numba_nextafterf(float %x, float %toward) {
  %step = call float @numba_enzyme_stepf(float %x, float %toward)
  %sum = fadd float %x, %step
  %zero = fsub float %x, %x
  %finite = fcmp oeq float %zero, 0.0
  %next = call float @numba_enzyme_nextafterf(float %x, float %toward)
  %y = select i1 %finite, float %sum, float %next
  ret float %y
}

define float @nextafterf(float %x, float %toward) {
  %y = call float @numba_nextafterf(float %x, float %toward)
  ret float %y
}

define float @numba_ldexpf(float %x, i32 %exponent) {
  %y = call float @ldexpf(float %x, i32 %exponent)
  ret float %y
}

; The exponent is constant between the points where it jumps, so the mantissa is x times a constant power of two, without rounding.
define float @numba_frexpf(float %x, ptr %exponent) {
  %ignored = call float @numba_enzyme_frexpf(float %x, ptr %exponent)
  %power = load i32, ptr %exponent
  %inverse = sub i32 0, %power
  %mantissa = call float @ldexpf(float %x, i32 %inverse)
  ret float %mantissa
}
