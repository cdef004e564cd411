// The capabilities of a thread, as the kernel takes and gives them: in halves (capget(2)).
#pragma once

#include <linux/capability.h>

#include <array>
#include <cstdint>

namespace pawl::wsp {

struct Capabilities {
  std::uint64_t inheritable = 0;
  std::uint64_t permitted = 0;
  std::uint64_t effective = 0;
  bool operator==(const Capabilities&) const = default;
};

using KernelCapabilities = std::array<__user_cap_data_struct, 2>;

inline KernelCapabilities in_halves(const Capabilities& whole) {
  KernelCapabilities halves{};
  for (std::uint32_t i = 0; i < halves.size(); ++i) {
    const auto half = [&](std::uint64_t all) {
      return static_cast<std::uint32_t>(all >> (32 * i));
    };
    halves[i] = {half(whole.effective), half(whole.permitted), half(whole.inheritable)};
  }
  return halves;
}

inline Capabilities of_halves(const KernelCapabilities& halves) {
  const auto whole = [&](auto part) {
    return std::uint64_t{halves[1].*part} << 32 | halves[0].*part;
  };
  return {whole(&__user_cap_data_struct::inheritable), whole(&__user_cap_data_struct::permitted),
          whole(&__user_cap_data_struct::effective)};
}

}  // namespace pawl::wsp
