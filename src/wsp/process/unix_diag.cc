#include "wsp/process/unix_diag.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "medium/descriptor.h"
#include "wsp/process/proc.h"
#include "wsp/process/sock_diag.h"

namespace pawl::wsp {

namespace {

constexpr std::uint64_t kSocketsMax = 4096;     // the kernel lists them in some milliseconds
constexpr std::size_t kListBytes = 32768;       // as much as the kernel answers at once
constexpr std::uint32_t kUnconnectedState = 7;  // TCP_CLOSE
constexpr std::uint32_t kListeningState = 10;   // TCP_LISTEN

using UnixQuestion = DiagQuestion<unix_diag_req>;

// How much waits the kernel has counted only of those that listen.
Descriptor ask_for_unix(UnixQuestion question, bool listens) {
  question.asked.udiag_show = UDIAG_SHOW_VFS | (listens ? UDIAG_SHOW_RQLEN : 0U);
  std::fill(std::begin(question.asked.udiag_cookie), std::end(question.asked.udiag_cookie), ~0U);
  Descriptor netlink(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  const bool is_asked =
      netlink.valid() && ::send(netlink.get(), &question, sizeof(question), 0) == sizeof(question);
  return is_asked ? std::move(netlink) : Descriptor();
}

template <class T>
T value_of(const rtattr* attribute) {
  T value{};
  std::memcpy(&value, RTA_DATA(attribute),
              std::min<std::size_t>(RTA_PAYLOAD(attribute), sizeof(T)));
  return value;
}

UnixSocketFacts facts_in(const nlmsghdr* header) {
  UnixSocketFacts facts;
  const auto* const message = static_cast<const unix_diag_msg*>(NLMSG_DATA(header));
  int left = static_cast<int>(header->nlmsg_len) - static_cast<int>(NLMSG_LENGTH(sizeof(*message)));
  const auto* attribute = reinterpret_cast<const rtattr*>(message + 1);
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == UNIX_DIAG_VFS) facts.file = value_of<unix_diag_vfs>(attribute);
    if (attribute->rta_type == UNIX_DIAG_RQLEN)
      facts.backlog = value_of<unix_diag_rqlen>(attribute).udiag_wqueue;
    if (attribute->rta_type == UNIX_DIAG_SHUTDOWN) facts.shut = value_of<std::uint8_t>(attribute);
  }
  return facts;
}

// False at the end, or where the kernel does not tell.
bool note_answers(int netlink, char* answer, UnixSockets::Known& known) {
  const ssize_t length = ::recv(netlink, answer, kListBytes, 0);
  if (length <= 0) return false;
  auto left = static_cast<unsigned>(length);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        header->nlmsg_len < NLMSG_LENGTH(sizeof(unix_diag_msg)))
      return false;
    const auto* const message = static_cast<const unix_diag_msg*>(NLMSG_DATA(header));
    known.insert_or_assign(message->udiag_ino, facts_in(header));
  }
  return true;
}

UnixSockets::Known read_all(std::uint32_t states) {
  UnixSockets::Known known;
  UnixQuestion question = diag_question<unix_diag_req>(AF_UNIX, NLM_F_DUMP);
  question.asked.udiag_states = states;
  const Descriptor netlink = ask_for_unix(question, states == 1U << kListeningState);
  const auto answer = std::make_unique_for_overwrite<char[]>(kListBytes);
  while (netlink.valid() && known.size() <= kSocketsMax &&
         note_answers(netlink.get(), answer.get(), known)) {
  }
  return known;
}

// "NAME BYTES SOCKETS ...": the kernel has counted them.
std::uint64_t count_sockets() {
  std::istringstream lines(read_proc(::getpid(), "net/protocols"));
  std::uint64_t count = 0;
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    std::string bytes;
    std::uint64_t sockets = 0;
    if (words >> name >> bytes >> sockets && name.starts_with("UNIX")) count += sockets;
  }
  return count;
}

std::optional<UnixSocketFacts> ask_about_inode(std::uint32_t inode, bool listens) {
  UnixQuestion question = diag_question<unix_diag_req>(AF_UNIX, 0);
  question.asked.udiag_states = ~0U;
  question.asked.udiag_ino = inode;
  UnixSockets::Known known;
  const Descriptor netlink = ask_for_unix(question, listens);
  const auto answer = std::make_unique_for_overwrite<char[]>(kListBytes);
  if (netlink.valid()) note_answers(netlink.get(), answer.get(), known);
  const auto found = known.find(inode);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<UnixSocketFacts> ask_about_socket(int socket) {
  struct stat facts{};
  if (::fstat(socket, &facts) != 0) return std::nullopt;
  return ask_about_inode(static_cast<std::uint32_t>(facts.st_ino), false);
}

bool UnixSockets::are_too_many() {
  if (!are_too_many_) are_too_many_ = count_sockets() > kSocketsMax;
  return *are_too_many_;
}

const UnixSocketFacts* UnixSockets::find(std::uint64_t inode, bool listens) {
  if (are_too_many()) return nullptr;
  const auto number = static_cast<std::uint32_t>(inode);
  const UnixSocketFacts* found = find_among(listens ? listening : unconnected, number);
  // Those that are connected are the most, and few are asked for.
  if (found == nullptr && !listens) found = find_among(other, number);
  if (found != nullptr) return found;
  // A list lacks some where others were closed while the kernel made it.
  const std::optional<UnixSocketFacts> alone = ask_about_inode(number, listens);
  if (!alone) return nullptr;
  return &known_[listens ? listening : other]->insert_or_assign(number, *alone).first->second;
}

const UnixSocketFacts* UnixSockets::find_among(Kind kind, std::uint32_t inode) {
  constexpr std::array kStates{1U << kListeningState, 1U << kUnconnectedState,
                               ~(1U << kListeningState | 1U << kUnconnectedState)};
  std::optional<Known>& known = known_[kind];
  if (!known) known = read_all(kStates[kind]);
  const auto found = known->find(inode);
  return found == known->end() ? nullptr : &found->second;
}

}  // namespace pawl::wsp
