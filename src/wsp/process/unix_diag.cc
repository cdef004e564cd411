#include "wsp/process/unix_diag.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "medium/descriptor.h"
#include "wsp/process/sock_diag.h"

namespace pawl::wsp {

namespace {

template <class T>
std::optional<T> answer_of(int socket, std::uint32_t question, std::uint16_t attribute_type) {
  struct stat facts{};
  const Descriptor netlink(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!netlink.valid() || ::fstat(socket, &facts) != 0) return std::nullopt;
  auto request = diag_question<unix_diag_req>(AF_UNIX, 0);
  request.asked.udiag_states = ~0U;
  request.asked.udiag_ino = static_cast<std::uint32_t>(facts.st_ino);
  request.asked.udiag_show = question;
  std::fill(std::begin(request.asked.udiag_cookie), std::end(request.asked.udiag_cookie), ~0U);
  alignas(nlmsghdr) char answer[1024];
  if (::send(netlink.get(), &request, sizeof(request), 0) != sizeof(request)) return std::nullopt;
  const ssize_t length = ::recv(netlink.get(), answer, sizeof(answer), 0);
  const auto* const header = reinterpret_cast<const nlmsghdr*>(answer);
  constexpr std::size_t kBefore = NLMSG_LENGTH(sizeof(unix_diag_msg));
  if (length < static_cast<ssize_t>(kBefore) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
    return std::nullopt;
  std::size_t at = NLMSG_ALIGN(kBefore);
  rtattr attribute{};
  T found{};
  while (at + RTA_LENGTH(sizeof(found)) <= static_cast<std::size_t>(length)) {
    std::memcpy(&attribute, answer + at, sizeof(attribute));
    std::memcpy(&found, answer + at + RTA_LENGTH(0), sizeof(found));
    if (attribute.rta_type == attribute_type) return found;
    at += std::max<std::size_t>(RTA_ALIGN(attribute.rta_len), RTA_LENGTH(0));
  }
  return std::nullopt;
}

}  // namespace

std::optional<unix_diag_vfs> bound_file_of(int socket) {
  return answer_of<unix_diag_vfs>(socket, UDIAG_SHOW_VFS, UNIX_DIAG_VFS);
}

std::optional<std::uint8_t> shut_of(int socket) {
  return answer_of<std::uint8_t>(socket, 0, UNIX_DIAG_SHUTDOWN);
}

std::optional<int> backlog_of(int socket) {
  const auto found = answer_of<unix_diag_rqlen>(socket, UDIAG_SHOW_RQLEN, UNIX_DIAG_RQLEN);
  if (!found) return std::nullopt;
  return static_cast<int>(found->udiag_wqueue);
}

}  // namespace pawl::wsp
