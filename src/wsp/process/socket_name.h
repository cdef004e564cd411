// The names of UNIX sockets in file systems.  A name is no proof: whoever may write to one of its
// directories decides what lies there, before a save and while a restore binds it again.
#pragma once

#include <sys/types.h>

#include "medium/status.h"
#include "wsp/process/mount.h"
#include "wsp/process/records.h"
#include "wsp/process/unix_diag.h"

namespace pawl::wsp {

// Notes the mode and the owner of the name that the program's socket is bound to, if it has one.
// Fails where the name is not this socket's, or where the program could not make it again; where
// its file system may have a server that does not answer within some milliseconds, too (ETIMEDOUT).
Status capture_socket_name(pid_t leader, int socket, const SavedProcess& program,
                           MountTable& mounts, UnixSockets& sockets, DescriptorFacts& into);

// Whether bind_unix_socket() will find the name free, and may make it, as far as can be told
// without changing anything: an abstract one is bound for a moment.  In a process of its own
// (ProgramRights::take_whole_ones()), which may wait for a file server: who listens there can ask
// the kernel whose socket it is that connects.
Status check_socket_name(const DescriptorFacts& facts, const SavedProcess& program);

// Binds a UNIX socket to its address with the program's rights, and gives the name its mode and
// owner.  EADDRINUSE where something else than a socket that was left behind has the name.
Status bind_unix_socket(const DescriptorFacts& facts, int socket, const SavedProcess& program);

}  // namespace pawl::wsp
