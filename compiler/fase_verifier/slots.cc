#include "slots.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"
#include "memory.h"

namespace pawl::compiler::fase_verifier {
namespace {

constexpr unsigned kLiveInsArgument = 1;  // of a resume form
constexpr unsigned kRegionArgument = 0;

std::uint64_t bytes_of(const llvm::Instruction& by, llvm::Type* type) {
  return by.getDataLayout().getTypeStoreSize(type).getKnownMinValue();
}

std::optional<std::uint64_t> distance(const llvm::Value* pointer, const llvm::Value* from,
                                      const llvm::Instruction& by) {
  const Place place = place_of(pointer, by.getDataLayout());
  if (place.base != from || place.offset < 0) return std::nullopt;
  return static_cast<std::uint64_t>(place.offset);
}

const llvm::Value* base_of(const llvm::Value* pointer, const llvm::Instruction& by) {
  return place_of(pointer, by.getDataLayout()).base;
}

}  // namespace

Slots logged_slots(const Frame& frame) {
  Slots slots;
  if (llvm::isa<llvm::ConstantPointerNull>(frame.live_ins)) return slots;
  const llvm::Value* buffer = base_of(frame.live_ins, *frame.call);
  const llvm::Instruction* at = frame.call->getPrevNode();
  for (const llvm::BasicBlock* block = frame.call->getParent(); block != nullptr;) {
    for (; at != nullptr; at = at->getPrevNode()) {
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(at)) {
        const auto place = distance(store->getPointerOperand(), buffer, *store);
        llvm::Type* type = store->getValueOperand()->getType();
        // The last one counts, and this goes backward.
        if (place)
          slots.try_emplace(*place, Slot{bytes_of(*at, type), type, store->getValueOperand()});
        continue;
      }
      if (const auto* move = llvm::dyn_cast<llvm::MemCpyInst>(at)) {
        const auto place = distance(move->getRawDest(), buffer, *move);
        const auto* length = llvm::dyn_cast<llvm::ConstantInt>(move->getLength());
        if (place && length != nullptr) {
          slots.try_emplace(
              *place, Slot{length->getZExtValue(), nullptr, base_of(move->getRawSource(), *move)});
        }
        continue;
      }
      const auto* call = llvm::dyn_cast<llvm::CallBase>(at);
      // Each frame is stored anew.
      if (call != nullptr && frame_of(*call).has_value()) return slots;
    }
    block = block->getSinglePredecessor();
    if (block != nullptr) at = &block->back();
  }
  return slots;
}

Slot as_loaded(const Slot& stored, llvm::Type* type) {
  const auto* narrow = llvm::dyn_cast_or_null<llvm::IntegerType>(type);
  if (narrow == nullptr || stored.type == type || stored.bytes != kSlotBytes) return stored;
  const std::uint64_t bytes = llvm::divideCeil(narrow->getBitWidth(), 8);
  if (const auto* widened = llvm::dyn_cast<llvm::ZExtInst>(stored.value)) {
    const llvm::Value* value = widened->getOperand(0);
    return value->getType() == type ? Slot{bytes, type, value} : stored;
  }
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(stored.value);
  if (constant == nullptr || !constant->getValue().isIntN(narrow->getBitWidth())) return stored;
  return {bytes, type, llvm::ConstantInt::get(type, constant->getZExtValue())};
}

const llvm::BasicBlock* chosen(const llvm::BasicBlock& block, std::uint64_t region) {
  const llvm::Value* argument = block.getParent()->getArg(kRegionArgument);
  auto* number = llvm::ConstantInt::get(llvm::cast<llvm::IntegerType>(argument->getType()), region);
  if (const auto* choice = llvm::dyn_cast<llvm::SwitchInst>(block.getTerminator())) {
    if (choice->getCondition() != argument) return nullptr;
    return choice->findCaseValue(number)->getCaseSuccessor();
  }
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
  if (branch == nullptr || branch->isUnconditional()) return nullptr;
  const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  if (compare == nullptr || compare->getOperand(0) != argument) return nullptr;
  const auto* with = llvm::dyn_cast<llvm::ConstantInt>(compare->getOperand(1));
  if (with == nullptr) return nullptr;
  const bool value =
      llvm::ICmpInst::compare(number->getValue(), with->getValue(), compare->getPredicate());
  return branch->getSuccessor(value ? 0 : 1);
}

Slots resumed_slots(const llvm::Function& resume, std::uint64_t region) {
  Slots slots;
  const llvm::Value* live_ins = resume.getArg(kLiveInsArgument);
  llvm::SmallSetVector<const llvm::BasicBlock*, 16> blocks;
  blocks.insert(&resume.getEntryBlock());
  for (unsigned i = 0; i < blocks.size(); ++i) {
    const llvm::BasicBlock& block = *blocks[i];
    for (const llvm::Instruction& at : block) {
      if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&at)) {
        const auto place = distance(load->getPointerOperand(), live_ins, at);
        if (place) slots[*place] = {bytes_of(at, load->getType()), load->getType(), load};
      } else if (const auto* move = llvm::dyn_cast<llvm::MemCpyInst>(&at)) {
        const auto place = distance(move->getRawSource(), live_ins, at);
        const auto* length = llvm::dyn_cast<llvm::ConstantInt>(move->getLength());
        if (place && length != nullptr) {
          slots[*place] = {length->getZExtValue(), nullptr, base_of(move->getRawDest(), *move)};
        }
      }
    }
    if (const llvm::BasicBlock* only = chosen(block, region)) {
      blocks.insert(only);
    } else {
      blocks.insert(llvm::succ_begin(&block), llvm::succ_end(&block));
    }
  }
  return slots;
}

}  // namespace pawl::compiler::fase_verifier
