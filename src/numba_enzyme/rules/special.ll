; Numba's helpers for scalar mathematics in terms of what Enzyme knows. What is not simply another function of libm is written in Python
; (special.py); float32 goes through float64. Names that begin with numba_enzyme are hidden from LLVM and Enzyme, which would make something
; of the names that they stand for (resolved.ll).

declare double @numba_gamma(double)
declare double @lgamma(double)

define float @numba_gammaf(float %x) {
  %wide = fpext float %x to double
  %value = call double @numba_gamma(double %wide)
  %y = fptrunc double %value to float
  ret float %y
}

define float @lgammaf(float %x) {
  %wide = fpext float %x to double
  %value = call double @lgamma(double %wide)
  %y = fptrunc double %value to float
  ret float %y
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
