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
