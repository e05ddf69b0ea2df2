; A function of Numba's own library, as Enzyme sees it.

; Whether an array can take a new shape without a copy: here, whether it is contiguous. Its strides are then those of the new shape.
; Arguments: dimensions, shape and strides of the old array, the same of the new one, size of an item, and whether the order is F.
define i32 @numba_attempt_nocopy_reshape(i64 %nd, ptr %dims, ptr %strides, i64 %newnd, ptr %newdims, ptr %newstrides, i64 %itemsize, i32 %f) {
  %forder = icmp ne i32 %f, 0
  br i1 %forder, label %no, label %check

check:
  %i = phi i64 [ %nd, %0 ], [ %axis, %fits ]
  %expected = phi i64 [ %itemsize, %0 ], [ %next, %fits ]
  %checked = icmp eq i64 %i, 0
  br i1 %checked, label %fill, label %compare

compare:
  %axis = sub i64 %i, 1
  %dimptr = getelementptr i64, ptr %dims, i64 %axis
  %dim = load i64, ptr %dimptr, !tbaa !3
  %strideptr = getelementptr i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %strideptr, !tbaa !3
  %next = mul i64 %expected, %dim
  %single = icmp eq i64 %dim, 1
  %equal = icmp eq i64 %stride, %expected
  %good = or i1 %single, %equal
  br i1 %good, label %fits, label %no

fits:
  br label %check

fill:
  %k = phi i64 [ %newnd, %check ], [ %newaxis, %set ]
  %step = phi i64 [ %itemsize, %check ], [ %newstep, %set ]
  %filled = icmp eq i64 %k, 0
  br i1 %filled, label %yes, label %set

set:
  %newaxis = sub i64 %k, 1
  %newdimptr = getelementptr i64, ptr %newdims, i64 %newaxis
  %newdim = load i64, ptr %newdimptr, !tbaa !3
  %newstrideptr = getelementptr i64, ptr %newstrides, i64 %newaxis
  store i64 %step, ptr %newstrideptr, !tbaa !3
  %newstep = mul i64 %step, %newdim
  br label %fill

yes:
  ret i32 1

no:
  ret i32 0
}

; Says that a length is an integer.
!0 = !{!"numba_enzyme"}
!1 = !{!"omnipotent char", !0, i64 0}
!2 = !{!"long", !1, i64 0}
!3 = !{!2, !2, i64 0}
