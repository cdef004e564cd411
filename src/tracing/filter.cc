#include "tracing/filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace pawl::tracing {

namespace {

constexpr std::uint32_t kX32Bit = 0x40000000;  // calls of the x32 ABI, which no library of ours has
constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kReturn = BPF_RET | BPF_K;
constexpr std::uint32_t kHighHalf = 4;

void add(std::vector<sock_filter>& program, std::uint16_t code, std::uint32_t value,
         std::uint8_t if_true = 0, std::uint8_t if_false = 0) {
  program.push_back(sock_filter{code, if_true, if_false, value});
}

std::uint16_t comparison(When when) {
  switch (when) {
    case When::equals:
      return BPF_JMP | BPF_JEQ | BPF_K;
    case When::high_below:
    case When::high_from:
      return BPF_JMP | BPF_JGE | BPF_K;
    default:
      return BPF_JMP | BPF_JSET | BPF_K;
  }
}

// Skips `rest` instructions behind it when the condition does not hold.
void add_condition(std::vector<sock_filter>& program, const Condition& condition,
                   std::uint8_t rest) {
  const bool wants_true = condition.when == When::has_bits || condition.when == When::equals ||
                          condition.when == When::high_from;
  const bool is_of_high_half =
      condition.when == When::high_below || condition.when == When::high_from;
  add(program, kLoad,
      static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8u * condition.argument +
          (is_of_high_half ? kHighHalf : 0));
  add(program, comparison(condition.when), condition.value, wants_true ? 0 : rest,
      wants_true ? rest : 0);
}

void add_rule(std::vector<sock_filter>& program, const Rule& rule) {
  const bool has_first = rule.first.when != When::always;
  const bool has_second = rule.second.when != When::always;
  const auto conditions = static_cast<std::uint8_t>((has_first ? 2 : 0) + (has_second ? 2 : 0));
  // The accumulator holds an argument behind a condition: the number again, for what follows.
  const auto all = static_cast<std::uint8_t>(conditions + (conditions > 0 ? 2 : 1));
  add(program, BPF_JMP | BPF_JEQ | BPF_K, rule.number, 0, all);
  if (has_first) add_condition(program, rule.first, has_second ? 3 : 1);
  if (has_second) add_condition(program, rule.second, 1);
  add(program, kReturn, SECCOMP_RET_TRACE);
  if (conditions > 0) add(program, kLoad, offsetof(seccomp_data, nr));
}

}  // namespace

std::vector<sock_filter> make_filter(std::span<const Rule> rules, OtherTables others) {
  const std::uint32_t of_others =
      others == OtherTables::pass ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | ENOSYS;
  std::vector<sock_filter> program;
  add(program, kLoad, offsetof(seccomp_data, arch));
  add(program, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
  add(program, kReturn, of_others);
  add(program, kLoad, offsetof(seccomp_data, nr));
  add(program, BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1);
  add(program, kReturn, of_others);
  for (const Rule& rule : rules) add_rule(program, rule);
  add(program, kReturn, SECCOMP_RET_ALLOW);
  return program;
}

int install_filter(std::span<const sock_filter> filter) {
  const sock_fprog whole{static_cast<unsigned short>(filter.size()),
                         const_cast<sock_filter*>(filter.data())};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0) return 0;
  if (errno != EACCES) return errno;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0 ? 0 : errno;
}

}  // namespace pawl::tracing
