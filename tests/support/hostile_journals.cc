#include "support/hostile_journals.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "journal/group_files.h"
#include "journal/record_builder.h"

namespace pawl::test {
namespace {

constexpr std::uint64_t kJournalBytes = 65536;
constexpr std::uint64_t kNumber = 1;  // of the file in its group
constexpr std::uint64_t kEpoch = 0x1122334455667788;

bool write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  return !file.fail();
}

std::string journal_of(journal::Header header, const std::vector<std::byte>& list) {
  header.generation = 1;
  header.epoch = kEpoch;
  header.crc32c = journal::header_checksum(header, list);
  std::string bytes(header.journal_bytes, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!list.empty()) std::memcpy(bytes.data() + sizeof header, list.data(), list.size());
  return bytes;
}

// A record with this content at the start of file `number`; 0: of a file alone.
bool add_record(std::string& bytes, std::uint64_t number, const std::string& content,
                std::uint64_t file_bytes) {
  journal::RecordBuilder record(journal::kBlockBytes);
  const journal::FileSize size{number, file_bytes, journal::kNoTruncation};
  if (number != 0 && !record.add(0, std::as_bytes(std::span(&size, 1))).ok()) return false;
  if (!record.add(number << journal::kFileNumberShift, std::as_bytes(std::span(content))).ok())
    return false;
  journal::RecordHeader header;
  header.epoch = kEpoch;
  header.sequence = 1;
  if (number == 0) header.file_size = file_bytes;
  if (!record.finish(header).ok()) return false;
  const auto block = record.block();
  std::memcpy(bytes.data() + journal::kAreaStart, block.data(), block.size());
  return true;
}

}  // namespace

FileIdentity identity_of(const std::string& path) {
  struct statx status{};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_INO | STATX_BTIME, &status) != 0) return {};
  FileIdentity identity{.inode = status.stx_ino};
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  if ((status.stx_mask & STATX_BTIME) != 0)
    identity.birth_time_ns =
        static_cast<std::uint64_t>(status.stx_btime.tv_sec) * kNanosecondsPerSecond +
        status.stx_btime.tv_nsec;
  return identity;
}

bool read_marked_id(const std::string& path, JournalId& id) {
  constexpr std::size_t kDigitsAt = 2;  // behind the mark's version
  std::array<char, 4096> value{};
  const ssize_t length = ::getxattr(path.c_str(), "user.pawl", value.data(), value.size());
  if (length < static_cast<ssize_t>(kDigitsAt + 2 * id.size())) return false;
  for (std::size_t i = 0; i < id.size(); ++i) {
    const std::string digits(value.data() + kDigitsAt + 2 * i, 2);
    id[i] = static_cast<std::byte>(std::strtoul(digits.c_str(), nullptr, 16));
  }
  return true;
}

bool make_journal_of_group(const std::string& group, const std::string& name, const JournalId& id,
                           const std::string& content, std::size_t file_bytes) {
  if (!write_bytes(group, "")) return false;
  const auto named = std::filesystem::path(group).parent_path() / name;
  auto list = journal::encode({journal::Role::group, {{kNumber, identity_of(named), name}}});
  if (!list.ok()) return false;
  journal::Header header;
  header.version = journal::kVersionOfGroups;
  header.journal_id = id;
  header.journal_bytes = kJournalBytes;
  std::string bytes = journal_of(header, list.value());
  return add_record(bytes, kNumber, content, file_bytes) && write_bytes(group + ".pawl", bytes);
}

bool make_journal_of_file(const std::string& file, const JournalId& id, const std::string& content,
                          std::size_t file_bytes) {
  journal::Header header;
  header.journal_id = id;
  const FileIdentity identity = identity_of(file);
  header.file_inode = identity.inode;
  header.file_birth_time_ns = identity.birth_time_ns;
  header.journal_bytes = kJournalBytes;
  std::string bytes = journal_of(header, {});
  return add_record(bytes, 0, content, file_bytes) && write_bytes(file + ".pawl", bytes);
}

bool make_empty_journal(const std::string& file) {
  journal::Header header;
  header.journal_bytes = kJournalBytes;
  return write_bytes(file + ".pawl", journal_of(header, {}));
}

bool make_side_file_of_member(const std::string& file, const std::string& group,
                              const JournalId& id) {
  auto list = journal::encode({journal::Role::member, {{kNumber, {}, group}}});
  if (!list.ok()) return false;
  journal::Header header;
  header.version = journal::kVersionOfGroups;
  header.journal_id = id;
  header.journal_bytes = journal::kAreaStart;
  return write_bytes(file + ".pawl", journal_of(header, list.value()));
}

}  // namespace pawl::test
