// What becomes of a program's system calls that change its address space: all memory that it may
// write is a shared mapping of the memory file, at the same address as in the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "tracing/thread.h"
#include "wsp/process/address_space.h"
#include "wsp/process/annex.h"
#include "wsp/process/kept_memory.h"

namespace pawl::wsp {

// What is to be done with a call at whose entry a thread stands.
struct CallDecision {
  enum class Kind {
    pass,    // as it is
    answer,  // it is not made, and returns `value`
    change,  // `registers` are made, and its result is taken to finish()
    list,    // it is not made; the list of calls is, and `value` returned if none of them failed
  };
  Kind kind = Kind::pass;
  std::uint64_t value = 0;
  tracing::Registers registers{};
  std::string refusal;  // what to tell the operator, if anything
};

// A changed call that runs.
struct RunningCall {
  enum class Kind { none, map, unmap, grow_break, shrink_break, grow };
  Kind kind = Kind::none;
  tracing::Registers original{};
  std::uint64_t place = 0;
  std::uint64_t bytes = 0;
  bool was_chosen = false;  // the place was ours to choose
};

class MemoryCalls {
 public:
  // `memory` outlives it.
  MemoryCalls(KeptMemory& memory, int memory_descriptor)
      : memory_(memory), descriptor_(memory_descriptor) {}

  // A new program: nothing is mapped where we choose.
  void begin();
  // What a restored program has.
  void adopt_mapping(std::uint64_t start, std::uint64_t bytes);
  void adopt_break(std::uint64_t end) { break_ = end; }
  std::uint64_t break_end() const { return break_; }

  // `running` is to be kept with the thread until finish(); `list` is filled for Kind::list.
  CallDecision enter(pid_t thread, const tracing::Registers& registers, RunningCall& running,
                     CallList& list);
  // At the end of a changed call.  The answer may be Kind::answer or, once more, Kind::list.
  CallDecision finish(pid_t thread, const RunningCall& running, std::uint64_t result,
                      CallList& list);
  // What the list for a call that moves memory has left to do.
  void finish_list(const RunningCall& running);

  int descriptor() const { return descriptor_; }

 private:
  CallDecision map(pid_t thread, const tracing::Registers& call, RunningCall& running);
  CallDecision unmap(const tracing::Registers& call, RunningCall& running);
  CallDecision resize(pid_t thread, const tracing::Registers& call, RunningCall& running,
                      CallList& list);
  CallDecision move(pid_t thread, const tracing::Registers& call, std::uint64_t fixed_place,
                    CallList& list);
  CallDecision set_break(const tracing::Registers& call, RunningCall& running);
  CallDecision protect(pid_t thread, const tracing::Registers& call, CallList& list);
  CallDecision drop(const tracing::Registers& call);
  std::uint64_t choose(const tracing::Registers& call, std::uint64_t bytes, bool is_memory);
  // False where another mapping is, or is about to be; true also outside of what we choose from.
  bool reserve(std::uint64_t start, std::uint64_t bytes);
  void mark_used(std::uint64_t start, std::uint64_t bytes);
  void mark_free(std::uint64_t start, std::uint64_t bytes);

  KeptMemory& memory_;
  int descriptor_;
  AddressSpace files_{kFilesStart, kFilesEnd};
  AddressSpace nameless_{kMemoryStart, kMemoryEnd};
  AddressSpace low_{kLowStart, kLowEnd};
  std::uint64_t break_ = kBreakStart;
};

}  // namespace pawl::wsp
