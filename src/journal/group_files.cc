#include "journal/group_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "journal/page_buffer.h"
#include "medium/random_bytes.h"

namespace pawl::journal {
namespace {

// Each followed by its name, and zeros up to a multiple of 8.
struct Entry {
  std::uint64_t number = 0;
  std::uint64_t inode = 0;
  std::uint64_t birth_time_ns = 0;
  std::uint64_t name_bytes = 0;
};
static_assert(sizeof(Entry) == 32);

}  // namespace

Result<std::vector<std::byte>> encode(const Listed& listed) {
  std::vector<std::byte> bytes(sizeof(ListHeader));
  for (const GroupFile& file : listed.files) {
    const Entry entry{file.number, file.identity.inode, file.identity.birth_time_ns,
                      file.name.size()};
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof entry + round_up(file.name.size(), 8));
    std::memcpy(bytes.data() + at, &entry, sizeof entry);
    std::memcpy(bytes.data() + at + sizeof entry, file.name.data(), file.name.size());
  }
  if (bytes.size() > kListBytesMax) {
    return Status::failure(
        ENAMETOOLONG, PAWL_ERROR_NAME_TOO_LONG,
        "the names of the group's files take " + std::to_string(bytes.size()) +
            " bytes, and its journal's header has room for " + std::to_string(kListBytesMax) +
            "; put the files and the group's file into directories that are near each other");
  }
  const ListHeader header{static_cast<std::uint32_t>(listed.role),
                          static_cast<std::uint32_t>(bytes.size())};
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

bool decode(std::span<const std::byte> bytes, Listed& listed) {
  ListHeader header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.bytes < sizeof header || header.bytes > bytes.size()) return false;
  listed.role = static_cast<Role>(header.role);
  if (listed.role != Role::group && listed.role != Role::member) return false;
  listed.files.clear();
  std::uint64_t numbers_seen = 0;
  for (std::size_t at = sizeof header; at < header.bytes;) {
    Entry entry;
    if (header.bytes - at < sizeof entry) return false;
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    at += sizeof entry;
    const std::size_t left = header.bytes - at;
    if (entry.name_bytes == 0 || entry.name_bytes > left || round_up(entry.name_bytes, 8) > left)
      return false;
    if (entry.number == 0 || entry.number > kGroupFilesMax) return false;
    const std::uint64_t number_bit = std::uint64_t{1} << entry.number;
    if ((numbers_seen & number_bit) != 0) return false;
    numbers_seen |= number_bit;
    GroupFile file{entry.number, {entry.inode, entry.birth_time_ns}, {}};
    file.name.assign(reinterpret_cast<const char*>(bytes.data()) + at, entry.name_bytes);
    if (file.name.find('\0') != std::string::npos) return false;
    listed.files.push_back(std::move(file));
    const auto padding = bytes.subspan(at, round_up(entry.name_bytes, 8)).subspan(entry.name_bytes);
    if (std::any_of(padding.begin(), padding.end(),
                    [](std::byte byte) { return byte != std::byte{0}; }))
      return false;
    at += round_up(entry.name_bytes, 8);
  }
  return listed.role == Role::group || listed.files.size() == 1;
}

