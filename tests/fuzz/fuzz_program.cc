// Any bytes as what is read of a program that is kept: the image of one that was saved, and the
// kernel's texts about one that runs.  The first byte says as which.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "wsp/process/image.h"
#include "wsp/process/maps.h"
#include "wsp/process/proc.h"
#include "wsp/process/records.h"

namespace pawl::fuzz {

const std::size_t kPrologueBytes = 0;

namespace {

enum class As : std::uint8_t { image = 0, records = 1, maps = 2, status = 3 };

constexpr std::uint64_t kGeneration = 1;
constexpr std::uint64_t kInode = 5;
constexpr std::size_t kImageBytesMin = 4096;  // its first page is always there
constexpr std::size_t kImageBytesMax = std::size_t{1} << 17;

std::vector<std::byte> image_of(const wsp::SavedProcess& process) {
  std::vector<std::byte> image(kImageBytesMax);
  wsp::ImageWriter writer(image, kGeneration, kInode);
  wsp::write_records(writer, process);
  if (!writer.finish().ok()) return {};
  writer.mark();
  return image;
}

void read(std::span<const std::byte> image) {
  const auto saved = wsp::read_saved(image, kGeneration, kInode);
  if (!saved.ok()) {
    require(!saved.status().text().empty(), "a refusal says why");
    return;
  }
  for (const wsp::SavedDescriptor& descriptor : saved.value().descriptors) {
    require(descriptor.facts.address_bytes <= sizeof descriptor.facts.address &&
                descriptor.facts.peer_bytes <= sizeof descriptor.facts.peer,
            "an address is as long as it says");
    for (const wsp::SocketOption& option : descriptor.options)
      require(option.bytes <= sizeof option.value, "an option is as long as it says");
  }
  const std::vector<std::byte> written = image_of(saved.value());
  if (written.empty()) return;
  const auto again = wsp::read_saved(written, kGeneration, kInode);
  require(again.ok() && image_of(again.value()) == written, "it is read as it was written");
}

void read_as_image(std::span<const std::byte> bytes) {
  std::vector<std::byte> image(std::max(bytes.size(), kImageBytesMin));
  std::copy(bytes.begin(), bytes.end(), image.begin());
  read(image);
}

// A record each: its kind, its length in two bytes, and what is in it.
void read_as_records(std::span<const std::byte> bytes) {
  std::vector<std::byte> image(kImageBytesMax);
  wsp::ImageWriter writer(image, kGeneration, kInode);
  while (bytes.size() >= 3) {
    const std::size_t wanted =
        std::to_integer<std::size_t>(bytes[1]) | std::to_integer<std::size_t>(bytes[2]) << 8;
    const std::size_t count = std::min(wanted, bytes.size() - 3);
    writer.begin(static_cast<wsp::RecordKind>(bytes[0]));
    writer.add(bytes.data() + 3, count);
    writer.end();
    bytes = bytes.subspan(3 + count);
  }
  if (!writer.finish().ok()) return;
  writer.mark();
  read(image);
}

void read_as_maps(std::string_view text) {
  for (const MemoryArea& line : wsp::parse_maps(text)) {
    require(line.start < line.end, "a mapping has bytes");
    require(line.name.find('\n') == std::string::npos, "a line ends with the line");
  }
}

void read_as_status(std::string_view text) {
  require(wsp::field_of(text, "Groups").find('\n') == std::string_view::npos,
          "a field ends with its line");
  require(wsp::numbers_of(text).size() <= text.size(), "a number has digits");
  static_cast<void>(wsp::number_of(text, 16));
  static_cast<void>(wsp::parse_stat(text));
  std::array<std::uint64_t[2], wsp::kLimitsCount> limits{};
  static_cast<void>(wsp::parse_limits(text, limits));
}

Seed seed_of(const char* name, As as, std::span<const std::byte> bytes) {
  std::vector<std::byte> content{static_cast<std::byte>(as)};
  content.insert(content.end(), bytes.begin(), bytes.end());
  return {name, std::move(content)};
}

Seed seed_of(const char* name, As as, const std::string& text) {
  return seed_of(name, as, std::as_bytes(std::span(text)));
}

wsp::SavedProcess some_process() {
  wsp::SavedProcess process;
  process.process.process = 7;
  process.groups = {1, 2};
  process.directory = "/";
  process.threads.resize(1);
  process.threads[0].facts.number = 7;
  process.mappings.resize(1);
  process.mappings[0].name = "/bin/true";
  process.descriptors.resize(1);
  process.descriptors[0].options.resize(1);
  process.descriptors[0].entries.resize(1);
  return process;
}

}  // namespace

std::vector<Seed> seeds() {
  std::vector<std::byte> image = image_of(some_process());
  const auto is_used = [](std::byte byte) { return byte != std::byte{0}; };
  image.erase(std::find_if(image.rbegin(), image.rend(), is_used).base() + 8, image.end());
  return {
      seed_of("image", As::image, std::span<const std::byte>(image)),
      seed_of("records", As::records, std::string("\7\4\0abcd\6\x8\0\0\0\0\0\0\0\0\0", 18)),
      seed_of("maps", As::maps,
              "7f0000000000-7f0000001000 r-xp 00000000 fe:00 123          /lib/a b\n"
              "7f0000001000-7f0000002000 rw-p 00000000 00:00 0\n"),
      seed_of("status", As::status, "Name:\ta\nUid:\t0\t0\t0\t0\nGroups:\t1 2 \nCapEff:\tff\n"),
      seed_of("stat", As::status, "7 (a) b) S 1 7 7 0 -1 4194560\n"),
      seed_of("limits", As::status,
              "Limit                     Soft Limit           Hard Limit           Units     \n"
              "Max cpu time              unlimited            unlimited            seconds   \n")};
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto bytes = std::as_bytes(std::span(text));
  switch (static_cast<As>(data[0] % 4)) {
    case As::image:
      read_as_image(bytes);
      break;
    case As::records:
      read_as_records(bytes);
      break;
    case As::maps:
      read_as_maps(text);
      break;
    case As::status:
      read_as_status(text);
      break;
  }
  return 0;
}
