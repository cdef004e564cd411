#include "target_intrinsics.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "inline_assembly.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler {
namespace {

// At least a line: some write more than their arguments are wide.  Marking what was not written
// costs a comparison, no more.
constexpr std::uint64_t kBytesMin = 64;
constexpr std::uint64_t kSavedStateBytes = 16384;  // xsave with all that there is
constexpr std::uint64_t kSjljBufferBytes = 40;     // __builtin_setjmp's five words
constexpr std::uint64_t kTrampolineBytes = 40;

// They name a line, and write nothing into it.
constexpr std::array<llvm::StringLiteral, 8> kIntrinsicsThatWriteNothing = {
    "clflush", "clwb", "cldemote", "prefetch", "monitor", "invpcid", "clui", "wait"};

bool name_contains(const llvm::IntrinsicInst& call, llvm::StringRef part) {
  return call.getCalledFunction()->getName().contains(part);
}

// AVX-512's: base, mask, indices, values, scale.  Lanes that the mask leaves out are marked as
// well.
void find_sites_of_scatter(llvm::IntrinsicInst& call, std::vector<StoreSite>& sites) {
  llvm::Value* indices = call.getArgOperand(2);
  auto* index_type = llvm::cast<llvm::FixedVectorType>(indices->getType());
  auto* value_type = llvm::cast<llvm::FixedVectorType>(call.getArgOperand(3)->getType());
  const unsigned lanes = std::min(index_type->getNumElements(), value_type->getNumElements());
  llvm::IRBuilder<> builder(&call);
  if (lanes < index_type->getNumElements()) {
    llvm::SmallVector<int, 8> first(lanes);
    std::iota(first.begin(), first.end(), 0);
    indices = builder.CreateShuffleVector(indices, first);
  }
  llvm::Value* wide =
      builder.CreateSExt(indices, llvm::FixedVectorType::get(builder.getInt64Ty(), lanes));
  llvm::Value* scale = builder.CreateZExt(call.getArgOperand(4), builder.getInt64Ty());
  llvm::Value* offsets = builder.CreateMul(wide, builder.CreateVectorSplat(lanes, scale));
  StoreSite site{&call, builder.CreateGEP(builder.getInt8Ty(), call.getArgOperand(0), offsets)};
  site.bytes = call.getModule()->getDataLayout().getTypeStoreSize(value_type->getElementType());
  site.whole = false;
  sites.push_back(site);
}

std::uint64_t bytes_of_arguments(const llvm::IntrinsicInst& call) {
  if (name_contains(call, "xsave") || name_contains(call, "fxsave")) return kSavedStateBytes;
  std::uint64_t bytes = 0;
  for (const llvm::Value* argument : call.args()) {
    llvm::Type* type = argument->getType();
    if (type->isPointerTy() || !type->isSized()) continue;
    bytes += call.getModule()->getDataLayout().getTypeStoreSize(type).getKnownMinValue();
  }
  return std::max(bytes, kBytesMin);
}

void find_sites_of_pointers(llvm::IntrinsicInst& call, std::uint64_t bytes,
                            std::vector<StoreSite>& sites) {
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    llvm::Value* pointer = call.getArgOperand(i);
    if (!pointer->getType()->isPointerTy() || call.onlyReadsMemory(i)) continue;
    StoreSite site{&call, pointer, bytes, nullptr, /*both_sides=*/true};
    site.whole = false;
    sites.push_back(site);
  }
}

}  // namespace

void find_sites_of_target_intrinsic(llvm::IntrinsicInst& call, std::vector<StoreSite>& sites) {
  const llvm::Intrinsic::ID id = call.getIntrinsicID();
  if (call.onlyAccessesInaccessibleMemory()) return;
  if (id == llvm::Intrinsic::eh_sjlj_setjmp) {
    find_sites_of_pointers(call, kSjljBufferBytes, sites);
  } else if (id == llvm::Intrinsic::init_trampoline) {
    sites.push_back({&call, call.getArgOperand(0), kTrampolineBytes});
  } else if (!llvm::Function::isTargetIntrinsic(id)) {
    if (call.onlyAccessesArgMemory()) {
      warn_untracked(call,
                     "Pawl does not know what " + call.getCalledFunction()->getName() + " writes");
    }
  } else if (name_contains(call, ".scatter")) {
    find_sites_of_scatter(call, sites);
  } else if (name_contains(call, "tilestore")) {
    warn_untracked(call, "Pawl does not track the stores of tiles");
  } else if (llvm::none_of(kIntrinsicsThatWriteNothing,
                           [&](llvm::StringRef part) { return name_contains(call, part); })) {
    find_sites_of_pointers(call, bytes_of_arguments(call), sites);
  }
}

}  // namespace pawl::compiler
