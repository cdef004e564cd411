#include "stm/jump.h"

#include <cstddef>

static_assert(sizeof(pawl::bench::stm::Jump) == 64);

asm(R"(
  .text
  .globl _ITM_beginTransaction
  .type _ITM_beginTransaction, @function
_ITM_beginTransaction:
  .cfi_startproc
  leaq 8(%rsp), %rax
  movq (%rsp), %rdx
  subq $72, %rsp
  .cfi_adjust_cfa_offset 72
  movq %rax, (%rsp)
  movq %rdx, 8(%rsp)
  movq %rbx, 16(%rsp)
  movq %rbp, 24(%rsp)
  movq %r12, 32(%rsp)
  movq %r13, 40(%rsp)
  movq %r14, 48(%rsp)
  movq %r15, 56(%rsp)
  movq %rsp, %rsi
  call pawl_stm_begin
  addq $72, %rsp
  .cfi_adjust_cfa_offset -72
  ret
  .cfi_endproc
  .size _ITM_beginTransaction, . - _ITM_beginTransaction

  .globl pawl_stm_resume
  .hidden pawl_stm_resume
  .type pawl_stm_resume, @function
pawl_stm_resume:
  movl %esi, %eax
  movq 16(%rdi), %rbx
  movq 24(%rdi), %rbp
  movq 32(%rdi), %r12
  movq 40(%rdi), %r13
  movq 48(%rdi), %r14
  movq 56(%rdi), %r15
  movq 8(%rdi), %rdx
  movq (%rdi), %rsp
  jmpq *%rdx
  .size pawl_stm_resume, . - pawl_stm_resume
)");
