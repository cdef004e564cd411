#include "fase/recovered_fase.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "fase/program.h"

namespace pawl::fase {
namespace {

std::string describe(const pawl_fase_function& function, std::uint32_t region) {
  return std::string(function.name) + " (" + function.source + ":" +
         std::to_string(function.regions[region].line) + ")";
}

Status foreign(const std::string& what) {
  return Status::failure(EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS,
                         "a log is damaged: it names " + what +
                             ", which this program has not, though it has the build-id");
}

}  // namespace

Status check_chain(std::span<const FoundFrame> chain) {
  for (const FoundFrame& frame : chain) {
    const pawl_fase_function* const function = Program::own().function(frame.function);
    if (function == nullptr) return foreign("function " + std::to_string(frame.function));
    if (frame.region >= function->region_count) {
      return foreign("region " + std::to_string(frame.region) + " of " + function->name);
    }
    const pawl_fase_region& region = function->regions[frame.region];
    if (region.live_in_bytes > frame.live_ins.size() ||
        region.live_in_bytes > PAWL_FASE_LIVE_IN_BYTES_MAX ||
        function->result_bytes > PAWL_FASE_LIVE_IN_BYTES_MAX)
      return foreign("live-ins of " + describe(*function, frame.region));
  }
  return {};
}

RecoveredFase::RecoveredFase(File& file, std::uint32_t log, const FoundLog& found,
                             RecoveryLocks& locks)
    : locks_(locks),
      function_(Program::own().function(found.chain.back().function)),
      region_(found.chain.back().region),
      live_ins_(found.chain.back().live_ins) {
  thread_->adopt(file, log, found, *this);
}

std::string RecoveredFase::where() const { return describe(*function_, region_); }

Status RecoveredFase::retake_locks() {
  locks_.enter();
  for (const std::uint64_t lock : thread_->locks()) {
    if (locks_.take(*this, lock, Patience::none) != RecoveryLocks::Outcome::taken) {
      return Status::failure(
          EUCLEAN, PAWL_ERROR_DAMAGED_SECTIONS,
          "the logs are damaged: two threads hold the same lock, one in " + where());
    }
  }
  return {};
}

void RecoveredFase::run() {
  Thread::set_current(thread_.get());
  if (setjmp(out_) == 0) resume();
  Thread::set_current(nullptr);
  locks_.leave(*this, outcome_.ok());
  if (outcome_.ok()) thread_->detach();
}

void RecoveredFase::resume() {
  using Values = std::array<std::byte, PAWL_FASE_LIVE_IN_BYTES_MAX>;
  alignas(std::max_align_t) std::array<Values, 2> results;
  alignas(std::max_align_t) Values live_ins;
  std::copy_n(live_ins_.begin(), std::min(live_ins_.size(), live_ins.size()), live_ins.begin());
  const pawl_fase_function* function = function_;
  std::uint32_t region = region_;
  for (std::size_t level = 0;; ++level) {
    const void* const call_result = level == 0 ? nullptr : results[(level + 1) % 2].data();
    function->resume(region, live_ins.data(), call_result, results[level % 2].data());
    if (thread_->depth() == 0) {
      give_up(Status::failure(ENOTRECOVERABLE, PAWL_ERROR_SECTIONS_UNFINISHED,
                              std::string(function->name) +
                                  " returned with locks held, and nothing says where its caller "
                                  "goes on"));
      leave();
    }
    const Site caller = thread_->return_in_recovery();
    function = caller.function;
    region = caller.region;
    const auto bytes = caller.bytes();
    std::copy(bytes.begin(), bytes.end(), live_ins.begin());
  }
}

int RecoveredFase::lock(std::uint64_t lock, Patience patience) {
  switch (locks_.take(*this, lock, patience)) {
    case RecoveryLocks::Outcome::taken:
      return 0;
    case RecoveryLocks::Outcome::busy:
      return EBUSY;
    case RecoveryLocks::Outcome::timed_out:
      return ETIMEDOUT;
    case RecoveryLocks::Outcome::never:
      break;
  }
  give_up(Status::failure(EDEADLK, PAWL_ERROR_SECTIONS_UNFINISHED,
                          "a lock is never released: it is held by a section that cannot be "
                          "finished either"));
  leave();
}

void RecoveredFase::unlock(std::uint64_t lock) { locks_.release(*this, lock); }

void* RecoveredFase::sink(std::size_t count) {
  if (void* const room = sink_.room(count)) return room;
  give_up(Status::no_memory("no memory for what a section stores into memory of the program"));
  leave();
}

void RecoveredFase::leave() { std::longjmp(out_, 1); }

}  // namespace pawl::fase
