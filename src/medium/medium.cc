#include "medium/medium.h"

#include <cerrno>

namespace pawl {

Status MediumFile::write_durably(std::uint64_t offset, std::span<const std::byte> from) {
  PAWL_TRY(write(offset, from));
  return flush();
}

void MediumFile::write_in_place(std::uint64_t /*offset*/, std::span<const std::byte> /*from*/) {
  PAWL_ASSERT(false && "only a medium that is memory is written in place");
}

Result<std::unique_ptr<Medium>> Medium::open_sibling(const std::string& name) {
  return Status::failure(
      EOPNOTSUPP, path() + " is on a medium without groups; " + name + " cannot be opened with it");
}

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
