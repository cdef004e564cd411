// A file of failure-atomic sections: opened, mapped at its address, recovered, and its areas.
//
// A process has one open at a time.  What its threads do there is in thread.h.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fase/blocks.h"
#include "fase/direct_memory.h"
#include "fase/format.h"
#include "fase/log.h"
#include "fase/scheme.h"
#include "fase/undo_dependences.h"
#include "medium/descriptor.h"
#include "medium/named_medium.h"
#include "medium/own_process.h"
#include "medium/writer_notice.h"

namespace pawl::fase {

struct FileOptions {
  std::uint64_t heap_bytes = 0;  // of a new file: for its blocks
  int twice_percent = 0;
  bool is_unprotected = false;   // nothing is logged, flushed or fenced
  bool flushes_on_fail = false;  // all is logged, nothing flushed or fenced
  bool undo_is_atlas = false;    // undo logs all that Atlas does
};

// A FASE that a crash interrupted, and that is going to be finished.
struct OpenFase {
  std::uint32_t log;
  FoundLog found;
};

class File {
 public:
  // As pawl_fase_open().
  static Result<std::unique_ptr<File>> open(const char* path, const FileOptions& options);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return file_.path; }
  Header& header() const { return *header_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(header_); }
  std::uint64_t size_bytes() const { return mapped_bytes_; }
  bool holds(const void* at) const {
    return reinterpret_cast<std::uint64_t>(at) - address() < size_bytes();
  }
  DirectMemory& memory() { return *memory_; }
  Blocks& blocks() { return *blocks_; }
  // Whether it survives a loss of power, and not only the process.
  bool is_persistent() const { return is_persistent_; }
  // What a lock's word begins with in this run.
  std::uint32_t lock_word() const { return lock_word_; }
  std::uint64_t fases_recovered() const { return fases_recovered_; }
  // Of this run.
  Scheme scheme() const { return scheme_; }
  // Whether a program with sections has had it open: their locks stay as Pawl stores them.
  bool has_locks_of_sections() const { return header_->scheme.has_sections != 0; }
  bool is_unprotected() const { return scheme_ == Scheme::unprotected; }
  // False: stores stay in the caches, of which something else takes care when the power fails.
  bool flushes() const { return flushes_; }
  // Null unless it is undo's.
  UndoDependences* undo_dependences() const { return undo_dependences_.get(); }
  bool undo_is_atlas() const { return undo_is_atlas_; }
  // The end of a run in which all went well.
  Status end_run();

  // Logs, for threads.  A thread that ends gives its own back.
  static constexpr std::uint32_t kNoLog = ~std::uint32_t{0};
  Result<std::uint32_t> take_log();  // ENOMEM: all are taken
  // What other schemes than iDO have beside the log: kSchemeLogBytes.
  std::byte* scheme_log(std::uint32_t index) const;
  UndoArea& undo_area(std::uint32_t index) const;
  void give_back_log(std::uint32_t index, std::uint64_t next_number, std::uint8_t end_place);
  LogArea& log(std::uint32_t index) const;
  std::uint64_t next_number(std::uint32_t index) const { return logs_[index].next_number; }
  // As Log takes it.
  std::uint8_t end_place(std::uint32_t index) const { return logs_[index].end_place; }

  // In a forked child: lets go of the lock without releasing it.
  void abandon();

 private:
  File(NamedFile file, std::unique_ptr<DirectMemory> memory, bool is_persistent, Scheme scheme,
       bool flushes)
      : file_(std::move(file)),
        base_(std::move(file_.descriptor), file_.path),
        memory_(std::move(memory)),
        is_persistent_(is_persistent),
        scheme_(scheme),
        flushes_(flushes) {}

  static Result<std::unique_ptr<File>> open_once(const char* path, const FileOptions& options);
  static Result<std::unique_ptr<File>> make_guarded(const char* path,
                                                    std::unique_ptr<DirectMemory> memory,
                                                    Scheme scheme, bool flushes);
  Status lock() const;
  void unlock();
  Status exclude_journals();
  Status find(const FileOptions& options);
  Status make(std::uint64_t size_bytes);
  Status map(std::uint64_t address, std::uint64_t size_bytes);
  Status take_space(std::uint64_t offset, std::uint64_t size_bytes);
  Status take_space_again(std::uint64_t size_bytes);
  BlocksArea heap_area();
  Status open_blocks();
  Status recover();
  Status check_root() const;
  Status complete_ends(const std::vector<FoundLog>& found);
  Status check_can_finish(const std::vector<OpenFase>& open) const;
  Status finish_interrupted(const std::vector<OpenFase>& open);
  Status undo_interrupted();
  Result<std::unique_ptr<UndoArea>> read_undo_area(std::uint32_t index);
  Status forget_undo_logs();
  Status begin_run();
  void store_durably(std::uint64_t& word, std::uint64_t value);
  std::uint32_t logs_used() const;

  NamedFile file_;  // but its descriptor
  DescriptorFile base_;
  WriterNotices notices_;
  const OwnProcess process_;
  const std::unique_ptr<DirectMemory> memory_;
  const bool is_persistent_;
  const Scheme scheme_;
  const bool flushes_;
  Header* header_ = nullptr;
  std::uint64_t mapped_bytes_ = 0;
  std::unique_ptr<Blocks> blocks_;
  std::unique_ptr<UndoDependences> undo_dependences_;
  bool undo_is_atlas_ = false;
  std::uint32_t lock_word_ = 0;
  std::uint64_t fases_recovered_ = 0;

  // Of a log that no thread has.
  struct LogState {
    bool is_taken = false;
    std::uint64_t next_number = 0;
    std::uint8_t end_place = Log::kNoPlace;
  };
  std::mutex logs_mutex_;
  std::array<LogState, kThreadsMax> logs_{};
};

// EINVAL: it is none; ENOTSUP: of a newer version; EUCLEAN: damaged.
Status check_identity(const Identity& identity, const std::string& path, std::uint64_t file_bytes);
// Of a file that nobody has open: ENOTSUP, its scheme is not known; EUCLEAN, it was left without
// protection.
Status check_scheme(std::uint64_t scheme, const std::string& path);
// Empty: none is recorded, or it was torn.
std::vector<std::byte> recorded_fingerprint(const Header& header);

}  // namespace pawl::fase
