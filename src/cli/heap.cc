// pawl heap check FILE, pawl heap info FILE: a heap as its file and journal have it.  Both change
// nothing, not even after a crash: they look at what recovery would leave.
#include "heap/closed_heap.h"

#include <fmt/core.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "cli/look.h"
#include "cli/verbs.h"
#include "heap/information.h"
#include "medium/block_medium.h"

namespace pawl::cli {

namespace {

// A damaged heap may have a fault in every page; more lines than this help nobody.
constexpr std::size_t kFaultsToldMax = 100;

struct HeapArguments {
  std::string file;
  bool json = false;
};

struct Opened {
  std::unique_ptr<ClosedHeap> heap;
  State state = State::clean;
  int exit_code = kExitOk;  // why there is no heap
};

Opened open_heap(const char* verb, const std::string& file) {
  Opened opened;
  Result<Look> look = [&] {
    Progress progress("reading the journal of " + file);
    return look_at_file(file, false, progress, {});
  }();
  if (!look.ok()) {
    complain(verb, look.status().text());
    opened.exit_code = kExitFailure;
    return opened;
  }
  opened.state = look.value().state;
  if (opened.state != State::clean && opened.state != State::needs_recovery) {
    complain(verb, file + ": " + look.value().explanation);
    opened.exit_code = exit_code_of(opened.state);
    return opened;
  }
  auto medium = open_block_medium(file, true);
  Status status = medium.status();
  if (status.ok()) {
    auto heap = ClosedHeap::look_at(*medium.value());
    status = heap.status();
    if (heap.ok()) opened.heap = std::move(heap.value());
  }
  if (!status.ok()) {
    complain(verb, status.text());
    opened.exit_code = exit_code_of(status);
  }
  return opened;
}

int check(const HeapArguments& arguments) {
  const Opened opened = open_heap("heap check", arguments.file);
  if (opened.heap == nullptr) return opened.exit_code;
  std::vector<std::string> told;
  const std::uint64_t faults = check_heap(opened.heap->parts(), [&](const std::string& text) {
    if (told.size() < kFaultsToldMax) told.push_back(text);
  });
  if (arguments.json) {
    print_json(Json{{"file", arguments.file},
                    {"state", state_name(opened.state)},
                    {"faults", faults},
                    {"told", told}});
  } else {
    for (const std::string& text : told) fmt::print("{}\n", printable(text));
    if (faults > told.size()) fmt::print("and {} more\n", faults - told.size());
    fmt::print("{}: {}\n", printable(arguments.file),
               faults == 0 ? "no faults" : count_text(faults, "fault"));
  }
  return faults == 0 ? kExitOk : kExitDamagedHeap;
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Of the free bytes, the part that no single block can have.
double fragmentation(const pawl_heap_information& information) {
  return information.bytes_free == 0
             ? 0
             : 100 - percent(information.free_block_bytes_max, information.bytes_free);
}

std::vector<std::pair<std::string, const heap_format::NamedRoot*>> named_roots(
    const ClosedHeap& heap) {
  std::vector<std::pair<std::string, const heap_format::NamedRoot*>> found;
  const heap_format::NamedRoot* const all = heap.parts().arena.named_roots();
  for (std::size_t slot = 0; slot < PAWL_HEAP_ROOTS_MAX; ++slot) {
    const std::string_view name = name_of(all[slot]);
    if (!name.empty()) found.emplace_back(name, &all[slot]);
  }
  return found;
}

Json as_json(const HeapArguments& arguments, const Opened& opened,
             const pawl_heap_information& information) {
  Json json{{"file", arguments.file},
            {"state", state_name(opened.state)},
            {"version", opened.heap->parts().arena.header().identity.version},
            {"machine", information.machine},
            {"layout", information.layout},
            {"address", information.address},
            {"size_bytes", information.size_bytes},
            {"size_bytes_max", information.size_bytes_max},
            {"blocks_used", information.blocks_used},
            {"bytes_used", information.bytes_used},
            {"bytes_free", information.bytes_free},
            {"bytes_overhead", information.bytes_overhead},
            {"free_block_bytes_max", information.free_block_bytes_max},
            {"fragmentation_percent", fragmentation(information)},
            {"large_blocks_used", information.large_blocks_used},
            {"large_bytes_used", information.large_bytes_used},
            {"root", opened.heap->parts().arena.header().root},
            {"named_roots", Json::array()},
            {"size_classes", Json::array()}};
  for (const auto& [name, root] : named_roots(*opened.heap))
    json["named_roots"].push_back(
        {{"name", name}, {"address", root->address}, {"type_tag", root->type_tag}});
  for (std::uint32_t i = 0; i < information.size_classes; ++i) {
    const pawl_heap_size_class& of = information.classes[i];
    if (of.blocks_used + of.blocks_free == 0) continue;
    json["size_classes"].push_back({{"block_size_bytes", of.block_size_bytes},
                                    {"blocks_used", of.blocks_used},
                                    {"blocks_free", of.blocks_free}});
  }
  return json;
}

void print_text(const HeapArguments& arguments, const Opened& opened,
                const pawl_heap_information& information) {
  const auto amount = [](const char* name, std::uint64_t bytes, const std::string& more) {
    fmt::print("{:<13} {}{}\n", name, size_text(bytes), more);
  };
  fmt::print("{:<13} {}\n", "file", printable(arguments.file));
  fmt::print("{:<13} {}\n", "state", state_name(opened.state));
  fmt::print("{:<13} version {}, {}\n", "format",
             opened.heap->parts().arena.header().identity.version, information.machine);
  fmt::print("{:<13} {}\n", "layout",
             information.layout[0] == '\0' ? "not said" : printable(information.layout));
  fmt::print("{:<13} {:#x}\n", "address", information.address);
  amount("size", information.size_bytes,
         fmt::format(", may grow to {}", size_text(information.size_bytes_max)));
  amount("used", information.bytes_used,
         fmt::format(" in {}", count_text(information.blocks_used, "block")));
  amount("free", information.bytes_free,
         fmt::format(", the largest block {}; {:.1f}% is fragmented",
                     size_text(information.free_block_bytes_max), fragmentation(information)));
  amount("bookkeeping", information.bytes_overhead, "");
  amount("large blocks", information.large_bytes_used,
         fmt::format(" in {}", count_text(information.large_blocks_used, "block")));
  // Those of C++ have names, that of C has none.
  const std::uint64_t unnamed = opened.heap->parts().arena.header().root;
  const auto named = named_roots(*opened.heap);
  if (unnamed != 0) fmt::print("{:<13} {:#x}\n", "root", unnamed);
  if (unnamed == 0 && named.empty()) fmt::print("{:<13} none\n", "root");
  for (const auto& [name, root] : named)
    fmt::print("{:<13} {} at {:#x}\n", "root", printable(name), root->address);
  fmt::print("\n{:>10} {:>12} {:>12} {:>8}\n", "block size", "used", "free", "full");
  for (std::uint32_t i = 0; i < information.size_classes; ++i) {
    const pawl_heap_size_class& of = information.classes[i];
    if (of.blocks_used + of.blocks_free == 0) continue;
    fmt::print("{:>10} {:>12} {:>12} {:>7.1f}%\n", of.block_size_bytes, of.blocks_used,
               of.blocks_free, percent(of.blocks_used, of.blocks_used + of.blocks_free));
  }
}

int heap_info(const HeapArguments& arguments) {
  const Opened opened = open_heap("heap info", arguments.file);
  if (opened.heap == nullptr) return opened.exit_code;
  pawl_heap_information information;
  if (const Status counted = count_heap(opened.heap->parts(), information); !counted.ok()) {
    complain("heap info", counted.text() + ". 'pawl heap check " + arguments.file + "' says more");
    return kExitDamagedHeap;
  }
  if (arguments.json) {
    print_json(as_json(arguments, opened, information));
  } else {
    print_text(arguments, opened, information);
  }
  return kExitOk;
}

using Verb = int (*)(const HeapArguments& arguments);

void add(CLI::App& heap, const char* name, const char* what, const char* footer, Verb run,
         int& exit_code) {
  auto arguments = std::make_shared<HeapArguments>();
  CLI::App* verb = heap.add_subcommand(name, what);
  verb->add_option("FILE", arguments->file, "The heap's file (not its journal)")->required();
  verb->add_flag("--json", arguments->json, "Answer in JSON");
  verb->footer(footer);
  verb->callback([arguments, run, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace

void add_heap(CLI::App& app, int& exit_code) {
  CLI::App* heap = app.add_subcommand("heap", "Look at a persistent heap; change nothing");
  heap->require_subcommand(1);
  heap->footer(
      "Example:\n  pawl heap info words.heap\n"
      "'pawl heap VERB --help' says what the exit codes mean.");
  add(*heap, "check", "Check all bookkeeping of a heap that nobody has open",
      "Example:\n  pawl heap check words.heap\n"
      "Exit codes: 0 no faults, 10 damaged heap; 4 to 8 as 'pawl verify'; 1 cannot look.",
      check, exit_code);
  add(*heap, "info", "Show what of a heap is used and free, by size, and its roots",
      "Example:\n  pawl heap info words.heap\n"
      "Exit codes: 0 done, 10 damaged heap; 4 to 8 as 'pawl verify'; 1 cannot look.",
      heap_info, exit_code);
}

}  // namespace pawl::cli
