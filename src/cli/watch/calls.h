// What a watched program's system calls mean for the files that it maps.
//
// Follows the preload face's own books (src/preload/tracked_files.h): a process *holds* a file from
// its first shared mapping of it through an O_RDWR descriptor until it has neither a mapping nor a
// descriptor of it, or gives up its lock while it is not mapped.  A forked child *inherits* it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/watch/code_map.h"
#include "cli/watch/facts.h"
#include "cli/watch/globs.h"
#include "cli/watch/left_out.h"
#include "cli/watch/process_start.h"
#include "cli/watch/sandbox.h"
#include "cli/watch/tracer.h"
#include "mapping/options.h"

namespace pawl::cli::watch {

class Calls final : public Observer {
 public:
  // `face` is the path of the preload library; `options` are those that Pawl will have.
  Calls(const Globs& globs, Libraries& libraries, std::string face, const Options& options)
      : globs_(globs), libraries_(libraries), face_(std::move(face)), options_(options) {}

  void process_began(pid_t process, pid_t parent) override;
  void process_borrows_memory(pid_t process) override;
  void process_executed(pid_t process) override;
  void process_dies(pid_t process, pid_t thread) override;
  void process_ended(pid_t process) override;
  Wants call_entered(const Call& call) override;
  void call_returned(const Call& call, std::uint64_t result) override;
  void call_failed(const Call& call, int error_number) override;
  void time_passed() override;

  // After the program: looks once more who else has its files.
  ProgramFacts finish(const Ending& ending);

 private:
  struct Window {
    FileKey file;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool is_read_only = false;  // through a descriptor that is not O_RDWR: not one of Pawl's
    bool is_synchronised = false;
    std::uint64_t serial = 0;
  };
  // When to look next, while nothing happens.
  struct Waits {
    std::chrono::steady_clock::time_point next = std::chrono::steady_clock::now() + kFirstLookAfter;
    std::chrono::steady_clock::duration wait = kFirstLookAfter;
    bool is_over();  // once for each wait: the next one begins
  };
  // Holding has it in the end.
  struct Life {
    std::chrono::steady_clock::time_point mapped;
    std::chrono::steady_clock::time_point began;         // its last synchronisation
    std::chrono::steady_clock::time_point synchronised;  // the end of that
    std::chrono::steady_clock::duration waited{};        // in those before it
    std::chrono::steady_clock::time_point let_go;        // when its last window went
    std::uint64_t synchronisations = 0;
    std::uint64_t writes_after = 0;
    bool shows_stores = false;   // its file system does
    bool has_shown_all = false;  // the last synchronisation wrote out all that it was for
    bool has_stores_after = false;
    bool follows_unlocking = false;
    LeftOut left_out;
    std::map<FileKey, std::uint64_t> others_synchronised;  // since its own, while it had changes
    std::optional<std::chrono::steady_clock::time_point> behind_since;  // when that was seen
    std::chrono::steady_clock::duration longest_behind{};
    Waits looks;
    bool is_behind() const { return writes_after > 0 || has_stores_after; }
  };
  // What a forked child does with a mapping that it inherited.
  struct Inheritance {
    bool is_looked_at = false;
    bool is_touched = false;  // a page of it was present
    bool is_stored_to = false;
    // Since the file was written out for it:
    bool is_written_out = false;
    std::uint64_t changes = 0;            // by calls, before that
    std::optional<std::uint64_t> faults;  // of the holder, before that
    Waits looks;
  };
  // A mapping that was made while the process had others of the file.
  struct SecondMapping {
    FileKey file;
    pid_t thread = 0;
    std::uint64_t serial = 0;
    std::chrono::steady_clock::time_point made;
    std::string example;
  };
  struct Process {
    explicit Process(Libraries& libraries) : code(libraries) {}
    CodeMap code;
    std::vector<Window> windows;
    std::vector<SecondMapping> second_mappings;  // not judged yet
    std::map<FileKey, Life> lives;               // of what it maps
    SandboxVerdict sandbox;
    std::set<FileKey> holds;
    std::set<FileKey> inherits;
    std::map<FileKey, Inheritance> inheritances;
    struct Opened {
      FileKey file;
      bool is_stream = false;
    };
    std::map<int, Opened> opened;  // of what it opened itself, the last under each number
    std::optional<FileKey> last_synchronised;
    std::string executable;
    std::string obstacle_text;
    Sight obstacle = Sight::no_preload;  // when there is a text
    StartEnvironment environment;
    RootDirectory root;  // when it was started
  };
  enum class Effect { changes, synchronises };
  // What a call means is looked at when it is entered, while all is as the call finds it, and
  // counts when it has succeeded.
  struct Entered {
    std::vector<std::function<void()>> once_done;
    std::vector<std::function<void(int)>> if_failed;  // with the errno
  };
  struct OpenFile {
    FileKey key;
    std::uint64_t size_bytes = 0;
    std::uint64_t links = 0;
    bool is_regular = false;
    int flags = 0;
    bool is_read_write() const;
    bool is_writable() const;
    bool writes_durably() const;
  };

