// What a region needs of what was computed before it.
#pragma once

#include <optional>
#include <vector>

#include "globals.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "locals.h"

namespace pawl::compiler::fase {

struct LiveIns {
  std::vector<llvm::Value*> stored;  // in the frame, in this order
  // From those, and from what is the same in each run: in the order in which they can be.
  std::vector<llvm::Instruction*> computed;
  // Variables whose contents follow the stored values in the frame.
  std::vector<llvm::AllocaInst*> locals;
  // And then what global variables hold.
  std::vector<GlobalValueRead> globals;

  // Each at a multiple of kSlotBytes.
  std::uint64_t bytes(const llvm::DataLayout& layout) const;
};

class Liveness {
 public:
  Liveness(llvm::Function& function, const KeptGlobals& kept);

  // What is used after the instruction, but for its own value and another one.
  LiveIns after(const llvm::Instruction& instruction, const llvm::Value& other) const;

 private:
  void step_backwards(llvm::BitVector& live, const llvm::Instruction& instruction) const;
  void use(llvm::BitVector& live, const llvm::Instruction& instruction) const;
  // Live at the end of the block, for the uses of its successors.
  llvm::BitVector at_end(const llvm::BasicBlock& block) const;
  LiveIns collect(llvm::BitVector live) const;
  std::optional<unsigned> number(const llvm::Value* value) const;

  LiveLocals locals_;
  LiveGlobals globals_;
  std::vector<llvm::Value*> values_;
  llvm::DenseMap<const llvm::Value*, unsigned> numbers_;
  llvm::DenseMap<const llvm::BasicBlock*, llvm::BitVector> at_begin_;
};

// Bytes in a frame, of a value of the type and of a variable's contents.
std::uint64_t slot_bytes(llvm::Type* type, const llvm::DataLayout& layout);
std::uint64_t content_bytes(const llvm::AllocaInst& variable, const llvm::DataLayout& layout);

}  // namespace pawl::compiler::fase
