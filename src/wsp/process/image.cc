#include "wsp/process/image.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "medium/checksum.h"

namespace pawl::wsp {

namespace {

constexpr char kMagic[8] = {'P', 'A', 'W', 'L', 'W', 'S', 'P', 'P'};
constexpr char kMarkerMagic[8] = {'S', 'A', 'V', 'E', 'D', 'A', 'L', 'L'};
constexpr std::uint32_t kVersion = 8;
constexpr std::size_t kRecordsFrom = 4096;
constexpr std::size_t kReasonBytes = 1024;
constexpr std::size_t kRecordsMax = 1 << 20;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t records_checksum;
  std::uint64_t records_bytes;
  std::uint64_t generation;
  std::uint64_t memory_inode;
  char reason[kReasonBytes];
  std::uint32_t header_checksum;  // of all before it
};

// In the last cache line of the header's page.
struct Marker {
  char magic[8];
  std::uint64_t generation;
  std::uint32_t header_checksum;
  std::uint32_t marker_checksum;  // of all before it
};
constexpr std::size_t kMarkerAt = kRecordsFrom - 64;
static_assert(sizeof(Header) <= kMarkerAt && sizeof(Marker) <= 64);

struct RecordHead {
  std::uint32_t kind;
  std::uint32_t bytes;  // of what follows, without what fills it up to 8
};

std::size_t round_up(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

Header& header_of(std::span<std::byte> image) { return *reinterpret_cast<Header*>(image.data()); }

std::uint32_t checksum_of(const Header& header) {
  return checksum(&header, offsetof(Header, header_checksum));
}

// A compiler may not move stores across.
void order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

std::string reason_in(const Header& header) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return {};
  const void* const end = std::memchr(header.reason, 0, kReasonBytes);
  return end == nullptr ? std::string() : std::string(header.reason);
}

}  // namespace

ImageWriter::ImageWriter(std::span<std::byte> image, std::uint64_t generation,
                         std::uint64_t memory_inode)
    : image_(image), generation_(generation), memory_inode_(memory_inode), used_(kRecordsFrom) {
  remove_marker(image);
}

void ImageWriter::begin(RecordKind kind) {
  record_ = used_;
  const RecordHead head{static_cast<std::uint32_t>(kind), 0};
  add_object(head);
}

void ImageWriter::add(const void* bytes, std::size_t count) {
  if (count > image_.size() - used_ - 8) {
    is_full_ = true;
    return;
  }
  if (count == 0) return;
  std::memcpy(image_.data() + used_, bytes, count);
  used_ += count;
}

void ImageWriter::add_text(const std::string& text) {
  add_object(static_cast<std::uint32_t>(text.size()));
  add(text.data(), text.size());
}

void ImageWriter::end() {
  if (is_full_) return;
  reinterpret_cast<RecordHead*>(image_.data() + record_)->bytes =
      static_cast<std::uint32_t>(used_ - record_ - sizeof(RecordHead));
  const std::size_t filled = round_up(used_);
  std::memset(image_.data() + used_, 0, filled - used_);
  used_ = filled;
}

Status ImageWriter::finish() {
  if (is_full_) {
    return Status::failure(
        ENOSPC,
        fmt::format("the program's state does not fit into the image of {} MiB; let it have "
                    "fewer descriptors, threads or mappings, or less wait in pipes",
                    image_.size() >> 20));
  }
  Header& header = header_of(image_);
  header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.generation = generation_;
  header.memory_inode = memory_inode_;
  header.records_bytes = used_ - kRecordsFrom;
  header.records_checksum = checksum(image_.data() + kRecordsFrom, header.records_bytes);
  header.header_checksum = checksum_of(header);
  order();
  return {};
}

void ImageWriter::mark() {
  Marker marker{};
  std::memcpy(marker.magic, kMarkerMagic, sizeof(kMarkerMagic));
  marker.generation = generation_;
  marker.header_checksum = header_of(image_).header_checksum;
  marker.marker_checksum = checksum(&marker, offsetof(Marker, marker_checksum));
  order();
  std::memcpy(image_.data() + kMarkerAt, &marker, sizeof(marker));
  order();
}

