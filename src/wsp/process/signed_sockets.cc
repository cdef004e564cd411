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
#include <memory>

#include "wsp/process/sock_diag.h"

namespace pawl::wsp {

namespace {

constexpr int kTcpKeysInformation = 40;      // TCP_AO_INFO, which Debian 12 does not name
constexpr std::size_t kAnswerBytes = 65536;  // longer is no attribute
constexpr std::size_t kInformationBytes = 128;
// Which of those that share an address is named depends on who would connect: the sockets of a
// group of a thousand have been named by then, each of them.
constexpr std::uint16_t kQuestionsMax = 16384;
constexpr std::uint32_t kListening = 10;  // TCP_LISTEN, as the kernel counts
constexpr int kAnswersMax = 256;          // about a port: of some hundred sockets each

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

// 0 where the kernel does not tell.
int number_of_option(int socket, int option) {
  int number = 0;
  socklen_t bytes = sizeof(number);
  return ::getsockopt(socket, SOL_SOCKET, option, &number, &bytes) == 0 ? number : 0;
}

using Question = DiagQuestion<inet_diag_req_v2>;

// Who listens at its address.
Question question_about(int socket, const DescriptorFacts& facts) {
  Question question = diag_question<inet_diag_req_v2>(facts.domain, 0);
  question.asked.sdiag_protocol = IPPROTO_TCP;
  question.asked.idiag_ext = 1U << (INET_DIAG_INFO - 1);  // without which it tells of no keys
  inet_diag_sockid& id = question.asked.id;
  id.idiag_if = static_cast<std::uint32_t>(number_of_option(socket, SO_BINDTOIFINDEX));
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

// False at the end, or where the kernel does not tell.
bool note_answer(int netlink, SignedSockets::Known& known) {
  const auto answer = std::make_unique_for_overwrite<char[]>(kAnswerBytes);
  const ssize_t length = ::recv(netlink, answer.get(), kAnswerBytes, 0);
  if (length <= 0) return false;
  auto left = static_cast<unsigned>(length);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer.get());
  for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return false;
    const auto* const message = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
    known.emplace(message->idiag_inode, has_signature_keys(header));
  }
  return true;
}

bool send_to(int netlink, const Question& question) {
  return ::send(netlink, &question, sizeof(question), 0) == sizeof(question);
}

Descriptor open_netlink() {
  return Descriptor(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
}

// Who listens at the port of that question.
void note_all_at_port(Question question, SignedSockets::Known& known) {
  question.header.nlmsg_flags |= NLM_F_DUMP;
  question.asked.idiag_states = 1U << kListening;
  question.asked.id.idiag_dport = 0;
  const Descriptor netlink = open_netlink();  // its own, for the end may not be read
  if (!send_to(netlink.get(), question)) return;
  for (int count = 0; count < kAnswersMax && note_answer(netlink.get(), known); ++count) {
  }
}

}  // namespace

SocketKeys SignedSockets::judge(int socket, const DescriptorFacts& facts) {
  if (facts.domain == AF_UNIX || facts.protocol != IPPROTO_TCP) return SocketKeys::none;
  if (has_authentication_keys(socket)) return SocketKeys::some;
  if (facts.kind != static_cast<std::uint32_t>(DescriptorKind::listening)) return SocketKeys::none;
  return find(socket, facts);
}

bool SignedSockets::ask(int socket, const DescriptorFacts& facts, std::uint32_t inode) {
  if (!netlink_.valid()) netlink_ = open_netlink();
  Question question = question_about(socket, facts);
  // Without the option the kernel names the same one always.
  const int most = number_of_option(socket, SO_REUSEPORT) != 0 ? kQuestionsMax : 1;
  for (int port = 1; port <= most && !known_.contains(inode); ++port) {
    question.asked.id.idiag_dport = htons(static_cast<std::uint16_t>(port));
    if (!send_to(netlink_.get(), question) || !note_answer(netlink_.get(), known_)) return false;
  }
  if (!known_.contains(inode)) note_all_at_port(question, known_);
  return true;
}

SocketKeys SignedSockets::find(int socket, const DescriptorFacts& facts) {
  const auto inode = static_cast<std::uint32_t>(facts.inode);
  if (!ask(socket, facts, inode)) return SocketKeys::none;
  const auto found = known_.find(inode);
  if (found == known_.end()) return SocketKeys::not_known;
  return found->second ? SocketKeys::some : SocketKeys::none;
}

}  // namespace pawl::wsp
