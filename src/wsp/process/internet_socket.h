// Sockets of IPv4 and IPv6 that listen, or are bound, made anew.
#pragma once

#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

// With its options, its owner, and the address that it had, if any; it neither listens nor is
// connected yet, and a stream shares its address (SO_REUSEADDR) until give_reuse().
// `shares_port`: with others of the program's, as SharedPorts has it.
Result<Descriptor> make_internet_socket(const SavedDescriptor& saved, const SavedProcess& program,
                                        bool shares_port);

// That it had; also of a UNIX socket.
Status connect_to_peer(const DescriptorFacts& facts, int socket);

// Whether a socket can be made with its options and its owner; of an Internet stream, whether
// nobody else has its address, and of datagrams, whether there is a way to its peer.
Status check_bound_socket(const SavedDescriptor& saved, const SavedProcess& program);

// Whether nobody would share a stream's address with it (SO_REUSEPORT), and get some of its
// connections: a parent that it is from, or another program of the same user that is to.
Status check_unshared_address(const SavedDescriptor& saved, const SavedProcess& program);

// What cannot be done with a socket's address, and what helps.
std::string with_advice(const std::string& what, int error_number, const DescriptorFacts& facts);

}  // namespace pawl::wsp
