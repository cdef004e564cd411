// Sockets of a program that have one port, and that the options which they have by now would keep
// from each other: it bound them with SO_REUSEADDR or SO_REUSEPORT, and took that away, as ntpd
// does.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "medium/descriptor.h"
#include "medium/status.h"
#include "wsp/process/records.h"

namespace pawl::wsp {

class SharedPorts {
 public:
  // Of a program that lives longer.
  explicit SharedPorts(const SavedProcess& saved);

  // ENOTSUP: it names two that no restore could bind beside each other, or not in the order in
  // which the program had.
  Status check() const;
  // make_internet_socket(), of each of the program's in turn, which stay open.  Of a port each is
  // bound alone before, which finds out whether others have its address; then those with an address
  // in common share it (SO_REUSEPORT) until all of them listen, and get their options once more.
  Result<Descriptor> make(const SavedDescriptor& saved);
  // Binds all that share a port, as a restore will; none of them listens.
  Status try_all();

 private:
  using Port = std::pair<int, std::uint16_t>;  // behind its protocol

  static bool is_with_port(const SavedDescriptor& saved);
  static Port port_of(const DescriptorFacts& facts);
  Status check_order() const;
  Status check_free(const Port& port) const;
  static bool shares_by_options(const std::vector<const SavedDescriptor*>& sockets);

  const SavedProcess& program_;
  std::map<Port, std::vector<const SavedDescriptor*>> shared_;
  std::map<Port, std::vector<const SavedDescriptor*>> bound_;
};

}  // namespace pawl::wsp
