// The slots of a frame: what a function stores for a region, and what its resume form loads.
#pragma once

#include <cstdint>
#include <map>

#include "abi_calls.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler::fase_verifier {

constexpr std::uint64_t kSlotBytes = 8;

struct Slot {
  std::uint64_t bytes = 0;
  llvm::Type* type = nullptr;          // null: the contents of a variable
  const llvm::Value* value = nullptr;  // that is stored or loaded; or the variable
};

using Slots = std::map<std::uint64_t, Slot>;  // by distance from the live-ins' beginning

// What was stored just before the call.
Slots logged_slots(const Frame& frame);
// What is loaded on ways that only the region takes, or others, too.
Slots resumed_slots(const llvm::Function& resume, std::uint64_t region);

// The slot that was stored, seen as what the resume form loads of it: narrow values are widened
// when they are stored, so that no byte of a slot is left from another region.
Slot as_loaded(const Slot& stored, llvm::Type* type);

// Where the resume form goes, for a region, from a block that chooses among them; null where the
// block chooses something else.
const llvm::BasicBlock* chosen(const llvm::BasicBlock& block, std::uint64_t region);

}  // namespace pawl::compiler::fase_verifier