  Wants look_at_entry(const Call& call);
  // At once where no call is being entered.
  void once_done(std::function<void()> effect);

  // What each kind of call means.  `name` is the call's, as it stands in the answer.
  Wants map_entered(const Call& call);
  void mapped(const Call& call, std::uint64_t address);
  void unmapped(const Call& call, std::uint64_t begin, std::uint64_t end);
  void unmapped_by_call(const Call& call);
  // Those of which the first mapping went by this thread's call are judged.
  // Before its windows go, or some of them.
  void look_for_stores(Process& process, pid_t thread, std::uint64_t begin, std::uint64_t end);
  static bool can_show_stores(const Process& process, const Window& window);
  // The files that the process changed after its last synchronisation of them, as far as that is
  // seen, without `besides`.
  std::set<FileKey> files_behind(const Call& call, const FileKey& besides);
  void look_meanwhile(const Window& window, Life& life, pid_t thread);
  static void note_synchronised_life(Life& life, std::chrono::steady_clock::time_point began);
  // What a child inherited, before it goes and now and then.
  void look_at_inherited(pid_t number, pid_t thread, std::uint64_t begin, std::uint64_t end);
  void look_at_inherited(pid_t number, pid_t thread, const Window& window,
                         Inheritance& inheritance);
  // True where the file's holder did not store since it was written out.
  bool is_at_rest(pid_t holder, const FileKey& file, const Inheritance& inheritance);
  void write_out_for(Inheritance& inheritance, pid_t child, const FileKey& file);
  static bool is_untouched(const Process& process, const FileKey& file);
  void note_ahead(Process& caller, const FileKey& file, const std::set<FileKey>& behind);
  void life_ended(Process& process, const FileKey& file);
  void end_lives(Process& process);
  void judge_second_mappings(Process& process, pid_t thread);
  // The others are refused.
  void refuse_second_mappings(Process& process);
  void sandboxed(const Call& call);
  void see_sandbox(const Process& process, const FileKey& file);
  void count_descriptors(const Call& call);
  void count_journals(const Call& call, const FileKey& file);
  void see_size_limit(const Call& call, const FileKey& file, std::uint64_t file_bytes);
  Wants remap_entered(const Call& call);
  void remapped(const Call& call, std::uint64_t address);
  void range_synchronised(const Call& call);
  void window_refused(const Call& call, Sight sight, const char* name);
  void synchronised(const Call& call, const char* name, int descriptor);
  void all_synchronised(const Call& call, const char* name);
  void range_hinted(const Call& call);
  // `why`: what the call itself is wrong in, or empty.
  void note_if_it_fails(const Call& call, const FileKey& file, const char* name, const char* why);
  void changed(const Call& call, const char* name, int descriptor);
  // A few bytes that are there already: so a program touches the time of a file.
  bool writes_what_is_there(const Call& call, const OpenFile& open);
  // A file that is not mapped: it may belong to one that is.
  void changed_beside(const Call& call, const OpenFile& open, const char* name, int descriptor);
  void made_directory(const Call& call);
  bool has_room_for_random(std::size_t count);
  void note_unmapped(const Call& call, const FileKey& file, const std::string& path);
  void protected_anew(const Call& call);
  void truncated_by_name(const Call& call);
  void allocated(const Call& call);
  void shared_blocks(const Call& call);
  void submitted(const Call& call);
  void opened(const Call& call, std::uint64_t result);
  void retire(const FileKey& file);
  void note_date();
  void name_removed(const Call& call, int directory, std::uint64_t path);
  bool name_replaced(const Call& call, int directory, std::uint64_t path);
  Wants rename_entered(const Call& call);
  void renamed(const Call& call);
  void message_sent(const Call& call, std::uint64_t header);
  void unlocked(const Call& call);
  void duplicated(const Call& call);
  void flags_asked(const Call& call);
  // From now on, beneath a number.
  void note_stream(const Call& call, int descriptor, const FileKey& file);
  void unshared(const Call& call, const char* name);
  void left_session(const Call& call);
  void ends_itself(const Call& call);

