// What only sock_diag(7) says about a UNIX socket; nothing where the kernel has none
// (CONFIG_UNIX_DIAG).
#pragma once

#include <linux/unix_diag.h>

#include <cstdint>
#include <optional>

namespace pawl::wsp {

// The file that it is bound to.
std::optional<unix_diag_vfs> bound_file_of(int socket);
// What shutdown(2) ended: kShutReceiving, kShutSending.
std::optional<std::uint8_t> shut_of(int socket);
// Of one that listens: how many may wait for it.
std::optional<int> backlog_of(int socket);

}  // namespace pawl::wsp
