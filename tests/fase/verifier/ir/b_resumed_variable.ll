; What the frame holds is a variable's address, and what is stored there goes nowhere in recovery.
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

@counts = internal global [4 x i64] zeroinitializer
@pawl_fase_regions.f = internal constant [1 x { i32, i16, i16 }] [{ i32, i16, i16 } { i32 1, i16 8, i16 1 }]
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
begin:
  %at = load ptr, ptr %live_ins
  %to = call ptr @pawl_fase_volatile_target(ptr %at, i64 8)
  store i64 1, ptr %to
  ret void
}
define void @f(ptr %lock, i64 %n) {
  %live = alloca [8 x i8], align 8
  %at = getelementptr [4 x i64], ptr @counts, i64 0, i64 %n
  %got = call i32 @pawl_fase_mutex_lock(ptr %lock)
  store ptr %at, ptr %live
  %unlocked = call i32 @pawl_fase_mutex_unlock(ptr %lock, ptr @pawl_fase_function.f, i32 0, ptr %live)
  %to = call ptr @pawl_fase_volatile_target(ptr %at, i64 8)
  store i64 1, ptr %to
  ret void
}
