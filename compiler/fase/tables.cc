#include "tables.h"

#include <algorithm>

#include "diagnostics.h"
#include "faults.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace pawl::compiler::fase {
namespace {

constexpr std::uint64_t kTableAlignment = 8;  // as an array's elements

// Null, where no object of the program has such a section.
llvm::GlobalVariable* bound_of_section(llvm::Module& module, const llvm::Twine& name,
                                       llvm::Type* type) {
  auto* bound = new llvm::GlobalVariable(module, type, /*isConstant=*/false,
                                         llvm::GlobalValue::ExternalWeakLinkage, nullptr, name);
  bound->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return bound;
}

// Before all constructors, of what the linker has gathered.
void call_with_section(llvm::Module& module, RunTime& run_time, llvm::StringRef constructor,
                       llvm::FunctionCallee call, llvm::StringRef section, llvm::Type* type) {
  run_time.call_first(constructor, call,
                      {bound_of_section(module, "__start_" + section, type),
                       bound_of_section(module, "__stop_" + section, type)});
}

}  // namespace

llvm::Constant* Tables::text(llvm::StringRef text) {
  llvm::Constant* bytes = llvm::ConstantDataArray::getString(module_.getContext(), text);
  auto* variable =
      new llvm::GlobalVariable(module_, bytes->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::PrivateLinkage, bytes, "pawl_fase_text");
  variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return variable;
}

llvm::GlobalVariable* Tables::table(llvm::Function& function) {
  llvm::GlobalVariable*& table = tables_[&function];
  if (table != nullptr) return table;
  // Not constant: what is relocated must not be read-only in code for libraries.
  table = new llvm::GlobalVariable(module_, run_time_.function_type(), /*isConstant=*/false,
                                   llvm::GlobalValue::InternalLinkage, nullptr,
                                   "pawl_fase_function." + function.getName());
  table->setSection(kFunctionSection);
  table->setAlignment(llvm::Align(kTableAlignment));
  // It goes with the copy of the function that the linker takes.
  table->setComdat(function.getComdat());
  return table;
}

void Tables::fill(const FunctionPlan& plan, llvm::Function* resume) {
  llvm::Function& function = *plan.function;
  llvm::LLVMContext& context = module_.getContext();
  const llvm::DataLayout& layout = module_.getDataLayout();
  llvm::GlobalVariable* variable = table(function);
  auto* null = llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context));
  const auto u32 = [&](std::uint64_t number) {
    return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), number);
  };
  const auto u16 = [&](std::uint64_t number) {
    return llvm::ConstantInt::get(llvm::Type::getInt16Ty(context), number);
  };
  std::vector<llvm::Constant*> regions;
  for (const Region& region : plan.regions) {
    regions.push_back(llvm::ConstantStruct::get(
        run_time_.region_type(), {u32(region.line), u16(region.live_ins.bytes(layout)),
                                  u16(static_cast<std::uint16_t>(region.kind))}));
    for (const GlobalValueRead& read : region.live_ins.globals) keep(read);
  }
  llvm::Constant* list = null;
  if (!regions.empty()) {
    auto* type = llvm::ArrayType::get(run_time_.region_type(), regions.size());
    auto* array = new llvm::GlobalVariable(
        module_, type, /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
        llvm::ConstantArray::get(type, regions), "pawl_fase_regions." + function.getName());
    array->setComdat(function.getComdat());
    list = array;
  }
  const llvm::DISubprogram* program = function.getSubprogram();
  const std::string name = source_name(function);
  const llvm::StringRef source =
      program == nullptr ? llvm::StringRef(module_.getSourceFileName()) : program->getFilename();
  const std::uint64_t result_bytes =
      function.getReturnType()->isVoidTy()
          ? 0
          : layout.getTypeStoreSize(function.getReturnType()).getKnownMinValue();
  llvm::Constant* resumption = null;
  if (resume != nullptr) resumption = resume;
  variable->setInitializer(llvm::ConstantStruct::get(
      run_time_.function_type(), {&function, resumption, text(name), text(source), list,
                                  u32(regions.size()), u32(result_bytes)}));
}

void Tables::keep(const GlobalValueRead& read) {
  const llvm::DataLayout& layout = module_.getDataLayout();
  llvm::APInt offset(layout.getIndexTypeSizeInBits(read.first->getType()), 0);
  auto* variable = llvm::cast<llvm::GlobalVariable>(
      read.first->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/false));
  // Of an array that is declared without a length its type tells nothing.
  std::uint64_t& bytes = kept_[variable];
  bytes = std::max({bytes, layout.getTypeAllocSize(variable->getValueType()).getFixedValue(),
                    offset.getZExtValue() + layout.getTypeStoreSize(read.second).getFixedValue()});
}

llvm::GlobalVariable* Tables::kept_table(llvm::GlobalVariable& variable, std::uint64_t bytes) {
  llvm::Type* const u64 = llvm::Type::getInt64Ty(module_.getContext());
  llvm::Constant* entry = llvm::ConstantStruct::get(
      run_time_.kept_type(),
      {&variable, llvm::ConstantInt::get(u64, bytes),
       text(llvm::demangle(variable.getName().str())), text(module_.getSourceFileName())});
  auto* table = new llvm::GlobalVariable(module_, entry->getType(), /*isConstant=*/false,
                                         llvm::GlobalValue::InternalLinkage, entry,
                                         "pawl_fase_kept." + variable.getName());
  table->setSection(kKeptSection);
  table->setAlignment(llvm::Align(kTableAlignment));
  return table;
}

void Tables::register_all(bool has_sections) {
  if (tables_.empty() && !has_sections) return;
  llvm::SmallVector<llvm::GlobalValue*> gathered;
  for (const auto& [function, variable] : tables_) gathered.push_back(variable);
  if (!has_fault("kept")) {
    for (const auto& [variable, bytes] : kept_) gathered.push_back(kept_table(*variable, bytes));
  }
  llvm::appendToUsed(module_, gathered);
  // The last one may already recover.
  call_with_section(module_, run_time_, "pawl_fase_keep_variables", run_time_.keep(), kKeptSection,
                    run_time_.kept_type());
  call_with_section(module_, run_time_, "pawl_fase_register_functions",
                    run_time_.register_functions(), kFunctionSection, run_time_.function_type());
}

}  // namespace pawl::compiler::fase
