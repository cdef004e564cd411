// Questions to sock_diag(7).
#pragma once

#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include <cstdint>

namespace pawl::wsp {

template <class Asked>
struct DiagQuestion {
  nlmsghdr header;
  Asked asked;
};

// About sockets of a family; `flags` say of which (NLM_F_DUMP: of all).
template <class Asked>
DiagQuestion<Asked> diag_question(int family, std::uint16_t flags) {
  DiagQuestion<Asked> question{};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  question.asked.sdiag_family = static_cast<std::uint8_t>(family);
  return question;
}

}  // namespace pawl::wsp
