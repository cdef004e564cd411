#include "medium/medium.h"

#include <cerrno>

namespace pawl {

Status MediumFile::write_durably(std::uint64_t offset, std::span<const std::byte> from) {
  PAWL_TRY(write(offset, from));
  return flush();
}

Result<std::uint64_t> MediumFile::find_shared(std::uint64_t /*offset*/, std::uint64_t end,
                                              const FoundShared& /*found*/) {
  return end;
}

Status MediumFile::check_overwrite(std::uint64_t /*bytes*/) { return {}; }

void MediumFile::write_in_place(std::uint64_t /*offset*/, std::span<const std::byte> /*from*/) {
  PAWL_ASSERT(false && "only a medium that is memory is written in place");
}

Result<std::unique_ptr<Medium>> Medium::open_sibling(const std::string& name) {
  return Status::failure(
      EOPNOTSUPP, PAWL_ERROR_UNSUPPORTED_FILE_SYSTEM,
      path() + " is on a medium without groups; " + name + " cannot be opened with it");
}

Result<std::string> Medium::keep_journal_aside(Kept /*kept*/) {
  return Status::failure(EOPNOTSUPP, journal_path() + " has no name that could be changed");
}

Result<std::optional<Rights>> Medium::rights() { return std::optional<Rights>{}; }
Result<std::optional<Rights>> Medium::journal_rights() { return std::optional<Rights>{}; }

// Of a file with one name, whose opener holds the lock.
Status Medium::claim(const JournalId& journal_id, const std::optional<JournalId>& recovered) {
  auto present = mark();
  if (!present.ok()) return present.status();
  if (present.value().has_value() && !present.value()->is_opening &&
      (!recovered.has_value() || present.value()->journal_id != *recovered))
    return Status::failure(EBUSY, PAWL_ERROR_OPENING_RACED,
                           path() + " was opened by another writer meanwhile; try again");
  return set_mark({.journal_id = journal_id,
                   .journal_path = journal_path(),
                   .is_opening = true,
                   .recovered_id = recovered.value_or(JournalId{})});
}

Result<SoughtJournal> Medium::seek_journal(const Mark& /*mark*/) { return SoughtJournal{}; }

std::string describe_journal_id(const JournalId& id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : id) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace pawl
