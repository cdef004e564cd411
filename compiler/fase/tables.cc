#include "tables.h"

#include "diagnostics.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace pawl::compiler::fase {
namespace {

constexpr llvm::StringLiteral kConstructor = "pawl_fase_register_functions";
constexpr std::uint64_t kTableAlignment = 8;  // as an array's elements

llvm::GlobalVariable* bound_of_section(llvm::Module& module, llvm::StringRef name,
                                       llvm::Type* type) {
  auto* bound = new llvm::GlobalVariable(module, type, /*isConstant=*/false,
                                         llvm::GlobalValue::ExternalLinkage, nullptr, name);
  bound->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return bound;
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

void Tables::register_all() {
  if (tables_.empty()) return;
  const std::string section = kFunctionSection.str();
  llvm::Type* const table = run_time_.function_type();
  run_time_.call_first(kConstructor, run_time_.register_functions(),
                       {bound_of_section(module_, "__start_" + section, table),
                        bound_of_section(module_, "__stop_" + section, table)});
  llvm::SmallVector<llvm::GlobalValue*> kept;
  for (const auto& [function, variable] : tables_) kept.push_back(variable);
  llvm::appendToUsed(module_, kept);
}

}  // namespace pawl::compiler::fase
