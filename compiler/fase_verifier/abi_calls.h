// Which calls of a function are the run-time's, as src/fase/abi.h declares them.  The verifier has
// its own view of them: what it shared with compiler/fase/, it could not find wrong.
#pragma once

#include <cstdint>
#include <optional>

#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

namespace pawl::compiler::fase_verifier {

constexpr std::uint64_t kWindow = 0x0c0000000000;       // PAWL_FASE_WINDOW
constexpr std::uint64_t kWindowBytes = 0x080000000000;  // PAWL_FASE_WINDOW_BYTES
constexpr std::uint64_t kLiveInBytesMax = 384;          // PAWL_FASE_LIVE_IN_BYTES_MAX

enum class AbiCall {
  kNone,  // no call of the run-time's
  kCut,
  kCallFrame,  // pawl_fase_call() and pawl_fase_call_indirect()
  kReturn,
  kStored,
  kVolatileTarget,
  kVolatileLoad,
  kRefuse,
  kRefuseUnarmed,  // also in a section without a frame
  kAcquire,
  kTryAcquire,   // has the lock if it returns 0
  kRelease,      // with a region: other locks may be held
  kReleaseLast,  // without: the section ends
  kWait,         // of conditions: one section ends, another begins
  kRoot,
  kSetRoot,
  kQuiet,  // the allocator, making of locks and the like: may be repeated, and ends no region
};

AbiCall abi_call(const llvm::Instruction& instruction);

// How the run-time refuses the instruction just before it, in a section that has a frame, or in
// any: then all that follows is in vain.
AbiCall refusal_of(const llvm::Instruction& instruction);

// The arguments of a call that says where a thread would go on.
struct Frame {
  const llvm::CallBase* call = nullptr;
  const llvm::Value* function = nullptr;  // its struct pawl_fase_function
  const llvm::Value* region = nullptr;
  const llvm::Value* live_ins = nullptr;
};

std::optional<Frame> frame_of(const llvm::Instruction& instruction);

// What a call does that is not the run-time's.
enum class Foreign {
  kNothing,         // to memory: intrinsics for the compiler, arithmetic
  kAccesses,        // reads or writes what its arguments lead to, and can be repeated
  kReadsArguments,  // the same, and writes nothing
  kReads,           // reads, nobody knows what
  kUnknown,         // may begin regions, or do what cannot be repeated
  kEnds,            // does not come back
};

// Of a call whose callee has no body here, or that nobody knows.
Foreign foreign(const llvm::CallBase& call);

// How many bytes are read from each address on that the call is given, and none before it; null:
// nobody knows.
const llvm::Value* length_read(const llvm::CallBase& call);

}  // namespace pawl::compiler::fase_verifier
