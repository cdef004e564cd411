#include "options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <malloc.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "bounds.h"

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

// The file's first line.  The command line itself can be read by every user of the system.
std::string read_password(const std::string& path) {
  std::ifstream file(path);
  std::string password;
  if (!std::getline(file, password)) throw UsageError("cannot read a password from " + path);
  if (password.empty() || password.size() > kPasswordBytesMax) {
    throw UsageError("the password in " + path + " must have 1 to " +
                     std::to_string(kPasswordBytesMax) + " bytes");
  }
  if (password.back() == '\r') {
    throw UsageError("the password in " + path +
                     " ends in a carriage return, which no client would send; save the file with "
                     "Unix line ends");
  }
  return password;
}

bool is_loopback(const std::string& address) {
  constexpr uint32_t kLoopbackNetwork = 127;
  in_addr parsed{};
  return inet_pton(AF_INET, address.c_str(), &parsed) == 1 &&
         ntohl(parsed.s_addr) >> 24 == kLoopbackNetwork;
}

void check_options(const Options& options) {
  const Settings& settings = options.settings;
  if (options.heap_file.empty()) throw UsageError("--heap FILE is needed");
  if (settings.port == 0 && settings.unix_socket.empty()) {
    throw UsageError("--port 0 needs --unixsocket PATH");
  }
  if (settings.port != 0 && settings.password.empty() && !is_loopback(settings.bind_address)) {
    throw UsageError("--bind " + settings.bind_address +
                     " lets others than this machine in; that needs --requirepass-file FILE");
  }
}

}  // namespace

Options parse_options(int count, char** arguments) {
  enum { kHeap = 1, kPort, kBind, kUnixSocket, kSizeMax, kPassword };
  const option known[] = {{"heap", required_argument, nullptr, kHeap},
                          {"port", required_argument, nullptr, kPort},
                          {"bind", required_argument, nullptr, kBind},
                          {"unixsocket", required_argument, nullptr, kUnixSocket},
                          {"size-max", required_argument, nullptr, kSizeMax},
                          {"requirepass-file", required_argument, nullptr, kPassword},
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
      case kPassword:
        options.settings.password = read_password(optarg);
        break;
      case -1:
        if (optind < count) throw UsageError("what is " + std::string(arguments[optind]) + "?");
        check_options(options);
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

void give_back_freed_memory() {
  constexpr int kLargeBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  mallopt(M_TRIM_THRESHOLD, 2 * kLargeBytes);
}

}  // namespace kv