void remove_marker(std::span<std::byte> image) {
  order();
  std::memset(image.data() + kMarkerAt, 0, sizeof(Marker));
  order();
}

void write_refusal(std::span<std::byte> image, const std::string& reason) {
  remove_marker(image);
  Header& header = header_of(image);
  header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::memcpy(header.reason, reason.data(), std::min(reason.size(), kReasonBytes - 1));
}

bool has_marker(int image) {
  Marker marker{};
  const Marker none{};
  return ::pread(image, &marker, sizeof(marker), kMarkerAt) == sizeof(marker) &&
         std::memcmp(&marker, &none, sizeof(marker)) != 0;
}

bool RecordReader::take(void* into, std::size_t count) {
  if (count > bytes_.size()) {
    bytes_ = {};
    return false;
  }
  if (count == 0) return true;  // there may be no place for nothing
  std::memcpy(into, bytes_.data(), count);
  bytes_ = bytes_.subspan(count);
  return true;
}

bool RecordReader::take_text(std::string& into) {
  std::uint32_t count = 0;
  if (!take_object(count) || count > bytes_.size()) return false;
  into.resize(count);
  return take(into.data(), count);
}

Result<std::vector<RecordReader>> read_image(std::span<const std::byte> image,
                                             std::uint64_t generation, std::uint64_t memory_inode) {
  Header header{};
  Marker marker{};
  std::memcpy(&header, image.data(), sizeof(header));
  std::memcpy(&marker, image.data() + kMarkerAt, sizeof(marker));
  const Marker none{};
  if (std::memcmp(&marker, &none, sizeof(marker)) == 0) {
    const std::string reason = reason_in(header);
    return Status::failure(ENODATA, reason.empty()
                                        ? std::string("nothing was saved: the program ended, or "
                                                      "the power went before the save was whole")
                                        : "nothing was saved: " + reason);
  }
  if (std::memcmp(marker.magic, kMarkerMagic, sizeof(kMarkerMagic)) != 0 ||
      marker.marker_checksum != checksum(&marker, offsetof(Marker, marker_checksum)))
    return Status::failure(EBADMSG, "the marker of what was saved is damaged");
  if (marker.generation + 1 == generation)
    return Status::failure(EALREADY, "what was saved was restored already");
  if (marker.generation != generation)
    return Status::failure(ESTALE, "what was saved belongs to another generation of the memory");
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 ||
      header.header_checksum != checksum_of(header) ||
      marker.header_checksum != header.header_checksum)
    return Status::failure(EBADMSG, "the header of what was saved is damaged");
  if (header.version != kVersion)
    return Status::failure(EPROTONOSUPPORT,
                           "it was saved by another version of Pawl; start the program "
                           "anew, or restore it with that one");
  if (header.generation != generation || header.memory_inode != memory_inode)
    return Status::failure(ESTALE, "what was saved belongs to another memory file");
  if (header.records_bytes > image.size() - kRecordsFrom ||
      header.records_checksum != checksum(image.data() + kRecordsFrom, header.records_bytes))
    return Status::failure(EBADMSG, "the records of what was saved are damaged");
  std::vector<RecordReader> records;
  std::span<const std::byte> left = image.subspan(kRecordsFrom, header.records_bytes);
  while (left.size() >= sizeof(RecordHead) && records.size() < kRecordsMax) {
    RecordHead head{};
    std::memcpy(&head, left.data(), sizeof(head));
    left = left.subspan(sizeof(head));
    if (round_up(head.bytes) > left.size())
      return Status::failure(EBADMSG, "the records of what was saved are damaged");
    records.emplace_back(static_cast<RecordKind>(head.kind), left.first(head.bytes));
    left = left.subspan(round_up(head.bytes));
  }
  return records;
}

}  // namespace pawl::wsp
