; One of two variables is counted by an atomic operation, and read.
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

@one = internal global i64 0
@two = internal global i64 0
@pawl_fase_regions.f = internal constant [1 x { i32, i16, i16 }] [{ i32, i16, i16 } { i32 1, i16 0, i16 0 }]
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define internal i64 @f(ptr %lock, i1 %which) {
  %at = select i1 %which, ptr @one, ptr @two
  %p = call ptr @pawl_fase_root(ptr null)
  %got = call i32 @pawl_fase_mutex_lock(ptr %lock)
  call void @pawl_fase_cut(ptr @pawl_fase_function.f, i32 0, ptr null)
  store i64 1, ptr %p
  call void @pawl_fase_stored(ptr %p, i64 8)
  %to = call ptr @pawl_fase_volatile_target(ptr %at, i64 8)
  %x = atomicrmw add ptr %to, i64 1 seq_cst
  %unlocked = call i32 @pawl_fase_mutex_unlock(ptr %lock, ptr null, i32 0, ptr null)
  ret i64 %x
}
define i32 @main(ptr %lock, i1 %which) {
  %x = call i64 @f(ptr %lock, i1 %which)
  ret i32 0
}
