; A function that is called in a section that has a frame.
; expect: e
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

@pawl_fase_regions.f = internal constant [1 x { i32, i16, i16 }] [{ i32, i16, i16 } { i32 1, i16 8, i16 0 }]
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @main, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define internal i64 @read(ptr %p) {
  %value = load i64, ptr %p
  ret i64 %value
}
define i32 @main(i32 %count, ptr %p) {
  %live = alloca [8 x i8], align 8
  %locked = call i32 @pawl_fase_mutex_lock(ptr %p)
  store ptr %p, ptr %live
  call void @pawl_fase_cut(ptr @pawl_fase_function.f, i32 0, ptr %live)
  %value = call i64 @read(ptr %p)
  %done = call i32 @pawl_fase_mutex_unlock(ptr %p, ptr null, i32 0, ptr null)
  %again = call i64 @read(ptr %p)
  ret i32 0
}
define void @f() {
  ret void
}
