#include "wsp/process/signed_sockets.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>

#include "medium/descriptor.h"
#include "wsp/process/sock_diag.h"

namespace pawl::wsp {

namespace {

constexpr int kTcpKeysInformation = 40;      // TCP_AO_INFO, which Debian 12 does not name
constexpr std::uint32_t kListening = 10;     // TCP_LISTEN, as the kernel counts
constexpr std::size_t kAnswerBytes = 65536;  // of a dump the kernel sends at most half as much
constexpr std::size_t kInformationBytes = 128;

// Fails with ENOENT where there is none.
bool has_authentication_keys(int socket) {
  std::array<char, kInformationBytes> information{};
  socklen_t bytes = sizeof(information);
  return ::getsockopt(socket, IPPROTO_TCP, kTcpKeysInformation, information.data(), &bytes) == 0;
}

bool has_signature_keys(const nlmsghdr* header) {
  const auto* const message = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  int left = static_cast<int>(header->nlmsg_len) - static_cast<int>(NLMSG_LENGTH(sizeof(*message)));
  const auto* attribute = reinterpret_cast<const rtattr*>(message + 1);
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == INET_DIAG_MD5SIG) return true;
  }
  return false;
}

// Nothing of what the kernel does not tell us.
std::set<std::uint32_t> find_signed(int family) {
  std::set<std::uint32_t> found;
  const Descriptor netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  auto request = diag_question<inet_diag_req_v2>(family, NLM_F_DUMP);
  request.asked.sdiag_protocol = IPPROTO_TCP;
  request.asked.idiag_ext = 1U << (INET_DIAG_INFO - 1);  // without which it tells of no keys
  request.asked.idiag_states = 1U << kListening;
  if (!netlink.valid() || ::send(netlink.get(), &request, sizeof(request), 0) != sizeof(request))
    return found;
  alignas(nlmsghdr) std::array<char, kAnswerBytes> answer;
  while (true) {
    const ssize_t length = ::recv(netlink.get(), answer.data(), answer.size(), 0);
    if (length <= 0) return found;
    auto left = static_cast<unsigned>(length);
    const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
    for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return found;  // the end, or an error
      if (has_signature_keys(header))
        found.insert(static_cast<const inet_diag_msg*>(NLMSG_DATA(header))->idiag_inode);
    }
  }
}

}  // namespace

bool SignedSockets::contains(int socket, const DescriptorFacts& facts) {
  if (facts.domain == AF_UNIX || facts.protocol != IPPROTO_TCP) return false;
  if (has_authentication_keys(socket)) return true;
  if (facts.kind != static_cast<std::uint32_t>(DescriptorKind::listening)) return false;
  const auto [inodes, is_first] = inodes_.try_emplace(facts.domain);
  if (is_first) inodes->second = find_signed(facts.domain);
  return inodes->second.contains(static_cast<std::uint32_t>(facts.inode));
}

}  // namespace pawl::wsp
