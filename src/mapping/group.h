// Files that commit together: one record, in the group's journal, holds what changed in all of
// them.
//
// The group has a file of its own, which is empty: it names the group, and its journal stands
// beside it.  Each file of the group has a side file, too, which names the group and holds the
// writer's lock (docs/journal-format.md).  After a crash each file can be recovered alone, and
// opening the group recovers them all.
//
// Threads: every public function may be called from any thread; one lock orders them and all calls
// on the files' mappings.
#pragma once

#include <vector>

#include "journal/group_files.h"
#include "mapping/commit_log.h"
#include "mapping/mapping.h"
#include "medium/own_process.h"

namespace pawl {

// The name under which Medium::open_sibling() of `viewer` finds the file.
std::string name_as_seen_from(const Medium& viewer, const Medium& file);

class Group {
 public:
  // Recovers what a crash left of the group, and begins a new journal.  `medium` is that of the
  // group's file; the options are for the journal and for every file that joins.  EBUSY: another
  // process has the group.  EINVAL: the file is not empty.
  static Result<std::shared_ptr<Group>> open(std::unique_ptr<Medium> medium,
                                             const Options& options);
  // The same by the name of the group's file, which is made where there is none.
  static Result<std::shared_ptr<Group>> open(const std::string& path, const Options& options);
  static Result<std::unique_ptr<Medium>> open_medium(const std::string& path);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // As Mapping::open(), of a file that is of the group until the mapping is closed. Mapping::commit
  // of one file is a record of that file alone.  ENFILE: the group has journal::kGroupFilesMax.
  static Result<std::unique_ptr<Mapping>> join(const std::shared_ptr<Group>& group,
                                               std::unique_ptr<Medium> medium);

  // Everything that is pending in every file, as one record.  Durable on success.
  Status commit();
  // Defines the batch now; durable later, in order.
  Status commit_async();
  Status wait();
  // Every file back to its committed image.
  Status roll_back();
  // EBUSY while there are mappings.  Otherwise as Mapping::close().
  Status close();

  const Medium& medium() const { return *medium_; }
  Medium& medium() { return *medium_; }
  const Options& options() const { return options_; }
  std::size_t files() const;

 private:
  friend class Mapping;
  struct Member {
    journal::GroupFile listed;
    Mapping::Implementation* mapping = nullptr;  // null: it is about to join, or aside
    bool is_aside = false;                       // it is not listed, and its number stays its own
  };

  Group(std::unique_ptr<Medium> medium, std::unique_ptr<journal::Journal> journal,
        std::unique_ptr<journal::FlushBudget> budget, const Options& options);
  Status usable() const;
  bool is_in_child() const { return abandoned_.load() || !owner_.is_this(); }
  template <class Call>
  Status in_order(Call call);
  // With the lock held.
  Result<std::uint64_t> list(const Medium& file);
  // A file that stepped aside, or was struck just now.
  Status list_again(std::uint64_t number, Mapping::Implementation& mapping);
  void enter(std::uint64_t number, Mapping::Implementation& mapping);
  // It went as in a crash: the list still has the file.
  void forget(const Mapping::Implementation& mapping);
  void erase(std::uint64_t number) noexcept;
  Status strike(std::uint64_t number);
  // Struck, but no other file gets its number, and the group is in use, until it is listed again or
  // erased.
  Status set_aside(std::uint64_t number);
  Status change_list();  // out of memory is a Status
  // The group's journal has bytes of the file, or will.
  Status limit_journal(Medium& file);
  std::vector<Mapping::Implementation*> mappings() const;

  const std::unique_ptr<Medium> medium_;
  const Options options_;
  CommitLog log_;
  std::vector<Member> members_;  // guarded by the log's mutex, in ascending order of numbers
  const OwnProcess owner_;
  std::atomic<bool> abandoned_{false};  // in a child of fork()
  std::atomic<bool> closed_{false};
};

}  // namespace pawl
