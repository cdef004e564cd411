#include "options.h"

#include <getopt.h>
#include <sys/resource.h>

#include <charconv>
#include <cstdio>
#include <string_view>

namespace kv {
namespace {

uint64_t parse_number(std::string_view text, bool with_unit) {
  uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  constexpr std::string_view kUnits = "KMGT";
  const size_t power =
      unit.size() == 1 && with_unit ? kUnits.find(unit[0]) : std::string_view::npos;
  const bool unit_is_known = unit.empty() || power != std::string_view::npos;
  if (failure != std::errc() || !unit_is_known) {
    throw UsageError("not a number: " + std::string(text));
  }
  const unsigned shift = unit.empty() ? 0 : 10 * static_cast<unsigned>(power + 1);
  if (number > (UINT64_MAX >> shift)) throw UsageError("too large: " + std::string(text));
  return number << shift;
}

}  // namespace

Options parse_options(int count, char** arguments) {
  enum { kHeap = 1, kPort, kBind, kUnixSocket, kSizeMax };
  const option known[] = {{"heap", required_argument, nullptr, kHeap},
                          {"port", required_argument, nullptr, kPort},
                          {"bind", required_argument, nullptr, kBind},
                          {"unixsocket", required_argument, nullptr, kUnixSocket},
                          {"size-max", required_argument, nullptr, kSizeMax},
                          {nullptr, 0, nullptr, 0}};
  constexpr uint64_t kPortMax = 65535;
  Options options;
  for (;;) {
    switch (getopt_long(count, arguments, "", known, nullptr)) {
      case kHeap:
        options.heap_file = optarg;
        break;
      case kPort: {
        const uint64_t port = parse_number(optarg, false);
        if (port > kPortMax) throw UsageError("there is no such port");
        options.settings.port = static_cast<int>(port);
        break;
      }
      case kBind:
        options.settings.bind_address = optarg;
        break;
      case kUnixSocket:
        options.settings.unix_socket = optarg;
        break;
      case kSizeMax:
        options.size_bytes_max = parse_number(optarg, true);
        break;
      case -1:
        if (optind < count) throw UsageError("what is " + std::string(arguments[optind]) + "?");
        if (options.heap_file.empty()) throw UsageError("--heap FILE is needed");
        if (options.settings.port == 0 && options.settings.unix_socket.empty()) {
          throw UsageError("--port 0 needs --unixsocket PATH");
        }
        return options;
      default:
        throw UsageError("no such option");
    }
  }
}

void announce(const Options& options, size_t keys) {
  std::printf("kv: %zu keys in %s; ready on", keys, options.heap_file.c_str());
  if (options.settings.port != 0) {
    std::printf(" %s:%d", options.settings.bind_address.c_str(), options.settings.port);
  }
  std::printf("%s%s\n", options.settings.unix_socket.empty() ? "" : " ",
              options.settings.unix_socket.c_str());
  std::fflush(stdout);
}

void raise_descriptor_limit() {
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
}

}  // namespace kv
