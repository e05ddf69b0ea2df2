; Memory of one call of a derivative: tapes, shadows and what the primal allocates, cut from chunks one block after another and given back
; together when the call ends.
;
; A region is where the next block starts, where the chunk ends, where its first block starts, how much all chunks hold, and where to go when
; memory runs out. A chunk starts with where the one before it starts, is filled to and ends. Its blocks are multiples of 16 bytes with their
; size in front; the first chunk is on the stack and is the one with none before it. The last block can be given back before the call ends:
; the tapes of inner loops are.

%region = type { i64, i64, i64, i64, [64 x i64] }
%header = type { i64, i64, i64 }

@numba_enzyme_tape_limit = external global i64
@numba_enzyme_tape_needed = external global i64

declare ptr @malloc(i64)
declare void @free(ptr)
declare void @_longjmp(ptr, i32) noreturn
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @numba_enzyme_region_open(ptr %region, ptr %stack, i64 %size) {
  %start = ptrtoint ptr %stack to i64
  %top = add i64 %start, 24
  %end = add i64 %start, %size
  store i64 0, ptr %stack
  call void @numba_enzyme_region_chunk(ptr %region, i64 %top, i64 %end)
  %total.p = getelementptr %region, ptr %region, i64 0, i32 3
  store i64 0, ptr %total.p
  ret void
}

define void @numba_enzyme_region_chunk(ptr %region, i64 %top, i64 %end) alwaysinline {
  %end.p = getelementptr %region, ptr %region, i64 0, i32 1
  %first.p = getelementptr %region, ptr %region, i64 0, i32 2
  store i64 %top, ptr %region
  store i64 %end, ptr %end.p
  store i64 %top, ptr %first.p
  ret void
}

define void @numba_enzyme_region_close(ptr %region) {
  br label %check

check:
  %last = call i1 @numba_enzyme_region_back(ptr %region)
  br i1 %last, label %done, label %check

done:
  ret void
}

; Frees the last chunk and goes back to the one before it; whether there is none.
define i1 @numba_enzyme_region_back(ptr %region) noinline {
  %first.p = getelementptr %region, ptr %region, i64 0, i32 2
  %first = load i64, ptr %first.p
  %start = sub i64 %first, 24
  %header = inttoptr i64 %start to ptr
  %before = load i64, ptr %header
  %last = icmp eq i64 %before, 0
  br i1 %last, label %done, label %back

back:
  %top.p = getelementptr %header, ptr %header, i64 0, i32 1
  %end.p = getelementptr %header, ptr %header, i64 0, i32 2
  %top = load i64, ptr %top.p
  %end = load i64, ptr %end.p
  %full.p = getelementptr %region, ptr %region, i64 0, i32 1
  %full = load i64, ptr %full.p
  %size = sub i64 %full, %start
  %total.p = getelementptr %region, ptr %region, i64 0, i32 3
  %total = load i64, ptr %total.p
  %less = sub i64 %total, %size
  store i64 %less, ptr %total.p
  store i64 %top, ptr %region
  store i64 %end, ptr %full.p
  store i64 %before, ptr %first.p
  call void @free(ptr %header)
  br label %done

done:
  ret i1 %last
}

; Not inlined: what a call is known to do with memory, which is to give some that nobody else has, is forgotten when it is.
define noalias ptr @numba_enzyme_region_take(ptr %region, i64 %size) noinline {
  %end.p = getelementptr %region, ptr %region, i64 0, i32 1
  %top = load i64, ptr %region
  %end = load i64, ptr %end.p
  %left = sub i64 %end, %top
  %room = call i64 @llvm.usub.sat.i64(i64 %left, i64 40)
  %fits = icmp ult i64 %size, %room
  br i1 %fits, label %cut, label %grow

cut:
  %more = add i64 %size, 23
  %whole = and i64 %more, -16
  %next = add i64 %top, %whole
  store i64 %next, ptr %region
  %size.p = inttoptr i64 %top to ptr
  store i64 %whole, ptr %size.p
  %block = getelementptr i8, ptr %size.p, i64 8
  ret ptr %block

grow:
  call void @numba_enzyme_region_grow(ptr %region, i64 %size)
  %again = call ptr @numba_enzyme_region_take(ptr %region, i64 %size)
  ret ptr %again
}

