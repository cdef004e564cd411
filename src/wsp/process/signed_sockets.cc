#include "wsp/process/signed_sockets.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include "wsp/process/sock_diag.h"

namespace pawl::wsp {

namespace {

constexpr int kTcpKeysInformation = 40;      // TCP_AO_INFO, which Debian 12 does not name
constexpr std::size_t kAnswerBytes = 65536;  // longer is no attribute
constexpr std::size_t kInformationBytes = 128;
// Which of those that share an address is named depends on who would connect: the sockets of a
// group of a thousand have been named by then, each of them.
constexpr std::uint16_t kQuestionsMax = 16384;

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

std::uint32_t interface_of(int socket) {
  int number = 0;
  socklen_t bytes = sizeof(number);
  return ::getsockopt(socket, SOL_SOCKET, SO_BINDTOIFINDEX, &number, &bytes) == 0
             ? static_cast<std::uint32_t>(number)
             : 0;
}

using Question = DiagQuestion<inet_diag_req_v2>;

// Who listens at its address.
Question question_about(int socket, const DescriptorFacts& facts) {
  Question question = diag_question<inet_diag_req_v2>(facts.domain, 0);
  question.asked.sdiag_protocol = IPPROTO_TCP;
  question.asked.idiag_ext = 1U << (INET_DIAG_INFO - 1);  // without which it tells of no keys
  inet_diag_sockid& id = question.asked.id;
  id.idiag_if = interface_of(socket);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (facts.domain == AF_INET) {
    const auto* const address = reinterpret_cast<const sockaddr_in*>(&facts.address);
    id.idiag_sport = address->sin_port;
    id.idiag_src[0] = address->sin_addr.s_addr;
    return question;
  }
  const auto* const address = reinterpret_cast<const sockaddr_in6*>(&facts.address);
  id.idiag_sport = address->sin6_port;
  std::memcpy(id.idiag_src, &address->sin6_addr, sizeof(id.idiag_src));
  // From an address of the same version.
  if (IN6_IS_ADDR_V4MAPPED(&address->sin6_addr)) id.idiag_dst[2] = htonl(0xffff);
  return question;
}

// The inode of the one that is named, and whether it has keys.
std::optional<std::pair<std::uint32_t, bool>> ask(int netlink, const Question& question) {
  alignas(nlmsghdr) static thread_local std::array<char, kAnswerBytes> answer;
  if (::send(netlink, &question, sizeof(question), 0) != sizeof(question)) return std::nullopt;
  const ssize_t length = ::recv(netlink, answer.data(), answer.size(), 0);
  const auto* const header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (length < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg))) ||
      header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return std::nullopt;
  const auto* const message = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  return std::pair(message->idiag_inode, has_signature_keys(header));
}

}  // namespace

SocketKeys SignedSockets::judge(int socket, const DescriptorFacts& facts) {
  if (facts.domain == AF_UNIX || facts.protocol != IPPROTO_TCP) return SocketKeys::none;
  if (has_authentication_keys(socket)) return SocketKeys::some;
  if (facts.kind != static_cast<std::uint32_t>(DescriptorKind::listening)) return SocketKeys::none;
  return find(socket, facts);
}

SocketKeys SignedSockets::find(int socket, const DescriptorFacts& facts) {
  const auto inode = static_cast<std::uint32_t>(facts.inode);
  if (!netlink_.valid())
    netlink_ = Descriptor(
        ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  Question question = question_about(socket, facts);
  for (std::uint16_t port = 1; port <= kQuestionsMax && !known_.contains(inode); ++port) {
    question.asked.id.idiag_dport = htons(port);
    const auto named = ask(netlink_.get(), question);
    if (!named) return SocketKeys::none;
    known_.emplace(*named);
  }
  const auto found = known_.find(inode);
  if (found == known_.end()) return SocketKeys::not_known;
  return found->second ? SocketKeys::some : SocketKeys::none;
}

}  // namespace pawl::wsp
