#include "wsp/process/multicast.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "wsp/process/proc.h"

namespace pawl::wsp {

namespace {

// Any user may join as many as he likes: no save asks about more of them.
constexpr std::size_t kGroupsMax = 1024;
constexpr int kReadsMax = 64;  // of the list of them, of a page each, or more

// A membership takes memory of the socket's own, which the kernel counts; little else does.
bool may_be_member(int socket) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> counted{};
  socklen_t bytes = sizeof(counted);
  return ::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, counted.data(), &bytes) != 0 ||
         bytes <= SK_MEMINFO_OPTMEM * sizeof(counted[0]) || counted[SK_MEMINFO_OPTMEM] != 0;
}

bool is_member(int socket, int level, std::uint32_t interface, const sockaddr_storage& group) {
  group_filter asked{};
  asked.gf_interface = interface;
  asked.gf_group = group;
  socklen_t bytes = sizeof(asked);
  return ::getsockopt(socket, level, MCAST_MSFILTER, &asked, &bytes) == 0;
}

// A line for each interface, and its groups indented below.
class LinesOfVersion4 {
 public:
  static constexpr const char* kName = "net/igmp";

  // Nothing of a line that names no group.
  bool parse(const std::string& line, std::uint32_t& interface, sockaddr_storage& group) {
    unsigned number = 0;
    if (!line.starts_with('\t')) {
      if (std::sscanf(line.c_str(), "%u", &number) == 1) interface_ = number;
      return false;
    }
    if (std::sscanf(line.c_str(), " %x", &number) != 1) return false;
    auto* const address = reinterpret_cast<sockaddr_in*>(&group);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = number;
    interface = interface_;
    return true;
  }

 private:
  unsigned interface_ = 0;
};

class LinesOfVersion6 {
 public:
  static constexpr const char* kName = "net/igmp6";

  static bool parse(const std::string& line, std::uint32_t& interface, sockaddr_storage& group) {
    char digits[2 * sizeof(in6_addr) + 1];
    if (std::sscanf(line.c_str(), "%u %*s %32s", &interface, digits) != 2) return false;
    auto* const address = reinterpret_cast<sockaddr_in6*>(&group);
    address->sin6_family = AF_INET6;
    for (std::size_t i = 0; i < sizeof(in6_addr); ++i) {
      unsigned byte = 0;
      if (std::sscanf(digits + 2 * i, "%2x", &byte) != 1) return false;
      address->sin6_addr.s6_addr[i] = static_cast<std::uint8_t>(byte);
    }
    return true;
  }
};

template <class Lines>
Membership find_among(pid_t process, int socket, int level) {
  int reads = 0;
  const std::string text = read_proc(process, Lines::kName, [&] { return ++reads > kReadsMax; });
  std::string_view left = text;
  Lines lines;
  for (std::size_t count = 0; !left.empty();) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    const std::string line(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    std::uint32_t interface = 0;
    sockaddr_storage group{};
    if (!lines.parse(line, interface, group)) continue;
    if (is_member(socket, level, interface, group)) return Membership::member;
    if (++count == kGroupsMax) return Membership::not_known;
  }
  return reads > kReadsMax ? Membership::not_known : Membership::none;
}

}  // namespace

Membership membership_of(pid_t process, int socket, int domain) {
  if (!may_be_member(socket)) return Membership::none;
  // A socket of IPv6 may join groups of both.
  const Membership of_4 = find_among<LinesOfVersion4>(process, socket, IPPROTO_IP);
  if (of_4 != Membership::none || domain != AF_INET6) return of_4;
  return find_among<LinesOfVersion6>(process, socket, IPPROTO_IPV6);
}

}  // namespace pawl::wsp
