; No node of a list is what was just allocated, and nobody was told of.
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

@pawl_fase_regions.f = internal constant [1 x { i32, i16, i16 }] [{ i32, i16, i16 } { i32 1, i16 16, i16 0 }]
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define void @f(i64 %n) {
entry:
  %live = alloca [16 x i8], align 8
  %slot = getelementptr i8, ptr %live, i64 8
  %p = call ptr @pawl_fase_root(ptr null)
  store ptr %p, ptr %live
  %new = call ptr @pawl_fase_malloc(ptr null, i64 8)
  store ptr %new, ptr %slot
  call void @pawl_fase_cut(ptr @pawl_fase_function.f, i32 0, ptr %live)
  %first = load ptr, ptr %p
  br label %loop
loop:
  %node = phi ptr [ %first, %entry ], [ %next, %loop ]
  call void @pawl_fase_volatile_load(ptr @pawl_fase_function.f, i32 0, ptr %node)
  %next = load ptr, ptr %node
  store ptr %next, ptr %new
  call void @pawl_fase_stored(ptr %new, i64 8)
  %more = icmp ne ptr %next, null
  br i1 %more, label %loop, label %end
end:
  ret void
}
