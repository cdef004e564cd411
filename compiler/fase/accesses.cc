#include "accesses.h"

#include "callees.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

namespace pawl::compiler::fase {
namespace {

std::uint64_t bytes_of(const llvm::Instruction& instruction, llvm::Type* type) {
  return instruction.getModule()->getDataLayout().getTypeStoreSize(type).getKnownMinValue();
}

Write write_to(llvm::Use& operand, std::uint64_t bytes, llvm::Value* length = nullptr) {
  return {operand.get(), &operand, bytes, length};
}

Write with_length(llvm::Use& operand, llvm::Value* length) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(length);
  if (constant != nullptr) return write_to(operand, constant->getZExtValue());
  return write_to(operand, 0, length);
}

std::optional<Write> write_of_call(llvm::CallBase& call) {
  if (auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&call)) {
    return with_length(memory->getRawDestUse(), memory->getLength());
  }
  const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call);
  if (intrinsic == nullptr || intrinsic->getIntrinsicID() != llvm::Intrinsic::masked_store) {
    return std::nullopt;
  }
  return write_to(call.getArgOperandUse(1), bytes_of(call, call.getArgOperand(0)->getType()));
}

}  // namespace

std::optional<Write> write_of(llvm::Instruction& instruction) {
  std::optional<Write> found;
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    found = write_to(store->getOperandUse(llvm::StoreInst::getPointerOperandIndex()),
                     bytes_of(*store, store->getValueOperand()->getType()));
  } else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    found = write_to(update->getOperandUse(llvm::AtomicRMWInst::getPointerOperandIndex()),
                     bytes_of(*update, update->getValOperand()->getType()));
  } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    found = write_to(exchange->getOperandUse(llvm::AtomicCmpXchgInst::getPointerOperandIndex()),
                     bytes_of(*exchange, exchange->getNewValOperand()->getType()));
  } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    found = write_of_call(*call);
  }
  if (!found) return std::nullopt;
  if (found->bytes == 0 && found->length == nullptr) return std::nullopt;
  found->provenance = provenance(found->pointer);
  return found;
}

llvm::MemoryLocation location_of(const llvm::Instruction& instruction, const Write& write) {
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    return llvm::MemoryLocation::get(store);
  }
  const auto size = write.bytes != 0 ? llvm::LocationSize::precise(write.bytes)
                                     : llvm::LocationSize::afterPointer();
  return llvm::MemoryLocation(write.pointer, size, instruction.getAAMetadata());
}

std::optional<llvm::MemoryLocation> location_read(const llvm::Instruction& instruction) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    return llvm::MemoryLocation::get(load);
  }
  if (const auto* copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(&instruction)) {
    return llvm::MemoryLocation::getForSource(copy);
  }
  return std::nullopt;
}

bool may_read(const llvm::Instruction& instruction) {
  if (!instruction.mayReadFromMemory()) return false;
  if (const std::optional<llvm::MemoryLocation> location = location_read(instruction)) {
    const Provenance from = provenance(location->Ptr);
    return from != Provenance::kVolatile && from != Provenance::kConstant;
  }
  if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    switch (callee_of(*call)) {
      case Callee::kReads:
      case Callee::kWrites:
      case Callee::kDefined:
        return true;
      default:
        return false;
    }
  }
  return true;
}

}  // namespace pawl::compiler::fase
