; The called function returns where it did not get the lock, and else releases it.
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

@pawl_fase_regions.f = internal constant [1 x { i32, i16, i16 }] [{ i32, i16, i16 } { i32 1, i16 0, i16 1 }]
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define ptr @f(ptr %lock) {
  %got = call i32 @pawl_fase_mutex_lock(ptr %lock)
  %goes = icmp eq i32 %got, 0
  br i1 %goes, label %section, label %failed
failed:
  ret ptr null
section:
  %p = call ptr @pawl_fase_malloc(ptr null, i64 8)
  %gone = call i32 @pawl_fase_mutex_unlock(ptr %lock, ptr @pawl_fase_function.f, i32 0, ptr null)
  ret ptr %p
}
define i64 @main() {
  %p = call ptr @f(ptr null)
  %x = load i64, ptr %p
  ret i64 %x
}
