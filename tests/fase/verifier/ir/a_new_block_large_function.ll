; The same in a function of many blocks, where LLVM's own search gives up.
; expect: none
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare void @pawl_fase_cut(ptr, i32, ptr)
declare void @pawl_fase_stored(ptr, i64)
declare ptr @pawl_fase_volatile_target(ptr, i64)
declare void @pawl_fase_volatile_load(ptr, i32, ptr)
declare i32 @pawl_fase_mutex_lock(ptr)
declare i32 @pawl_fase_mutex_unlock(ptr, ptr, i32, ptr)
declare void @pawl_fase_call(ptr, i32, ptr)
declare void @pawl_fase_return()
declare noalias ptr @pawl_fase_malloc(ptr, i64)
declare ptr @pawl_fase_root(ptr)
declare void @other()

@pawl_fase_regions.f = internal constant [2 x { i32, i16, i16 }] [{ i32, i16, i16 } { i32 1, i16 16, i16 0 }, { i32, i16, i16 } { i32 1, i16 16, i16 0 }]
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 2, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define void @f(i64 %n) {
  %live = alloca [16 x i8], align 8
  %slot = getelementptr i8, ptr %live, i64 8
  %p = call ptr @pawl_fase_root(ptr null)
  br label %body
body:
  %new = call ptr @pawl_fase_malloc(ptr null, i64 8)
  store ptr %p, ptr %live
  store ptr %new, ptr %slot
  call void @pawl_fase_cut(ptr @pawl_fase_function.f, i32 0, ptr %live)
  %other = load ptr, ptr %p
  call void @pawl_fase_volatile_load(ptr @pawl_fase_function.f, i32 0, ptr %other)
  %x = load i64, ptr %other
  store i64 %x, ptr %new
  call void @pawl_fase_stored(ptr %new, i64 8)
  store ptr %p, ptr %live
  store ptr %new, ptr %slot
  call void @pawl_fase_cut(ptr @pawl_fase_function.f, i32 1, ptr %live)
  store ptr %new, ptr %p
  call void @pawl_fase_stored(ptr %p, i64 8)
  switch i64 %n, label %end [
    i64 1, label %b1
    i64 2, label %b2
    i64 3, label %b3
    i64 4, label %b4
    i64 5, label %b5
    i64 6, label %b6
    i64 7, label %b7
    i64 8, label %b8
    i64 9, label %b9
    i64 10, label %b10
    i64 11, label %b11
    i64 12, label %b12
    i64 13, label %b13
    i64 14, label %b14
    i64 15, label %b15
    i64 16, label %b16
    i64 17, label %b17
    i64 18, label %b18
    i64 19, label %b19
    i64 20, label %b20
    i64 21, label %b21
    i64 22, label %b22
    i64 23, label %b23
    i64 24, label %b24
    i64 25, label %b25
    i64 26, label %b26
    i64 27, label %b27
    i64 28, label %b28
    i64 29, label %b29
    i64 30, label %b30
    i64 31, label %b31
    i64 32, label %b32
    i64 33, label %b33
    i64 34, label %b34
    i64 35, label %b35
    i64 36, label %b36
    i64 37, label %b37
    i64 38, label %b38
    i64 39, label %b39
    i64 40, label %b40
  ]
b1:
  br label %end
b2:
  br label %end
b3:
  br label %end
b4:
  br label %end
b5:
  br label %end
b6:
  br label %end
b7:
  br label %end
b8:
  br label %end
b9:
  br label %end
b10:
  br label %end
b11:
  br label %end
b12:
  br label %end
b13:
  br label %end
b14:
  br label %end
b15:
  br label %end
b16:
  br label %end
b17:
  br label %end
b18:
  br label %end
b19:
  br label %end
b20:
  br label %end
b21:
  br label %end
b22:
  br label %end
b23:
  br label %end
b24:
  br label %end
b25:
  br label %end
b26:
  br label %end
b27:
  br label %end
b28:
  br label %end
b29:
  br label %end
b30:
  br label %end
b31:
  br label %end
b32:
  br label %end
b33:
  br label %end
b34:
  br label %end
b35:
  br label %end
b36:
  br label %end
b37:
  br label %end
b38:
  br label %end
b39:
  br label %end
b40:
  br label %end
end:
  ret void
}
