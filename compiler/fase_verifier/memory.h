// What an instruction reads and writes, and where that may be.
#pragma once

#include <cstdint>
#include <optional>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/IR/Instructions.h"
#include "new_blocks.h"

namespace pawl::compiler::fase_verifier {

// Values that are looked at for what an address was chosen among.
constexpr unsigned kChoicesMax = 32;

// An address as a value and a constant distance from it.
struct Place {
  const llvm::Value* base = nullptr;
  std::int64_t offset = 0;
};

// A store that goes elsewhere in recovery has a phi of two addresses: this is the program's own.
const llvm::Value* own_address(const llvm::Value* pointer);
Place place_of(const llvm::Value* pointer, const llvm::DataLayout& layout);
// True of what a call of pawl_fase_volatile_target() gave.
bool is_volatile_target(const llvm::Value* value);
// The address without all that is added to it, on all ways: what is checked to be in the window.
// Of an address that is kept as a number it is the number.
const llvm::Value* object_of(const llvm::Value* pointer);

struct Access {
  const llvm::Instruction* by = nullptr;
  // The program's own address, and how far behind it; null: of what nobody knows.
  const llvm::Value* pointer = nullptr;
  std::int64_t offset = 0;
  // What was chosen between that address and another one, for recovery; or null.
  const llvm::Value* choice = nullptr;
  const llvm::Value* length = nullptr;  // null where `bytes` has it
  std::uint64_t bytes = 0;
  bool is_unbounded = false;  // nobody knows how far it reaches
  bool is_root = false;       // that of the file, which only the run-time accesses
};

using Accesses = llvm::SmallVector<Access, 2>;

// Of what may be in persistent memory.  Without what calls do to functions of this module.
Accesses persistent_reads(const llvm::Instruction& instruction);
Accesses persistent_writes(const llvm::Instruction& instruction);
// Of all memory but the thread's stack.
Accesses reads(const llvm::Instruction& instruction);
Accesses writes(const llvm::Instruction& instruction);

// True of a write that in recovery goes elsewhere whatever its address is.
bool goes_nowhere_in_recovery(const Access& write);

// True of variables of the program, the stack and constants.
bool is_never_persistent(const llvm::Value* pointer);
// True of variables of the program, and of those of a thread.
bool is_variable(const llvm::Value* pointer);
// The address of a variable that each thread has for itself.
bool is_of_thread(const llvm::Value* object);
// True of what the run-time's allocator gave.
bool is_always_persistent(const llvm::Value* pointer);
// The call that allocated what the address leads into, and nothing else; or null.
const llvm::Instruction* allocation_of(const llvm::Value* pointer);
bool is_on_stack(const llvm::Value* pointer);
bool is_constant(const llvm::Value* pointer);

// True when all bytes of `inner` are among those of `outer`, if nothing was computed anew in
// between that the inner one depends on.
bool covers(const Access& outer, const Access& inner);
// True of the values that must not be computed anew for that.
bool depends_on(const Access& access, const llvm::Instruction& value);

// Aliasing, for two accesses of which one comes after the other.
class Aliasing {
 public:
  explicit Aliasing(llvm::AAResults& analysis) : same_turn_(analysis), any_turn_(analysis) {
    any_turn_.enableCrossIterationMode();
  }
  ~Aliasing();
  Aliasing(const Aliasing&) = delete;
  Aliasing& operator=(const Aliasing&) = delete;

  // `has_looped`: values may be those of different turns of a loop.
  bool may_overwrite(const Access& write, const Access& read, bool has_looped);
  // What a call of a function of this module reads, which has no regions.
  bool may_overwrite_input_of(const Access& write, const llvm::CallBase& call);

 private:
  // Addresses that are at some distance from those that stand in the function are added to it for
  // the time of the questions: the analysis knows instructions only.
  const llvm::Value* address_of(const Access& access);
  llvm::MemoryLocation location_of(const Access& access, bool has_looped);

  llvm::DenseMap<std::pair<const llvm::Instruction*, const llvm::Value*>, const llvm::Value*>
      known_addresses_;
  llvm::SmallVector<llvm::Instruction*, 8> addresses_;
  NewBlocks new_blocks_;
  llvm::BatchAAResults same_turn_;
  llvm::BatchAAResults any_turn_;
};

}  // namespace pawl::compiler::fase_verifier
