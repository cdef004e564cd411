// A user file with a name on a file system, and its side file FILE.pawl beside it: how both are
// found, the writer's lock, the mark, the identity.  How their bytes become durable is for those
// who derive from it.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>

#include "medium/descriptor.h"
#include "medium/directory.h"
#include "medium/held_journal.h"
#include "medium/journal_name.h"
#include "medium/medium.h"
#include "medium/new_file.h"
#include "medium/own_process.h"
#include "medium/seldom.h"
#include "medium/writer_notice.h"

namespace pawl {

inline constexpr const char* kMarkAttribute = "user.pawl";
// A file without a mark that has this one may have a writer all the same: its notices tell.  Who
// writes with a mark sets it before the mark goes for a moment only, and leaves it when that is
// back; who writes without one, before the first byte.  It may be left when there is no writer.
inline constexpr const char* kNoticeAttribute = "user.pawl.notice";
// Nothing where there are no attributes.
Status set_notice_attribute(int file, const std::string& path);
// In the environment, 1: a side file may lie on another file system than its file.
inline constexpr const char* kJournalElsewhere = "PAWL_JOURNAL_ELSEWHERE";

// How long a change of a file's rights may stay unseen that each commit would have to make a system
// call of its own to see.
inline constexpr std::uint64_t kSeldomNs = 100'000'000;

// A regular file that has been opened and may be mapped atomically.
struct NamedFile {
  NamedFile() = default;
  NamedFile(NamedFile&&) = default;
  NamedFile& operator=(NamedFile&&) = default;
  ~NamedFile();

  Descriptor descriptor;  // closed with care for the program's locks (parked_descriptors.h)
  Directory directory;
  std::string path;
  FileIdentity identity;
  dev_t device = 0;
  bool read_only = false;
};

// Whether the file may be one of failure-atomic sections.  For a journal it is refused, unless it
// carries a mark: then it has commits to recover, whatever its bytes are.
enum class For { journal, sections };

// Of one of the program's, for which F_GETFL failed.
Status cannot_read_flags(int descriptor, int error_number);
// From a descriptor open for reading and writing.  The descriptor stays the caller's; Pawl opens
// the file again for itself.  Refuses, each with its reason: what is no regular file, a file
// without a name, a read-only one, a file system that cannot serve.
Result<NamedFile> open_named_file(int descriptor, For purpose = For::journal);
// From a path.  One that is only looked at may be of either kind.
Result<NamedFile> open_named_file(const std::string& path, bool read_only);

// Before the file, open for reading, is replaced by another, or changed past all journals.  EBUSY:
// it carries a mark, or has another opener than the one with these notices.  EINVAL: it is a
// journal.
Status check_has_no_commits(int file, const std::string& path, WriterNotices& notices);
// Of a file that no journal of this process has.  EBUSY: it has a writer.
Result<bool> is_left_by_crash(int file);
// EBUSY: there is a side file beside it.
Status check_has_no_side_file(const std::string& path);
// EBUSY: beside the file, which is open and has no mark, is a journal that only those can have made
// who may write the file.  Whatever else has its name is nobody's commits.
Status check_has_no_journal(int file, const std::string& path);

class NamedMedium : public Medium {
 public:
  explicit NamedMedium(NamedFile file);
  ~NamedMedium() override;

  FileIdentity identity() const override { return identity_; }
  std::uint64_t device() const override { return device_; }
  const std::string& path() const override { return path_; }
  const std::string& journal_path() const override { return journal_path_; }
  Result<std::uint32_t> owner() override;

  int base_descriptor() const override { return base_.descriptor(); }
  Result<JournalFile> acquire_journal(bool create) override;
  Result<std::unique_ptr<MediumFile>> read_journal() override;
  SideFileOwner adopt_journal(SideFileOwner owner) override;
  Status publish_journal() override;
  Status remove_journal() override;
  Status hide_journal() override;
  Status show_journal() override;
  Status stay_the_writer() override;
  void is_writer_no_more() override;
  void take_over_writer(Medium& aside) override;
  Result<std::string> keep_journal_aside(Kept kept) override;
  std::uint64_t first_held_record() const override;
  // As read_journal(), and asks the writer, if there is one, to keep its records for as long as the
  // answer lives.
  Result<HeldJournal> hold_journal();
  Result<FileIdentity> journal_identity() override;
  Status claim(const JournalId& journal_id, const std::optional<JournalId>& recovered) override;
  Result<SoughtJournal> seek_journal(const Mark& mark) override;
  Status retire_journal(const Mark& mark, const EmptyJournal& empty) override;
  Status check_has_no_writer() override;
  bool can_mark() const override;
  Result<std::optional<Mark>> mark() override;
  Status set_mark(const Mark& mark) override;
  Status clear_mark() override;
  Result<std::unique_ptr<Medium>> open_sibling(const std::string& name) override;
  Result<std::unique_ptr<Medium>> open_group(const std::string& name) override;
  // As open_group().
  Result<NamedFile> open_group_file(const std::string& name);
  Result<char*> map_private(void* address, std::size_t length, int protection, int flags,
                            std::uint64_t offset) override;
  Status check_before_commit() override { return follow_rights(seldom_.is_due()); }
  Result<std::optional<Rights>> rights() override;
  std::uint64_t rights_seen() const override { return rights_seen_; }
  Result<std::optional<Rights>> journal_rights() override;
  Status keep_journal_private() override;
  Status limit_journal(const Rights& rights) override;
  Status check_writers_of_journal(const Rights& journal, const std::string& path) override;