namespace {

// A member's header stands in slot A, and that of a file outside of its group in slot B.
constexpr std::uint64_t kGenerationBefore = 1;
constexpr std::uint64_t kGenerationInside = 2;
constexpr std::uint64_t generation_after(std::uint64_t generation) { return (generation + 1) | 1; }
static_assert(generation_after(kGenerationInside) % kJournalSlots == 1);

Result<Header> header_of_side_file(const JournalId& group_id, const FileIdentity& bound_to,
                                   std::uint64_t generation) {
  Header header;
  header.generation = generation;
  header.journal_id = group_id;
  // Who copies the file beside it sees that it is another state.
  PAWL_TRY(draw_random(std::as_writable_bytes(std::span(&header.epoch, 1))));
  header.file_inode = bound_to.inode;
  header.file_birth_time_ns = bound_to.birth_time_ns;
  header.journal_bytes = kAreaStart;
  return header;
}

Status put_outside(std::byte* slot, const JournalId& group_id, const FileIdentity& file,
                   std::uint64_t generation) {
  auto header = header_of_side_file(group_id, file, generation);
  if (!header.ok()) return header.status();
  header.value().crc32c = header_checksum(header.value());
  std::memset(slot, 0, kJournalSlotBytes);
  std::memcpy(slot, &header.value(), sizeof(Header));
  return {};
}

Status put_inside(std::byte* slot, const JournalId& group_id, const GroupFile& group,
                  std::span<const std::byte> list) {
  auto header = header_of_side_file(group_id, group.identity, kGenerationInside);
  if (!header.ok()) return header.status();
  header.value().version = kVersionOfGroups;
  header.value().crc32c = header_checksum(header.value(), list);
  std::memset(slot, 0, kJournalSlotBytes);
  std::memcpy(slot, &header.value(), sizeof(Header));
  std::memcpy(slot + sizeof(Header), list.data(), list.size());
  return {};
}

Status write_slot(MediumFile& side, std::uint64_t slot, const std::byte* bytes) {
  PAWL_TRY(side.write(slot * kJournalSlotBytes, {bytes, kJournalSlotBytes}));
  return side.flush();
}

Status no_memory_for_header() { return Status::failure(ENOMEM, "no memory for a header"); }

}  // namespace

Result<MemberSide> MemberSide::make(std::unique_ptr<MediumFile> side, const JournalId& group_id,
                                    const FileIdentity& file, const GroupFile& group) {
  auto list = encode({Role::member, {group}});
  if (!list.ok()) return list.status();
  AlignedBuffer slots;
  if (!slots.grow(kAreaStart, 0)) return no_memory_for_header();
  std::memset(slots.data(), 0, kJournalSlotBytes);
  PAWL_TRY(put_outside(slots.data() + kJournalSlotBytes, group_id, file, kGenerationBefore));
  PAWL_TRY(side->write(0, {slots.data(), kAreaStart}));
  PAWL_TRY(side->flush());
  PAWL_TRY(put_inside(slots.data(), group_id, group, list.value()));
  PAWL_TRY(put_outside(slots.data() + kJournalSlotBytes, group_id, file,
                       generation_after(kGenerationInside)));
  return MemberSide(std::move(side), std::move(slots));
}

Status MemberSide::enter() { return write_slot(*side_, 0, slots_.data()); }
Status MemberSide::leave() { return write_slot(*side_, 1, slots_.data() + kJournalSlotBytes); }

Status MemberSide::enter_again() {
  PAWL_TRY(renew(0));
  PAWL_TRY(renew(1));
  return enter();
}

// For the header that comes behind that of the other slot.
Status MemberSide::renew(std::uint64_t slot) {
  std::byte* const bytes = slots_.data() + slot * kJournalSlotBytes;
  Header header;
  std::memcpy(&header, bytes, sizeof header);
  header.generation += kJournalSlots;
  PAWL_TRY(draw_random(std::as_writable_bytes(std::span(&header.epoch, 1))));
  ListHeader list;
  if (header.version == kVersionOfGroups) std::memcpy(&list, bytes + sizeof header, sizeof list);
  header.crc32c = header_checksum(header, {bytes + sizeof header, list.bytes});
  std::memcpy(bytes, &header, sizeof header);
  return {};
}

Status leave_group(MediumFile& side, const Header& found, const FileIdentity& file) {
  AlignedBuffer slot;
  if (!slot.grow(kJournalSlotBytes, 0)) return no_memory_for_header();
  PAWL_TRY(put_outside(slot.data(), found.journal_id, file, generation_after(found.generation)));
  return write_slot(side, 1, slot.data());
}

}  // namespace pawl::journal
