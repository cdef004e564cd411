#include "run_time_calls.h"

#include "llvm/IR/Attributes.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace pawl::compiler::fase {
namespace {

constexpr int kPriorityBeforeAll = 0;

llvm::Type* pointer(llvm::Module& module) {
  return llvm::PointerType::getUnqual(module.getContext());
}
llvm::Type* nothing(llvm::Module& module) { return llvm::Type::getVoidTy(module.getContext()); }
llvm::Type* u32(llvm::Module& module) { return llvm::Type::getInt32Ty(module.getContext()); }
llvm::Type* u64(llvm::Module& module) { return llvm::Type::getInt64Ty(module.getContext()); }
llvm::Type* u16(llvm::Module& module) { return llvm::Type::getInt16Ty(module.getContext()); }

}  // namespace

llvm::FunctionCallee RunTime::declare(llvm::StringRef name, llvm::Type* result,
                                      llvm::ArrayRef<llvm::Type*> parameters, bool is_cold) {
  llvm::LLVMContext& context = module_.getContext();
  llvm::AttributeList attributes;
  attributes = attributes.addFnAttribute(context, llvm::Attribute::NoUnwind);
  if (is_cold) attributes = attributes.addFnAttribute(context, llvm::Attribute::Cold);
  return module_.getOrInsertFunction(
      name, llvm::FunctionType::get(result, parameters, /*isVarArg=*/false), attributes);
}

llvm::FunctionCallee RunTime::cut() {
  return declare("pawl_fase_cut", nothing(module_),
                 {pointer(module_), u32(module_), pointer(module_)}, false);
}

llvm::FunctionCallee RunTime::call() {
  return declare("pawl_fase_call", nothing(module_),
                 {pointer(module_), u32(module_), pointer(module_)}, false);
}

llvm::FunctionCallee RunTime::call_indirect() {
  return declare("pawl_fase_call_indirect", nothing(module_),
                 {pointer(module_), u32(module_), pointer(module_), pointer(module_)}, false);
}

llvm::FunctionCallee RunTime::returned() {
  return declare("pawl_fase_return", nothing(module_), {}, false);
}

llvm::FunctionCallee RunTime::stored() {
  return declare("pawl_fase_stored", nothing(module_), {pointer(module_), u64(module_)}, false);
}

llvm::FunctionCallee RunTime::volatile_target() {
  return declare("pawl_fase_volatile_target", pointer(module_), {pointer(module_), u64(module_)},
                 true);
}

llvm::FunctionCallee RunTime::volatile_load() {
  return declare("pawl_fase_volatile_load", nothing(module_),
                 {pointer(module_), u32(module_), pointer(module_)}, true);
}

llvm::FunctionCallee RunTime::refuse() {
  return declare("pawl_fase_refuse", nothing(module_),
                 {pointer(module_), u32(module_), pointer(module_)}, true);
}

llvm::FunctionCallee RunTime::refuse_unarmed() {
  return declare("pawl_fase_refuse_unarmed", nothing(module_),
                 {pointer(module_), u32(module_), pointer(module_)}, true);
}

llvm::FunctionCallee RunTime::register_functions() {
  return declare("pawl_fase_register", nothing(module_), {pointer(module_), pointer(module_)},
                 false);
}

llvm::FunctionCallee RunTime::keep() {
  return declare("pawl_fase_keep", nothing(module_), {pointer(module_), pointer(module_)}, false);
}

llvm::FunctionCallee RunTime::use_scheme() {
  return declare("pawl_fase_use_scheme", nothing(module_), {u32(module_)}, false);
}

llvm::FunctionCallee RunTime::undo() {
  return declare("pawl_fase_undo", nothing(module_), {pointer(module_), u64(module_)}, false);
}

llvm::FunctionCallee RunTime::handler_begin() {
  return declare("pawl_fase_handler_begin", pointer(module_), {pointer(module_)}, false);
}

llvm::FunctionCallee RunTime::handler_end() {
  return declare("pawl_fase_handler_end", nothing(module_), {pointer(module_)}, false);
}

void RunTime::call_first(llvm::StringRef name, llvm::FunctionCallee call,
                         llvm::ArrayRef<llvm::Value*> constants) {
  auto* constructor =
      llvm::Function::Create(llvm::FunctionType::get(nothing(module_), /*isVarArg=*/false),
                             llvm::GlobalValue::InternalLinkage, name, module_);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module_.getContext(), "", constructor));
  builder.CreateCall(call, constants);
  builder.CreateRetVoid();
  llvm::appendToGlobalCtors(module_, constructor, kPriorityBeforeAll);
}

llvm::StructType* RunTime::region_type() {
  return llvm::StructType::get(module_.getContext(), {u32(module_), u16(module_), u16(module_)});
}

llvm::StructType* RunTime::function_type() {
  llvm::Type* const address = pointer(module_);
  return llvm::StructType::get(module_.getContext(), {address, address, address, address, address,
                                                      u32(module_), u32(module_)});
}

llvm::StructType* RunTime::kept_type() {
  llvm::Type* const address = pointer(module_);
  return llvm::StructType::get(module_.getContext(), {address, u64(module_), address, address});
}

}  // namespace pawl::compiler::fase