; A chunk that is twice what there is. The C library keeps what it is given back for the next call as long as it is less than twice the
; largest of it, so chunks grow by more than two.
define void @numba_enzyme_region_grow(ptr %region, i64 %size) noinline {
  %total.p = getelementptr %region, ptr %region, i64 0, i32 3
  %end.p = getelementptr %region, ptr %region, i64 0, i32 1
  %first.p = getelementptr %region, ptr %region, i64 0, i32 2
  %total = load i64, ptr %total.p
  %twice = shl i64 %total, 1
  %most = call i64 @llvm.umin.i64(i64 %twice, i64 1073741824)
  %wanted = call i64 @llvm.umax.i64(i64 %most, i64 65536)
  %limit = load i64, ptr @numba_enzyme_tape_limit
  %allowed = call i64 @llvm.usub.sat.i64(i64 %limit, i64 %total)
  %affordable = call i64 @llvm.umin.i64(i64 %wanted, i64 %allowed)
  %least = add i64 %size, 128
  %bytes = call i64 @llvm.umax.i64(i64 %affordable, i64 %least)
  %negative = icmp slt i64 %least, 0
  %much = icmp ugt i64 %bytes, %allowed
  %refused = or i1 %negative, %much
  br i1 %refused, label %fail, label %ask

ask:
  %chunk = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %fail, label %chain

chain:
  ; Blocks are to start at multiples of 16, their sizes 8 bytes before.
  %start = getelementptr i8, ptr %chunk, i64 0
  %address = ptrtoint ptr %start to i64
  %first = load i64, ptr %first.p
  %top = load i64, ptr %region
  %end = load i64, ptr %end.p
  %top.p = getelementptr %header, ptr %start, i64 0, i32 1
  %full.p = getelementptr %header, ptr %start, i64 0, i32 2
  store i64 %first, ptr %start
  store i64 %top, ptr %top.p
  store i64 %end, ptr %full.p
  %new.top = add i64 %address, 24
  %new.end = add i64 %address, %bytes
  call void @numba_enzyme_region_chunk(ptr %region, i64 %new.top, i64 %new.end)
  %new.total = add i64 %total, %bytes
  store i64 %new.total, ptr %total.p
  ret void

fail:
  %needed = add i64 %total, %bytes
  store i64 %needed, ptr @numba_enzyme_tape_needed
  %way.p = getelementptr %region, ptr %region, i64 0, i32 4
  call void @_longjmp(ptr %way.p, i32 1)
  unreachable
}

define void @numba_enzyme_region_give(ptr %region, ptr %block) noinline {
  %absent = icmp eq ptr %block, null
  br i1 %absent, label %done, label %measure

measure:
  %size.p = getelementptr i8, ptr %block, i64 -8
  %size = load i64, ptr %size.p
  %start = ptrtoint ptr %size.p to i64
  %end = add i64 %start, %size
  %top = load i64, ptr %region
  %is.last = icmp eq i64 %end, %top
  br i1 %is.last, label %take.back, label %done

take.back:
  store i64 %start, ptr %region
  %first.p = getelementptr %region, ptr %region, i64 0, i32 2
  %first = load i64, ptr %first.p
  %empty = icmp eq i64 %start, %first
  br i1 %empty, label %leave, label %done

leave:
  %last = call i1 @numba_enzyme_region_back(ptr %region)
  br label %done

done:
  ret void
}

; Room for `size` bytes, with what was in `block`, which may be nothing.
define ptr @numba_enzyme_region_extend(ptr %region, ptr %block, i64 %size) noinline {
  %absent = icmp eq ptr %block, null
  br i1 %absent, label %new, label %measure

new:
  %fresh = call ptr @numba_enzyme_region_take(ptr %region, i64 %size)
  ret ptr %fresh

measure:
  %size.p = getelementptr i8, ptr %block, i64 -8
  %whole = load i64, ptr %size.p
  %room = sub i64 %whole, 8
  %enough = icmp ule i64 %size, %room
  br i1 %enough, label %same, label %larger

same:
  ret ptr %block

larger:
  %start = ptrtoint ptr %size.p to i64
  %after = add i64 %start, %whole
  %top = load i64, ptr %region
  %end.p = getelementptr %region, ptr %region, i64 0, i32 1
  %end = load i64, ptr %end.p
  %is.last = icmp eq i64 %after, %top
  %left = sub i64 %end, %start
  %usable = call i64 @llvm.usub.sat.i64(i64 %left, i64 40)
  %fits = icmp ult i64 %size, %usable
  %in.place = and i1 %is.last, %fits
  br i1 %in.place, label %stretch, label %move

stretch:
  %more = add i64 %size, 23
  %larger.whole = and i64 %more, -16
  %next = add i64 %start, %larger.whole
  store i64 %next, ptr %region
  store i64 %larger.whole, ptr %size.p
  ret ptr %block

move:
  %moved = call ptr @numba_enzyme_region_take(ptr %region, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %moved, ptr %block, i64 %room, i1 false)
  ret ptr %moved
}

; How far a region is filled, and back to there.
define i64 @numba_enzyme_region_mark(ptr %region) noinline {
  %top = load i64, ptr %region
  ret i64 %top
}

define void @numba_enzyme_region_reset(ptr %region, i64 %mark) noinline {
  br label %check

check:
  %first.p = getelementptr %region, ptr %region, i64 0, i32 2
  %end.p = getelementptr %region, ptr %region, i64 0, i32 1
  %first = load i64, ptr %first.p
  %end = load i64, ptr %end.p
  %below = icmp ult i64 %mark, %first
  %above = icmp ugt i64 %mark, %end
  %elsewhere = or i1 %below, %above
  br i1 %elsewhere, label %back, label %here

back:
  %last = call i1 @numba_enzyme_region_back(ptr %region)
  br label %check

here:
  store i64 %mark, ptr %region
  ret void
}