  // A change, or a wish for durability, by this process: counted when it holds the file, and told
  // of when another does.  True when it holds it.
  bool is_by_holder(const Call& call, const FileKey& file, const std::string& what,
                    Effect effect = Effect::changes);
  void judge_origin(const Call& call, const FileKey& file, const std::string& what);
  void note_changed(const FileKey& file, const char* name);
  static void holder_let_go(FileFacts& facts);
  // Without a range: all of the file.
  void note_synchronised(const Call& call, const FileKey& file, const char* name,
                         std::optional<LeftOut::Range> range = {});
  static void note_range(const Process& caller, pid_t thread, const FileKey& file, Life& life,
                         LeftOut::Range range);
  void note_in_one_go(Process& caller, const FileKey& file);
  void add_holder(const Call& call, const OpenFile& open, FileFacts& facts);
  FileFacts* facts_of_new(const Call& call, const OpenFile& open, int descriptor);
  void judge_start(const Call& call, const FileKey& file);
  void add_name(FileFacts& facts, const std::string& name);
  void look_for_outsiders(const std::set<FileKey>& files);
  void see(const FileKey& file, Sight sight, const std::string& example);
  // What this file system refuses, another one may have.
  void see_also_if_unsupported(const FileKey& file, Sight sight, const std::string& example);
  std::string said_of(const Call& call, const std::string& what) const;

  Process& process(pid_t number);
  // `besides`: a descriptor that was opened just now, and so held nothing before.
  bool holds_still(pid_t number, Process& process, const FileKey& file, int besides = -1);
  std::vector<FileKey> still_held(pid_t number, Process& process);
  bool inherits_still(pid_t number, Process& process, const FileKey& file);
  // Another process that holds the file now; 0 when there is none.
  pid_t other_holder(pid_t number, const FileKey& file);
  enum class Kind { regular, any };
  std::optional<OpenFile> open_file(pid_t thread, int descriptor, Kind kind = Kind::regular) const;
  // A number beneath a stream: one that fopen(3) got, or that of a standard one.
  bool is_of_stream(const Call& call, int descriptor);
  // As the thread names a file; empty where it has no such name.
  static std::string path_of(const Call& call, int directory, std::uint64_t path);
  std::optional<FileKey> known_file_at(const Call& call, int directory, std::uint64_t path,
                                       bool follow, std::uint64_t* links) const;
  bool is_known(const FileKey& file) const { return facts_.files.contains(file); }

  const Globs& globs_;
  Libraries& libraries_;
  std::string face_;
  const Options options_;
  std::map<FileKey, std::uint64_t> journal_bytes_;  // with which each one begins
  std::uint64_t serial_ = 0;                        // of the last window
  ino_t retired_ = 0;
  ProgramFacts facts_;
  std::map<pid_t, Process> processes_;
  Entered* entering_ = nullptr;        // the call that is looked at
  std::map<pid_t, Entered> in_calls_;  // by the thread
  std::size_t scans_ = 0;
  std::size_t looks_for_stores_ = 0;
  std::size_t looks_meanwhile_ = 0;
  std::chrono::steady_clock::time_point next_look_meanwhile_;
  std::size_t looks_at_children_ = 0;
  std::size_t touches_ = 0;
};

}  // namespace pawl::cli::watch
