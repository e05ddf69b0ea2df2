; What the names that were hidden from Enzyme stand for. Linked when it is done.

declare ptr @malloc(i64)
declare double @numba_gamma(double)
declare double @lgamma(double)

define ptr @numba_enzyme_alloc(i64 %size) {
  %memory = call ptr @malloc(i64 %size)
  ret ptr %memory
}

; Memory that an entry point gives away, or gives back: zeros (pages that are not touched cost nothing) in the care of Numba's runtime, whose
; header starts with the count, the destructor, what the destructor is told, the data and its size. The destructor is the C library's own
; function: code of a derivative may be gone when the array dies.
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare ptr @NRT_MemInfo_alloc_dtor(i64, ptr)
declare void @NRT_MemInfo_call_dtor(ptr)

define ptr @numba_enzyme_block(i64 %size) {
  %some = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %data = call ptr @calloc(i64 1, i64 %some)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %none, label %wrap

wrap:
  %block = call ptr @NRT_MemInfo_alloc_dtor(i64 0, ptr @free)
  %absent = icmp eq ptr %block, null
  br i1 %absent, label %lost, label %made

lost:
  call void @free(ptr %data)
  ret ptr null

made:
  %dataptr = getelementptr i8, ptr %block, i64 24
  store ptr %data, ptr %dataptr
  %sizeptr = getelementptr i8, ptr %block, i64 32
  store i64 %size, ptr %sizeptr
  ret ptr %block

none:
  ret ptr null
}

declare i64 @llvm.umax.i64(i64, i64)

define ptr @numba_enzyme_block_data(ptr %block) {
  %dataptr = getelementptr i8, ptr %block, i64 24
  %data = load ptr, ptr %dataptr
  ret ptr %data
}

define void @numba_enzyme_block_release(ptr %block) {
  call void @NRT_MemInfo_call_dtor(ptr %block)
  ret void
}

define double @numba_enzyme_gamma(double %x) {
  %y = call double @numba_gamma(double %x)
  ret double %y
}

define double @numba_enzyme_lgamma(double %x) {
  %y = call double @lgamma(double %x)
  ret double %y
}

declare double @atan2(double, double)

define double @numba_enzyme_atan2(double %a, double %b) {
  %result = call double @atan2(double %a, double %b)
  ret double %result
}

declare double @hypot(double, double)

define double @numba_enzyme_hypot(double %a, double %b) {
  %result = call double @hypot(double %a, double %b)
  ret double %result
}

declare double @cbrt(double)
declare double @llvm.pow.f64(double, double)

define double @numba_enzyme_constant(double %x) {
  ret double %x
}

define double @numba_enzyme_cbrt(double %x) {
  %result = call double @cbrt(double %x)
  ret double %result
}

define double @numba_enzyme_pow(double %x, double %h) {
  %result = call double @llvm.pow.f64(double %x, double %h)
  ret double %result
}

declare double @numba_nextafter(double, double)
declare double @numba_frexp(double, ptr)

define double @numba_enzyme_step(double %x, double %toward) {
  %next = call double @numba_nextafter(double %x, double %toward)
  %step = fsub double %next, %x
  ret double %step
}

define double @numba_enzyme_nextafter(double %x, double %toward) {
  %next = call double @numba_nextafter(double %x, double %toward)
  ret double %next
}

define double @numba_enzyme_frexp(double %x, ptr %exponent) {
  %mantissa = call double @numba_frexp(double %x, ptr %exponent)
  ret double %mantissa
}

declare float @atan2f(float, float)

define float @numba_enzyme_atan2f(float %a, float %b) {
  %result = call float @atan2f(float %a, float %b)
  ret float %result
}

declare float @hypotf(float, float)

define float @numba_enzyme_hypotf(float %a, float %b) {
  %result = call float @hypotf(float %a, float %b)
  ret float %result
}

declare float @cbrtf(float)
declare float @llvm.pow.f32(float, float)

define float @numba_enzyme_constantf(float %x) {
  ret float %x
}

define float @numba_enzyme_cbrtf(float %x) {
  %result = call float @cbrtf(float %x)
  ret float %result
}

define float @numba_enzyme_powf(float %x, float %h) {
  %result = call float @llvm.pow.f32(float %x, float %h)
  ret float %result
}

declare float @numba_nextafterf(float, float)
declare float @numba_frexpf(float, ptr)

define float @numba_enzyme_stepf(float %x, float %toward) {
  %next = call float @numba_nextafterf(float %x, float %toward)
  %step = fsub float %next, %x
  ret float %step
}

define float @numba_enzyme_nextafterf(float %x, float %toward) {
  %next = call float @numba_nextafterf(float %x, float %toward)
  ret float %next
}

define float @numba_enzyme_frexpf(float %x, ptr %exponent) {
  %mantissa = call float @numba_frexpf(float %x, ptr %exponent)
  ret float %mantissa
}
