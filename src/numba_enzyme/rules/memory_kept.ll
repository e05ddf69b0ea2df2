; Numba's memory runtime, as much of it as Enzyme has to see through, where there is a reverse sweep: memory is kept until the call ends
; (`region.ll`), and no references are counted.
;
; A reverse sweep needs memory again that the primal is done with. Reference counts would only hide that: LLVM cannot see which of the ways
; through a decrement are never taken, and Enzyme's sweeps over nested loops that hold such ways are wrong, in silence.
;
; The allocator is not malloc and its result is not noalias. Where buffers are swapped in a loop, Enzyme would take noalias to hold between
; iterations and give wrong gradients without a word. The registration below tells it that memory from here is fresh and how to free it.

@numba_enzyme.frees = private constant [3 x i8] c"-1\00"
@__enzyme_allocation_like_numba_enzyme = global [4 x ptr] [ptr @numba_enzyme_alloc, ptr null, ptr @numba_enzyme.frees, ptr @free]

declare ptr @numba_enzyme_alloc(i64)
declare void @free(ptr)

; Nothing calls this; it keeps `free`, which is named above, in the module until Enzyme looks for it.
define void @numba_enzyme_release(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %block = call ptr @numba_enzyme_alloc(i64 %size)
  ret ptr %block
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %block = call ptr @numba_enzyme_alloc(i64 %size)
  ret ptr %block
}

define ptr @NRT_MemInfo_data_fast(ptr %block) {
  ret ptr %block
}

define ptr @NRT_Allocate(i64 %size) {
  %memory = call ptr @numba_enzyme_alloc(i64 %size)
  ret ptr %memory
}

define void @NRT_Free(ptr %memory) {
  ret void
}

define void @NRT_incref(ptr %block) {
  ret void
}

define void @NRT_decref(ptr %block) {
  ret void
}
