; What was asked about is one of two arrays that the choice may lead into.
; expect: b
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
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define void @f(ptr %p, ptr %q) {
  %live = alloca [8 x i8], align 8
  br label %loop
loop:
  %r = phi ptr [ %q, %0 ], [ %at, %own ]
  %at = phi ptr [ %p, %0 ], [ %next, %own ]
  %address = ptrtoint ptr %p to i64
  %distance = sub i64 %address, 13194139533312
  %in = icmp ult i64 %distance, 8796093022208
  br i1 %in, label %cut, label %stores
cut:
  store ptr %p, ptr %live
  call void @pawl_fase_cut(ptr @pawl_fase_function.f, i32 0, ptr %live)
  br label %stores
stores:
  %target = call ptr @pawl_fase_volatile_target(ptr %r, i64 8)
  br label %own
own:
  store i64 1, ptr %target
  call void @pawl_fase_stored(ptr %r, i64 8)
  %next = getelementptr i8, ptr %at, i64 -8
  br label %loop
}
