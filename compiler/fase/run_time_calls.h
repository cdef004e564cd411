// The run-time's functions and tables, as src/fase/abi.h declares them.
#pragma once

#include <cstdint>

#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler::fase {

// Where files of failure-atomic sections are mapped: PAWL_FASE_WINDOW and its neighbours.
constexpr std::uint64_t kWindow = 0x0c0000000000;
constexpr std::uint64_t kWindowBytes = 0x080000000000;
constexpr std::uint64_t kLiveInBytesMax = 384;
constexpr std::uint64_t kSlotBytes = 8;  // of live-ins

constexpr llvm::StringLiteral kFunctionSection = "pawl_fase_functions";
constexpr llvm::StringLiteral kKeptSection = "pawl_fase_kept";

enum class RegionKind : std::uint16_t { kAtCut = 0, kAfterUnlock = 1, kAfterCall = 2 };

class RunTime {
 public:
  explicit RunTime(llvm::Module& module) : module_(module) {}

  llvm::FunctionCallee cut();
  llvm::FunctionCallee call();
  llvm::FunctionCallee call_indirect();
  llvm::FunctionCallee returned();
  llvm::FunctionCallee stored();
  llvm::FunctionCallee volatile_target();
  llvm::FunctionCallee volatile_load();
  llvm::FunctionCallee refuse();
  llvm::FunctionCallee refuse_unarmed();
  llvm::FunctionCallee register_functions();
  llvm::FunctionCallee keep();
  llvm::FunctionCallee use_scheme();
  llvm::FunctionCallee undo();
  llvm::FunctionCallee handler_begin();
  llvm::FunctionCallee handler_end();

  // Adds a function of that name to the module that makes this call, of constants, before all
  // constructors of the program: they may open files, and so recover.
  void call_first(llvm::StringRef name, llvm::FunctionCallee call,
                  llvm::ArrayRef<llvm::Value*> constants);

  // struct pawl_fase_region, struct pawl_fase_function and struct pawl_fase_kept.
  llvm::StructType* region_type();
  llvm::StructType* function_type();
  llvm::StructType* kept_type();

 private:
  llvm::FunctionCallee declare(llvm::StringRef name, llvm::Type* result,
                               llvm::ArrayRef<llvm::Type*> parameters, bool is_cold);

  llvm::Module& module_;
};

}  // namespace pawl::compiler::fase
