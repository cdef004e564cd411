// System calls that fail, as a sandbox, a network file system or a failing disk has them fail.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace pawl::test {

struct RefusedCall {
  long number;
  int error_number;
  std::optional<std::uint32_t> second_argument{};  // only with that
};

// From now on, for this process and its children.  False: there is no filter of system calls here.
inline bool refuse_calls(const std::vector<RefusedCall>& calls) {
  constexpr auto kNumber = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  // The low half, on a machine that stores it first.
  constexpr auto kSecond = static_cast<std::uint32_t>(offsetof(seccomp_data, args[1]));
  std::vector<sock_filter> rules;
  for (const RefusedCall& call : calls) {
    rules.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber));
    const auto number = static_cast<std::uint32_t>(call.number);
    rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0,
                             static_cast<std::uint8_t>(call.second_argument ? 3 : 1)));
    if (call.second_argument) {
      rules.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSecond));
      rules.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, *call.second_argument, 0, 1));
    }
    rules.push_back(BPF_STMT(BPF_RET | BPF_K,
                             SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(call.error_number)));
  }
  rules.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// From now on each such call raises SIGSYS in its thread instead, and does nothing.
inline bool trap_call(long number, std::uint32_t first_argument) {
  // The low half, on a machine that stores it first.
  constexpr auto kFirst = static_cast<std::uint32_t>(offsetof(seccomp_data, args[0]));
  std::vector<sock_filter> rules = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFirst),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first_argument, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace pawl::test