 protected:
  // What is looked at before commits now and then only is due.
  bool is_look_due() { return seldom_.is_due(); }
  // check_before_commit() of mode, owner and group, and perhaps of the access control list.
  Status follow_rights(bool with_list);
  // The user file itself: its size, space and attributes.
  DescriptorFile& base_file() { return base_; }
  // That of the side file, whose loss ends all writing.
  OpenFile writers_lock() const { return OpenFile::of(side_file()); }
  const OpenFile& writers_notice() const { return notices_.file(); }
  // The side file, for the journal's own I/O; `name` leads to the file that is held.
  virtual Result<std::unique_ptr<MediumFile>> open_side_file(const std::string& name) = 0;
  // Behind each change of the mark, and behind one that failed: the next flush of the base, in this
  // thread, has attributes to flush.
  virtual void attributes_changed() { base_.metadata_changed(); }

 private:
  enum class Named { yes, not_yet };
  Result<JournalFile> hold_side_file(int side, const struct stat& user, Named named);
  Status lock_side_file(int side) const;
  Status prepare_new_side_file(int side, const struct stat& user) const;
  bool narrow(int side) const;
  void look_at_list();
  void leave_name_to_others();
  Status flush_rights() const;
  enum class MadeByWriter { maybe, yes };
  Status check_writers_of(const Rights& side, const std::string& side_path,
                          MadeByWriter made_by_writer) const;
  Status check_may_still_write(uid_t owner_of_side) const;
  Result<SideFileOwner> check_side_file(int side, const struct stat& user) const;
  Result<SideFileOwner> check_side_file_by(const std::optional<Mark>& mark, int side,
                                           const struct stat& user) const;
  Result<bool> may_be_of_a_writer(const std::optional<Mark>& mark, bool is_named,
                                  std::uint32_t owner_of_side) const;
  Status check_file_system(int side, const struct stat& user) const;
  bool is_of_a_clone(int side, const struct stat& held) const;
  Status exclude_other_writers(const std::optional<Mark>& mark);
  Status put_notice(Notice notice);
  Result<bool> others_have(Notice notice);
  Status has_a_notice(Notice notice) const;
  Status exclude_unmarked_writers(const Mark& ours);
  Result<std::optional<Mark>> read_mark() const;
  Status write_mark(const Mark& mark, int flags);
  Status remove_mark();
  // In a forked child: gives up the inherited lock without releasing the parent's.
  void abandon();
  Status open_or_make_side_file(bool create);
  int side_file() const { return unnamed_ ? unnamed_->descriptor() : lock_.get(); }
  void give_locks_back();
  void let_go_of_side_file();
  void renew_notices();
  std::string mode_forbids() const;
  Status left_behind(const FailedCall& failed, const Directory& directory) const;
  Status may_not_open_side_file() const;
  Result<Descriptor> open_named_side_file(int flags) const;
  Status is_no_journal() const;
  Result<Descriptor> open_to_read() const;
  Result<Descriptor> try_to_open_to_read() const;

  const OwnProcess process_;
  DescriptorFile base_;
  const Directory directory_;
  const std::string path_;
  const std::string journal_path_;
  const std::string journal_name_;  // in the directory
  const FileIdentity identity_;
  const dev_t device_;
  const bool read_only_;
  // One of them holds the writer's lock; the journal's own I/O goes through another descriptor.
  Descriptor lock_;
  WriterNotices notices_;
  bool keeps_notices_ = false;  // without the side file
  std::string hidden_name_;     // of the side file, in the directory; empty: it has its own
  bool has_left_name_ = false;  // the side file has none, as its file
  Seldom seldom_{kSeldomNs};
  std::uint64_t list_seen_ = 0;  // of the base's access control list, as a number
  std::uint64_t rights_seen_ = 0;
  std::optional<std::uint64_t> rights_;  // of the base, which the side file has got
  std::optional<Rights> limit_;          // of the side file of a group: what all its files grant
  std::optional<NewFile> unnamed_;       // a new side file that is not published
  Descriptor retired_;                   // a side file of another name, locked until it is removed
  mutable std::optional<bool> can_mark_;
};

}  // namespace pawl
