; What no C compiler is sure to make of a program: called by intrinsics.c.
target triple = "x86_64-pc-linux-gnu"

define void @masked_store(ptr %to, <8 x i1> %mask, <8 x i32> %value) {
  call void @llvm.masked.store.v8i32.p0(<8 x i32> %value, ptr %to, i32 4, <8 x i1> %mask)
  ret void
}

define void @masked_store_bits(ptr %to, i8 %bits) {
  %mask = bitcast i8 %bits to <8 x i1>
  call void @masked_store(ptr %to, <8 x i1> %mask, <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>)
  ret void
}

define void @scatter_bits(ptr %to, i8 %bits) {
  %mask = bitcast i8 %bits to <8 x i1>
  %places = getelementptr i64, ptr %to, <8 x i64> <i64 3, i64 1000, i64 7, i64 77, i64 500, i64 1, i64 4000, i64 2>
  call void @llvm.masked.scatter.v8i16.v8p0(<8 x i16> <i16 1, i16 2, i16 3, i16 4, i16 5, i16 6, i16 7, i16 8>, <8 x ptr> %places, i32 1, <8 x i1> %mask)
  ret void
}

define void @compress_bits(ptr %to, i8 %bits) {
  %mask = bitcast i8 %bits to <8 x i1>
  call void @llvm.masked.compressstore.v8i32(<8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>, ptr %to, <8 x i1> %mask)
  ret void
}

define void @element_copy(ptr %to, ptr %from, i64 %length) {
  call void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr align 4 %to, ptr align 4 %from, i64 %length, i32 4)
  ret void
}

define void @element_move(ptr %to, ptr %from, i64 %length) {
  call void @llvm.memmove.element.unordered.atomic.p0.p0.i64(ptr align 4 %to, ptr align 4 %from, i64 %length, i32 4)
  ret void
}

define void @element_set(ptr %to, i8 %byte, i64 %length) {
  call void @llvm.memset.element.unordered.atomic.p0.i64(ptr align 4 %to, i8 %byte, i64 %length, i32 4)
  ret void
}

define void @set_inline(ptr %to, i8 %byte) {
  call void @llvm.memset.inline.p0.i64(ptr %to, i8 %byte, i64 45, i1 false)
  ret void
}

define void @set_volatile(ptr %to, i8 %byte) {
  call void @llvm.memset.p0.i64(ptr %to, i8 %byte, i64 45, i1 true)
  ret void
}

define void @copy_short_length(ptr %to, ptr %from, i32 %length) {
  call void @llvm.memcpy.p0.p0.i32(ptr %to, ptr %from, i32 %length, i1 false)
  ret void
}

define void @odd_integers(ptr %to, i64 %value) {
  %narrow = trunc i64 %value to i37
  store i37 %narrow, ptr %to, align 1
  %bit = trunc i64 %value to i1
  %next = getelementptr i8, ptr %to, i64 100
  store i1 %bit, ptr %next
  %wide = zext i64 %value to i129
  %shifted = shl i129 %wide, 65
  %last = getelementptr i8, ptr %to, i64 200
  store i129 %shifted, ptr %last, align 1
  ret void
}

define void @aggregate(ptr %to, i64 %value) {
  %one = insertvalue {i8, i64, [3 x i16]} {i8 1, i64 2, [3 x i16] [i16 3, i16 4, i16 5]}, i64 %value, 1
  store {i8, i64, [3 x i16]} %one, ptr %to, align 1
  ret void
}

define void @vector_of_bits(ptr %to, <8 x i32> %value) {
  %small = icmp ult <8 x i32> %value, <i32 5, i32 5, i32 5, i32 5, i32 5, i32 5, i32 5, i32 5>
  store <8 x i1> %small, ptr %to
  ret void
}

define void @other_space(ptr %to, i64 %value) {
  %cast = addrspacecast ptr %to to ptr addrspace(272)
  store i64 %value, ptr addrspace(272) %cast
  ret void
}

define float @atomic_float(ptr %to, float %value) {
  %before = atomicrmw fadd ptr %to, float %value seq_cst
  %max = getelementptr float, ptr %to, i64 5
  %more = atomicrmw fmax ptr %max, float %value seq_cst
  %wraps = getelementptr float, ptr %to, i64 10
  %wrapped = atomicrmw uinc_wrap ptr %wraps, i32 1000 monotonic
  ret float %more
}

define void @unordered(ptr %to, i64 %value) {
  store atomic i64 %value, ptr %to unordered, align 8
  ret void
}

declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, i32, <8 x i1>)
declare void @llvm.masked.scatter.v8i16.v8p0(<8 x i16>, <8 x ptr>, i32, <8 x i1>)
declare void @llvm.masked.compressstore.v8i32(<8 x i32>, ptr, <8 x i1>)
declare void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr, ptr, i64, i32)
declare void @llvm.memmove.element.unordered.atomic.p0.p0.i64(ptr, ptr, i64, i32)
declare void @llvm.memset.element.unordered.atomic.p0.i64(ptr, i8, i64, i32)
declare void @llvm.memset.inline.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i32(ptr, ptr, i32, i1)
