// Any bytes as what a machine's directory holds: its description, its rehearsals, its marker.  The
// first byte says as which.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "medium/checksum.h"
#include "wsp/budget/save_budget.h"
#include "wsp/vm/description.h"
#include "wsp/vm/marker.h"
#include "wsp/vm/options.h"

namespace pawl::fuzz {

const std::size_t kPrologueBytes = 0;

namespace {

enum class As : std::uint8_t { description = 0, rehearsals = 1, marker = 2 };

void describe(const std::string& text) {
  const auto read = wsp::vm::parse_description(text);
  if (!read.ok()) {
    require(!read.status().text().empty(), "a refusal says why");
    return;
  }
  wsp::vm::MachineDescription machine = read.value();
  const std::string written = wsp::vm::text_of(machine);
  const auto again = wsp::vm::parse_description(written);
  require(again.ok() && wsp::vm::text_of(again.value()) == written,
          "a description is read as it was written");
  require(machine.is_same_machine(again.value()), "a machine is the same as itself");
  require(!machine.difference_from(wsp::vm::MachineDescription()).empty(), "it has words");
  static_cast<void>(wsp::vm::check_options(machine.options));
  wsp::vm::settle_requests(machine);
}

void rehearse(const std::string& text) {
  const auto read = wsp::Rehearsals::parse(text);
  if (!read.ok()) return;
  const wsp::BudgetFindings found = read.value().judge(1000);
  require(found.rehearsals == read.value().size(), "each rehearsal counts");
  require(!std::isnan(found.percentile_999_us), "times are numbers");
}

void mark(const std::string& bytes) {
  wsp::vm::MarkerSlot slot{};
  std::memcpy(slot.data(), bytes.data(), std::min(bytes.size(), slot.size()));
  static_cast<void>(wsp::vm::decode(slot));
  constexpr std::size_t kBefore = wsp::vm::kMarkerSlotBytes - sizeof(std::uint32_t);
  const std::uint32_t sum = checksum(slot.data(), kBefore);
  std::memcpy(slot.data() + kBefore, &sum, sizeof sum);
  const auto read = wsp::vm::decode(slot);
  if (!read.ok()) return;
  const auto written = wsp::vm::encode(read.value().marker, read.value().sequence);
  const auto again = wsp::vm::decode(written);
  require(again.ok() && wsp::vm::encode(again.value().marker, again.value().sequence) == written,
          "a marker is read as it was written");
}

Seed seed_of(const char* name, As as, const void* bytes, std::size_t count) {
  std::vector<std::byte> content{static_cast<std::byte>(as)};
  const auto* const first = static_cast<const std::byte*>(bytes);
  content.insert(content.end(), first, first + count);
  return {name, std::move(content)};
}

}  // namespace

std::vector<Seed> seeds() {
  wsp::vm::MachineDescription machine;
  machine.added_disks = {{"/a, b", 8, "raw"}};
  machine.options = {"-name", "a \"b\" c"};
  machine.disk_files = {"/a, b"};
  machine.window_ms = 12.5;
  machine.serial_line = "/dev/ttyS0";
  const std::string text = wsp::vm::text_of(machine);
  const std::string rehearsed = R"({"rehearsals": [[{"step": "stop", "took_us": 1.5}]]})";
  wsp::vm::Marker marker;
  marker.state = wsp::vm::MarkerState::kSealed;
  marker.qemu_version = "7.2.22 Debian";
  marker.disks = {{}, {}};
  const wsp::vm::MarkerSlot slot = wsp::vm::encode(marker, 3);
  return {seed_of("description", As::description, text.data(), text.size()),
          seed_of("rehearsals", As::rehearsals, rehearsed.data(), rehearsed.size()),
          seed_of("marker", As::marker, slot.data(), slot.size())};
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::fuzz;
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (static_cast<As>(data[0] % 3)) {
    case As::description:
      describe(text);
      break;
    case As::rehearsals:
      rehearse(text);
      break;
    case As::marker:
      mark(text);
      break;
  }
  return 0;
}
