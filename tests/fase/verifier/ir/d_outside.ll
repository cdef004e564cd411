; It was asked before the stores whether they are in the window, and they are not.
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

@pawl_fase_regions.f = internal constant [1 x { i32, i16, i16 }] [{ i32, i16, i16 } { i32 1, i16 8, i16 0 }]
@pawl_fase_function.f = internal global { ptr, ptr, ptr, ptr, ptr, i32, i32 } { ptr @f, ptr @f.resume, ptr null, ptr null, ptr @pawl_fase_regions.f, i32 1, i32 0 }, section "pawl_fase_functions", align 8
define internal void @f.resume(i32 %region, ptr %live_ins, ptr %called, ptr %result) {
  unreachable
}
define void @f() {
  ret void
}
define i32 @main(ptr %at, i1 %other) {
entry:
  %address = ptrtoint ptr %at to i64
  %distance = sub i64 %address, 13194139533312
  %in = icmp ult i64 %distance, 8796093022208
  %last = getelementptr i8, ptr %at, i64 8
  br i1 %in, label %is_in, label %is_out
is_in:
  store i64 1, ptr %at
  store i64 2, ptr %last
  call void @pawl_fase_stored(ptr %at, i64 16)
  br label %joined
is_out:
  store i64 1, ptr %at
  br label %still_out
still_out:
  store i64 2, ptr %last
  br label %joined
joined:
  br i1 %other, label %noted, label %done
noted:
  call void @other()
  br label %done
done:
  ret i32 0
}
