// Any bytes as what a QEMU says: whatever is made of them, nothing but a failure comes of nonsense.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "fuzz/fuzz_target.h"
#include "fuzz/require.h"
#include "wsp/vm/marker.h"
#include "wsp/vm/qemu_answers.h"
#include "wsp/vm/qmp.h"

namespace pawl::fuzz {

const std::size_t kPrologueBytes = 0;

namespace {

constexpr int kAnswerMsMax = 1000;  // of bytes that are there already
constexpr std::size_t kBytesMax = 65536;

constexpr const char* kConversation =
    R"({"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": []}}
{"return": {}, "id": 1}
{"return": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": "Debian"}, "id": 2}
{"event": "MIGRATION", "data": {"status": "completed"}}
{"return": [{"drv": "raw", "node-name": "a"}, {"drv": "file", "file": "/a", "cache": {"no-flush": false}}], "id": 3}
{"return": [{"device": "d", "qdev": "q", "inserted": {"node-name": "a"}}], "id": 4}
{"return": [{"name": "n", "type": "t"}], "id": 5}
{"error": {"class": "GenericError", "desc": "no"}, "id": 6}
)";

void hear(wsp::vm::Qmp& qmp) {
  if (!qmp.begin(kAnswerMsMax).ok()) return;
  const auto version = qmp.ask("query-version", wsp::vm::Qmp::Json(), kAnswerMsMax);
  if (!version.ok()) return;
  const std::string text = wsp::vm::version_in(version.value());
  require(text.size() < wsp::vm::kVersionTextBytes && text.find('\0') == std::string::npos,
          "a version fits into a marker");
  for (const wsp::vm::PartQuery& query : wsp::vm::part_queries()) {
    const auto told = qmp.ask(query.command, query.arguments(), kAnswerMsMax);
    if (!told.ok()) continue;
    const auto files = wsp::vm::disk_files_in(told.value());
    require(!files.ok() || std::is_sorted(files.value().begin(), files.value().end()),
            "files of disks are in order");
    for (const auto& part : told.value()) require(!query.in_words(part).empty(), "it has words");
  }
  const auto event = qmp.event("MIGRATION", 0, kAnswerMsMax);
  require(!event.ok() || qmp.has_heard("MIGRATION", 0), "an event was heard");
  qmp.hear_last_words();
}

}  // namespace

std::vector<Seed> seeds() {
  const auto* const first = reinterpret_cast<const std::byte*>(kConversation);
  return {{"conversation", {first, first + std::strlen(kConversation)}}};
}

}  // namespace pawl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl;
  using namespace pawl::fuzz;
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "a socket");
  const Descriptor qemu(ends[0]);
  wsp::vm::Qmp qmp{Descriptor(ends[1])};
  const std::size_t said = std::min(size, kBytesMax);
  require(::send(qemu.get(), data, said, MSG_DONTWAIT) == static_cast<ssize_t>(said),
          "the bytes fit into the socket");
  ::shutdown(qemu.get(), SHUT_WR);
  hear(qmp);
  return 0;
}
