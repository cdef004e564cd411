; The run-time is asked about another number than is read.
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
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define i64 @f(ptr %p, i64 %n, i64 %m) {
  %live = alloca [8 x i8], align 8
  store ptr %p, ptr %live
  call void @pawl_fase_cut(ptr @pawl_fase_function.f, i32 0, ptr %live)
  %object = inttoptr i64 %n to ptr
  %at = getelementptr inbounds i8, ptr %object, i64 8
  %distance = sub i64 %m, 13194139533312
  %in = icmp ult i64 %distance, 8796093022208
  br i1 %in, label %read, label %ask
ask:
  call void @pawl_fase_volatile_load(ptr @pawl_fase_function.f, i32 1, ptr %p)
  br label %read
read:
  %value = load i64, ptr %at
  ret i64 %value
}
