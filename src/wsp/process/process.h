// A kept program: its threads under ptrace(2), followed from their start to their end.
//
// Calls that change the address space are answered by memory_calls.h, refused ones by refusals.h.
// The program dies when its supervisor does.  One thread, the one that started it, may use this.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "medium/status.h"
#include "wsp/process/annex.h"
#include "wsp/process/cut_call.h"
#include "wsp/process/kept_memory.h"
#include "wsp/process/memory_calls.h"

namespace pawl::wsp {

// How the program ended.
struct ProgramEnding {
  int exit_code = 0;
  int signal = 0;  // 0: it ended by itself
};

struct StartRequest {
  std::string path;
  std::vector<std::string> arguments;  // the first is its name
};

class Process {
 public:
  using Tell = std::function<void(const std::string&)>;

  // Starts the program; on return it is about to run its first instruction, with all of its memory
  // in the file.  `tell` is for what an operator should know.  ENOEXEC and its kin with what
  // execve(2) said; EPERM where tracing is forbidden.
  static Result<std::unique_ptr<Process>> start(KeptMemory& memory, const StartRequest& request,
                                                Tell tell);
  // Over a process that restoring made: all of its threads stand in a PTRACE_EVENT_STOP.
  Process(KeptMemory& memory, pid_t leader, const std::vector<pid_t>& threads, int descriptor,
          Tell tell);
  ~Process();  // kills the program
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t leader() const { return leader_; }
  bool has_ended() const { return threads_.empty(); }
  ProgramEnding ending() const { return ending_; }
  std::vector<pid_t> threads() const;
  // Threads that were made while stop_all() stopped the others, and by whom.
  const std::map<pid_t, pid_t>& made_meanwhile() const { return made_meanwhile_; }
  MemoryCalls& calls() { return calls_; }
  KeptMemory& memory() { return memory_; }
  CallList& list() { return list_; }

  // Says whether something waits that is more urgent than what a thread asked for.
  void set_urgent(std::function<bool()> urgent) { urgent_ = std::move(urgent); }
  bool has_urgent() const { return urgent_ && urgent_(); }
  // ECANCELED where something does, for what is done only where there is time for it.
  Status give_way() const;

  // Takes what has happened, without waiting, but for what is more urgent, and some of it at most:
  // then has_more_events(). SIGCHLD says when there is something.
  void take_events();
  bool has_more_events() const { return has_more_events_; }

  static constexpr std::chrono::milliseconds kStopTimeMax{5000};
  // On return each thread stands in a PTRACE_EVENT_STOP, outside of a changed call.  ESRCH: the
  // program ended meanwhile; ETIME: one, which the text names, does not stop: no other has for so
  // long, or kStopTimeMax is over; ECANCELED: it gave way to what is more urgent.  But for the
  // first of these all go on.
  Status stop_all(std::chrono::milliseconds quiet_max, bool gives_way);
  // But for a program that is stopped (SIGSTOP), which stays so.
  void resume_all();

  // Lets a stopped thread make the calls of list().
  Status run_list(pid_t thread);
  // One call; neither it nor its result passes through the program's memory.
  Status run_call(pid_t thread, AnnexCall& call);

  // Of a stopped thread whose call was cut by that: it makes the rest of it when it goes on;
  // without that the program finds what this puts into `registers`.
  void complete_cut_call(pid_t thread, ProgramMemory& memory, tracing::Registers& registers);
  // Of a stopped thread that waits with a timeout: what it does in a new process.
  void begin_wait_anew(pid_t thread, tracing::Registers& registers) const;

  // Of the process and all that it has; returns when it is gone, or does not go within some
  // seconds.
  void kill();

 private:
  struct Thread {
    bool is_stopped = false;
    std::optional<RunningCall> running;
    std::optional<CutCall> cut;
    bool is_half_done = false;  // its last call
    NotedWait wait;
  };

  void take(pid_t thread, int status);
  void take_stop(pid_t thread);
  void deliver(pid_t thread, int signal);
  void take_event(pid_t thread, int event);
  void enter_call(pid_t thread);
  void leave_call(pid_t thread);
  void pass_cut_call(pid_t thread);
  void end_cut_call(pid_t thread);
  void carry_out(pid_t thread, CallDecision decision, RunningCall running);
  void refuse(const std::string& text);
  void end(pid_t thread, int status);
  void go_on(pid_t thread, int signal = 0);
  Status judge(pid_t thread, Ran ran, int status);
  std::ptrdiff_t running_count() const;

  // A program was executed: its memory is moved into the file.
  Status convert(pid_t thread);

  KeptMemory& memory_;
  pid_t leader_;
  MemoryCalls calls_;
  CallList list_;
  Tell tell_;
  std::map<pid_t, Thread> threads_;
  std::map<pid_t, pid_t> made_meanwhile_;
  std::set<pid_t> untold_;      // threads that stopped before their makers' events
  std::set<std::string> told_;  // refusals, once each
  std::function<bool()> urgent_;
  bool is_stopping_ = false;
  bool has_more_events_ = false;
  ProgramEnding ending_;
};

}  // namespace pawl::wsp
