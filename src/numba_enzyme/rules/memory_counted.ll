; Numba's memory runtime, as much of it as Enzyme has to see through, for forward sweeps. A block is a header of 64 bytes, which starts with
; the reference count, and the data behind it: the layout that Numba's own runtime has.
;
; The allocator is not malloc and its result is not noalias. Where buffers are swapped in a loop, Enzyme would take noalias to hold between
; iterations and give wrong gradients without a word. The registration below tells it that memory from here is fresh and how to free it.

@numba_enzyme.frees = private constant [3 x i8] c"-1\00"
@__enzyme_allocation_like_numba_enzyme = global [4 x ptr] [ptr @numba_enzyme_alloc, ptr null, ptr @numba_enzyme.frees, ptr @free]

declare ptr @numba_enzyme_alloc(i64)
declare void @free(ptr)

; Sweeps drop `free` of what has no derivative; a function that calls it they leave alone (`application.freed_by_call`).
define void @numba_enzyme_release(ptr %memory) {
  call void @free(ptr %memory)
  ret void
}

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %total = add i64 %size, 64
  %block = call ptr @numba_enzyme_alloc(i64 %total)
  store i64 1, ptr %block, !tbaa !3
  ret ptr %block
}

define ptr @NRT_MemInfo_alloc(i64 %size) {
  %block = call ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 16)
  ret ptr %block
}

define ptr @NRT_MemInfo_data_fast(ptr %block) {
  %data = getelementptr inbounds i8, ptr %block, i64 64
  ret ptr %data
}

define ptr @NRT_Allocate(i64 %size) {
  %memory = call ptr @numba_enzyme_alloc(i64 %size)
  ret ptr %memory
}

define void @NRT_Free(ptr %memory) {
  call void @numba_enzyme_release(ptr %memory)
  ret void
}

define void @NRT_incref(ptr %block) {
  %absent = icmp eq ptr %block, null
  br i1 %absent, label %done, label %count

count:
  %old = load i64, ptr %block, !tbaa !3
  %new = add i64 %old, 1
  store i64 %new, ptr %block, !tbaa !3
  br label %done

done:
  ret void
}

define void @NRT_decref(ptr %block) {
  %absent = icmp eq ptr %block, null
  br i1 %absent, label %done, label %count

count:
  %old = load i64, ptr %block, !tbaa !3
  %new = sub i64 %old, 1
  store i64 %new, ptr %block, !tbaa !3
  %dead = icmp eq i64 %new, 0
  br i1 %dead, label %release, label %done

release:
  call void @numba_enzyme_release(ptr %block)
  br label %done

done:
  ret void
}

; Says that a reference count is an integer: to Enzyme's type analysis the memory of an array is otherwise all of one kind.
!0 = !{!"numba_enzyme"}
!1 = !{!"omnipotent char", !0, i64 0}
!2 = !{!"long", !1, i64 0}
!3 = !{!2, !2, i64 0}
