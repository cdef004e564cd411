#include "store_sites.h"

#include <algorithm>

#include "inline_assembly.h"
#include "known_calls.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "skip.h"
#include "target_intrinsics.h"

namespace pawl::compiler {
namespace {

constexpr std::uint64_t kArgumentListBytes = 32;  // va_list; 24 on x86-64, 32 on aarch64

// What a masked or compressing store writes at most.
std::uint64_t bytes_of(const llvm::DataLayout& layout, llvm::Type* type) {
  return layout.getTypeStoreSize(type).getKnownMinValue();
}

void find_sites_of_intrinsic(llvm::IntrinsicInst& call, std::vector<StoreSite>& sites) {
  const llvm::DataLayout& layout = call.getModule()->getDataLayout();
  if (auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&call)) {
    StoreSite site{&call, memory->getRawDest()};
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(memory->getLength())) {
      site.bytes = constant->getZExtValue();
      if (site.bytes == 0) return;
    } else {
      site.length = memory->getLength();
    }
    sites.push_back(site);
    return;
  }
  StoreSite site{&call};
  site.whole = false;
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_compressstore:
    case llvm::Intrinsic::vp_store:
      site.pointer = call.getArgOperand(1);
      site.bytes = bytes_of(layout, call.getArgOperand(0)->getType());
      break;
    case llvm::Intrinsic::masked_scatter:
    case llvm::Intrinsic::vp_scatter:
      site.pointer = call.getArgOperand(1);
      site.bytes = bytes_of(layout, call.getArgOperand(0)->getType()->getScalarType());
      break;
    case llvm::Intrinsic::vastart:
    case llvm::Intrinsic::vacopy:
      site.pointer = call.getArgOperand(0);
      site.bytes = kArgumentListBytes;
      break;
    case llvm::Intrinsic::vaend:
    case llvm::Intrinsic::lifetime_start:
    case llvm::Intrinsic::lifetime_end:
    case llvm::Intrinsic::invariant_start:
    case llvm::Intrinsic::invariant_end:
    case llvm::Intrinsic::prefetch:
      return;
    default:
      find_sites_of_target_intrinsic(call, sites);
      return;
  }
  sites.push_back(site);
}

void find_sites_of_call(llvm::CallBase& call, std::vector<StoreSite>& sites) {
  if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
    find_sites_of_intrinsic(*intrinsic, sites);
    return;
  }
  if (call.isInlineAsm()) {
    find_sites_of_assembly(call, sites);
    return;
  }
  // Nothing can follow a musttail call, and nothing is needed: its own functions are instrumented,
  // and libc's replaced by their wrappers.
  if (call.isMustTailCall()) return;
  find_sites_of_known_call(call, sites);
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    // The callee stores its result there, and it may be a function that was not compiled by us.
    if (llvm::Type* type = call.getParamStructRetType(i)) {
      sites.push_back(
          {&call, call.getArgOperand(i), bytes_of(call.getModule()->getDataLayout(), type)});
    }
  }
}

void find_sites(llvm::Instruction& instruction, std::vector<StoreSite>& sites) {
  const llvm::DataLayout& layout = instruction.getModule()->getDataLayout();
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    sites.push_back({store, store->getPointerOperand(),
                     bytes_of(layout, store->getValueOperand()->getType()), nullptr,
                     store->isAtomic()});
  } else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    sites.push_back({update, update->getPointerOperand(),
                     bytes_of(layout, update->getValOperand()->getType()), nullptr, true});
  } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    sites.push_back({exchange, exchange->getPointerOperand(),
                     bytes_of(layout, exchange->getNewValOperand()->getType()), nullptr, true});
  } else if (auto* argument = llvm::dyn_cast<llvm::VAArgInst>(&instruction)) {
    sites.push_back({argument, argument->getPointerOperand(), kArgumentListBytes});
  } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    find_sites_of_call(*call, sites);
  }
}

// The segments fs and gs: no plain address tells where they lie.
constexpr unsigned kSegmentsFirst = 256;
constexpr unsigned kSegmentsEnd = 270;

bool is_markable(const StoreSite& site) {
  if (is_never_in_mapping(site.pointer)) return false;
  const unsigned space = site.pointer->getType()->getPointerAddressSpace();
  if (space >= kSegmentsFirst && space < kSegmentsEnd) {
    warn_untracked(*site.instruction, "Pawl does not track stores relative to a segment register");
    return false;
  }
  return true;
}

}  // namespace

std::vector<StoreSite> find_store_sites(llvm::Function& function) {
  std::vector<StoreSite> found;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (instruction.mayWriteToMemory()) find_sites(instruction, found);
  }
  std::erase_if(found, [](const StoreSite& site) { return !is_markable(site); });
  return found;
}

bool is_barrier(const llvm::Instruction& instruction) {
  if (instruction.isAtomic() || instruction.isVolatile()) {
    // The element-wise atomic copies are atomic in each element and order nothing.
    return !llvm::isa<llvm::AtomicMemIntrinsic>(instruction);
  }
  if (instruction.mayThrow(/*IncludePhaseOneUnwind=*/true)) return true;
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return false;
  if (call->isInlineAsm()) return true;
  if (call->onlyReadsMemory()) return false;  // ordered loads are not "only reads"
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call)) {
    return !intrinsic->isAssumeLikeIntrinsic() && !llvm::isa<llvm::AnyMemIntrinsic>(intrinsic) &&
           !intrinsic->onlyAccessesArgMemory();
  }
  return !is_known_copy(*call);
}

}  // namespace pawl::compiler
