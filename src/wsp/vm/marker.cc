#include "wsp/vm/marker.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "medium/checksum.h"

namespace pawl::wsp::vm {

namespace {

constexpr std::array<char, 8> kMarkerMagic{'P', 'A', 'W', 'L', 'W', 'S', 'P', 'V'};
constexpr std::uint32_t kMarkerVersion = 1;

struct StoredIdentity {
  std::uint64_t inode;
  std::uint64_t size_bytes;
  std::int64_t born_ns;
  std::int64_t modified_ns;
  std::int64_t changed_ns;
  std::int64_t accessed_ns;
  std::uint32_t head_checksum;
  std::uint32_t is_device;
};
static_assert(sizeof(StoredIdentity) == 56);

struct StoredMarker {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t state;
  std::uint64_t sequence;
  std::uint64_t generation;
  std::uint64_t save_id;
  std::uint64_t saved_at_ns;
  std::uint64_t device_state_bytes;
  std::uint32_t device_state_checksum;
  std::uint32_t memory_sample_checksum;
  std::uint32_t description_checksum;
  std::uint32_t disks;
  std::array<char, kVersionTextBytes> qemu_version;
  StoredIdentity memory;
  std::array<StoredIdentity, kDisksMax> disk;
};
static_assert(sizeof(StoredMarker) == 1088);

constexpr std::size_t kChecksumAt = kMarkerSlotBytes - sizeof(std::uint32_t);
static_assert(sizeof(StoredMarker) <= kChecksumAt);

StoredIdentity stored(const FileIdentity& from) {
  return {from.inode,      from.size_bytes,  from.born_ns,       from.modified_ns,
          from.changed_ns, from.accessed_ns, from.head_checksum, from.is_device};
}

FileIdentity loaded(const StoredIdentity& from) {
  return {from.inode,      from.size_bytes,  from.born_ns,       from.modified_ns,
          from.changed_ns, from.accessed_ns, from.head_checksum, from.is_device};
}

bool is_known(std::uint32_t state) {
  return state >= static_cast<std::uint32_t>(MarkerState::kRunning) &&
         state <= static_cast<std::uint32_t>(MarkerState::kRestoring);
}

}  // namespace

MarkerSlot encode(const Marker& marker, std::uint64_t sequence) {
  PAWL_ASSERT(marker.disks.size() <= kDisksMax);
  PAWL_ASSERT(marker.qemu_version.size() < kVersionTextBytes);
  StoredMarker into{};
  into.magic = kMarkerMagic;
  into.version = kMarkerVersion;
  into.state = static_cast<std::uint32_t>(marker.state);
  into.sequence = sequence;
  into.generation = marker.generation;
  into.save_id = marker.save_id;
  into.saved_at_ns = marker.saved_at_ns;
  into.device_state_bytes = marker.device_state_bytes;
  into.device_state_checksum = marker.device_state_checksum;
  into.memory_sample_checksum = marker.memory_sample_checksum;
  into.description_checksum = marker.description_checksum;
  into.disks = static_cast<std::uint32_t>(marker.disks.size());
  std::copy(marker.qemu_version.begin(), marker.qemu_version.end(), into.qemu_version.begin());
  into.memory = stored(marker.memory);
  std::transform(marker.disks.begin(), marker.disks.end(), into.disk.begin(), stored);
  MarkerSlot slot{};
  std::memcpy(slot.data(), &into, sizeof into);
  const std::uint32_t sum = checksum(slot.data(), kChecksumAt);
  std::memcpy(slot.data() + kChecksumAt, &sum, sizeof sum);
  return slot;
}

Result<NumberedMarker> decode(const MarkerSlot& slot) {
  std::uint32_t sum = 0;
  std::memcpy(&sum, slot.data() + kChecksumAt, sizeof sum);
  StoredMarker from;
  std::memcpy(&from, slot.data(), sizeof from);
  if (from.magic != kMarkerMagic || sum != checksum(slot.data(), kChecksumAt))
    return Status::failure(EBADMSG, "no marker, or a damaged one");
  if (from.version != kMarkerVersion)
    return Status::failure(ENOTSUP, "the marker was written by a newer Pawl");
  if (!is_known(from.state) || from.disks > kDisksMax || from.qemu_version.back() != '\0')
    return Status::failure(EBADMSG, "a marker that cannot be");
  Marker marker;
  marker.state = static_cast<MarkerState>(from.state);
  marker.generation = from.generation;
  marker.save_id = from.save_id;
  marker.saved_at_ns = from.saved_at_ns;
  marker.device_state_bytes = from.device_state_bytes;
  marker.device_state_checksum = from.device_state_checksum;
  marker.memory_sample_checksum = from.memory_sample_checksum;
  marker.description_checksum = from.description_checksum;
  marker.qemu_version = from.qemu_version.data();
  marker.memory = loaded(from.memory);
  std::transform(from.disk.begin(), from.disk.begin() + from.disks,
                 std::back_inserter(marker.disks), loaded);
  return NumberedMarker{std::move(marker), from.sequence};
}

Result<MarkerFile> MarkerFile::open(const MachineDirectory& directory, const char* name) {
  Result<Descriptor> file = directory.files().open_file(name, O_RDWR | O_CREAT);
  if (!file.ok()) return file.status();
  return MarkerFile(std::move(file.value()), directory.path_of(name));
}

Result<MarkerFile> MarkerFile::open_to_read(const MachineDirectory& directory) {
  Result<Descriptor> file = directory.files().open_file(kMarkerFile, O_RDONLY);
  if (!file.ok()) return file.status();
  return MarkerFile(std::move(file.value()), directory.path_of(kMarkerFile));
}

Result<Marker> MarkerFile::read() {
  std::optional<NumberedMarker> best;
  bool anything = false;
  for (std::size_t number = 0; number < 2; ++number) {
    MarkerSlot slot{};
    const ssize_t count = ::pread(file_.get(), slot.data(), slot.size(),
                                  static_cast<off_t>(number * kMarkerSlotBytes));
    if (count < 0) return FailedCall{errno, "cannot read the marker " + path_};
    anything = anything || count > 0;
    Result<NumberedMarker> found = decode(slot);
    if (!found.ok()) {
      if (found.status().error_number() == ENOTSUP) return found.status();
      continue;
    }
    if (best.has_value() && best->sequence >= found.value().sequence) continue;
    best = std::move(found.value());
    newest_slot_ = number;
  }
  knows_sequence_ = true;
  if (best.has_value()) {
    sequence_ = best->sequence;
    return std::move(best->marker);
  }
  if (anything) return Status::failure(EBADMSG, "the marker " + path_ + " is damaged");
  return Status::failure(ENODATA, "there is no marker yet in " + path_);
}

Status MarkerFile::learn_sequence() {
  if (knows_sequence_) return {};
  const Result<Marker> found = read();
  if (found.ok() || found.status().error_number() == EBADMSG ||
      found.status().error_number() == ENODATA)
    return {};
  return found.status();
}

Status MarkerFile::write_slot(std::size_t slot, const Marker& marker, std::size_t bytes) {
  const MarkerSlot content = encode(marker, sequence_ + 1);
  if (::pwrite(file_.get(), content.data(), bytes, static_cast<off_t>(slot * kMarkerSlotBytes)) !=
          static_cast<ssize_t>(bytes) ||
      ::fdatasync(file_.get()) != 0)
    return FailedCall{errno, "cannot write the marker " + path_};
  if (bytes < kMarkerSlotBytes) return {};
  ++sequence_;
  newest_slot_ = slot;
  return {};
}

Status MarkerFile::write(const Marker& marker, bool torn) {
  PAWL_TRY(learn_sequence());
  return write_slot(1 - newest_slot_, marker, torn ? kMarkerSlotBytes / 8 : kMarkerSlotBytes);
}

Status MarkerFile::clear(std::uint64_t generation) {
  PAWL_TRY(learn_sequence());
  Marker running;
  running.generation = generation;
  PAWL_TRY(write_slot(1 - newest_slot_, running, kMarkerSlotBytes));
  return write_slot(1 - newest_slot_, running, kMarkerSlotBytes);
}

}  // namespace pawl::wsp::vm
