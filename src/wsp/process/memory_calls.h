// What becomes of a program's system calls that change its address space: all memory that it may
// write is a shared mapping of the memory file, at the same address as in the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "medium/descriptor.h"
#include "tracing/thread.h"
#include "wsp/process/address_space.h"
#include "wsp/process/annex.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/origins.h"

namespace pawl::wsp {

// What is to be done with a call at whose entry a thread stands.
struct CallDecision {
  enum class Kind {
    pass,    // as it is
    answer,  // it is not made, and returns `value`
    change,  // `registers` are made, and its result is taken to finish()
    list,    // it is not made; the list of calls is, and finish_list() says what then
    again,   // the thread makes it again at once: another thread's has to be over first
  };
  Kind kind = Kind::pass;
  std::uint64_t value = 0;
  tracing::Registers registers{};
  std::string refusal;  // what to tell the operator, if anything
};

// A changed call that runs, or one in whose place a list does.
struct RunningCall {
  enum class Kind {
    none,
    map,
    unmap,
    grow_break,
    shrink_break,
    grow,
    move,         // list: a mapping at the new place
    leave,        // list: the old place is given up
    undo,         // list: the new place is
    make_memory,  // list: files' pages become memory
    protect,      // list: and are protected as they are to be
    close_below,  // those below the memory file's descriptor; those above come next
  };
  Kind kind = Kind::none;
  tracing::Registers original{};
  std::uint64_t place = 0;
  std::uint64_t bytes = 0;
  std::uint64_t answer = 0;    // of `undo`
  bool is_made_again = false;  // behind `undo`
  bool was_chosen = false;     // the place was ours to choose
  bool is_memory = false;      // in the memory file, that is
  bool has_room = false;       // which was reserved for a file's bytes
  // Those below are closed, and the thread makes the call again for those above.
  bool is_half_done = false;
  // What is laid there when it is mapped, and noted of it.
  std::shared_ptr<const Descriptor> file;
  std::vector<Origin> origins;
};

class MemoryCalls {
 public:
  // `memory` outlives it.
  MemoryCalls(KeptMemory& memory, int memory_descriptor)
      : memory_(memory), descriptor_(memory_descriptor) {
    begin();
  }

  // A new program: nothing is mapped where we choose.
  void begin();
  // What a restored program has.
  void adopt_mapping(std::uint64_t start, std::uint64_t bytes);
  void adopt_break(std::uint64_t end) { break_ = end; }
  void adopt_origin(const Origin& origin) { origins_.set(origin); }
  std::vector<Origin> origins() const { return origins_.within(0, kUserEnd); }
  std::uint64_t break_end() const { return break_; }

  // `running` is to be kept with the thread until finish(); `list` is filled for Kind::list.  Its
  // `is_half_done` is that of the thread's last call, behind which nothing else happened to it.
  CallDecision enter(pid_t thread, const tracing::Registers& registers, RunningCall& running,
                     CallList& list);
  // At the end of a changed call.  The answer may be Kind::answer or, once more, Kind::list.
  CallDecision finish(pid_t thread, RunningCall& running, std::uint64_t result, CallList& list);
  // When the list has run: Kind::answer, or Kind::list for what is left to do.
  CallDecision finish_list(RunningCall& running, CallList& list);

  int descriptor() const { return descriptor_; }

 private:
  CallDecision map(pid_t thread, const tracing::Registers& call, RunningCall& running);
  CallDecision unmap(const tracing::Registers& call, RunningCall& running);
  CallDecision resize(pid_t thread, const tracing::Registers& call, RunningCall& running,
                      CallList& list);
  CallDecision move(pid_t thread, const tracing::Registers& call, std::uint64_t fixed_place,
                    RunningCall& running, CallList& list);
  CallDecision set_break(const tracing::Registers& call, RunningCall& running);
  CallDecision protect(pid_t thread, const tracing::Registers& call, RunningCall& running,
                       CallList& list);
  CallDecision protect_stack(pid_t thread, const tracing::Registers& call) const;
  CallDecision close_range(pid_t thread, const tracing::Registers& call, RunningCall& running,
                           bool is_half_done) const;
  CallDecision drop(pid_t thread, const tracing::Registers& call);
  CallDecision remove(const tracing::Registers& call);
  CallDecision finish_map(RunningCall& running, std::uint64_t result, CallList& list);
  CallDecision finish_grow(pid_t thread, RunningCall& running, std::uint64_t result,
                           CallList& list);
  CallDecision finish_move(RunningCall& running, CallList& list);
  CallDecision finish_leave(RunningCall& running, CallList& list);
  static CallDecision undo(RunningCall& running, CallList& list, const Status& why);
  // What lies behind the end of a range that is made longer.
  Status note_growth(pid_t thread, std::uint64_t end, std::uint64_t grown_to, std::uint64_t bytes,
                     RunningCall& running) const;
  Status fill(const RunningCall& running) const;
  std::uint64_t choose(const tracing::Registers& call, std::uint64_t bytes, bool is_memory);
  // Is another thread's call at work there?
  bool is_busy(std::uint64_t start, std::uint64_t bytes) const;
  void begin_work(std::uint64_t start, std::uint64_t bytes) { busy_.push_back({start, bytes}); }
  void end_work(std::uint64_t start, std::uint64_t bytes);
  // It is not mapped any more.
  void forget(std::uint64_t start, std::uint64_t bytes);
  // A call that failed: its place with all that lies there, or the room alone that was reserved
  // for a file's bytes, and what is there stays.
  void give_back(const RunningCall& running, bool with_place);
  void give_copies_back(const RunningCall& running) const;
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
  Origins origins_;
  // Where calls run that were changed: at most one for each thread.
  struct Range {
    std::uint64_t start;
    std::uint64_t bytes;
  };
  std::vector<Range> busy_;
};

}  // namespace pawl::wsp
