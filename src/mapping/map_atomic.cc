#include "mapping/map_atomic.h"

#include <sys/mman.h>
#include <cerrno>

#include "mapping/border.h"
#include "mapping/file_turn.h"
#include "mapping/memory_calls.h"
#include "mapping/open_mappings.h"
#include "medium/memory_functions.h"
#include "medium/open_medium.h"
#include "medium/own_descriptors.h"
#include "track/kernel_stores.h"
#include "track/store_modules.h"

namespace pawl {

void link_the_wrappers() {
#ifndef PAWL_PRELOAD_FACE
  link_kernel_stores_io();
  memory_calls::link_wrappers();
  own_descriptors::link_wrappers();
#endif
  link_kernel_stores_other();
}

namespace {

Status check(const MapCall& call) {
  constexpr int kUnderstood =
      MAP_ATOMIC | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE | MAP_NORESERVE;
  if ((call.flags & MAP_ATOMIC) != MAP_ATOMIC) return invalid("flags must contain MAP_ATOMIC");
  if ((call.flags & ~kUnderstood) != 0)
    return Status::failure(
        EOPNOTSUPP, PAWL_ERROR_INVALID_ARGUMENT,
        "flags contain what an atomic mapping cannot honour; it takes MAP_ATOMIC with MAP_FIXED, "
        "MAP_FIXED_NOREPLACE, MAP_POPULATE and MAP_NORESERVE");
  if (call.length == 0) return invalid("a mapping of 0 bytes cannot be");
  if (call.offset < 0 || static_cast<std::uint64_t>(call.offset) % kPageBytes != 0)
    return invalid("the offset must be a multiple of the page size (4096)");
  if (reinterpret_cast<std::uintptr_t>(call.address) % kPageBytes != 0 &&
      (call.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0)
    return invalid("a fixed address must be a multiple of the page size (4096)");
  if (call.length > std::size_t{1} << 47)
    return Status::failure(
        ENOMEM, PAWL_ERROR_NO_ADDRESS_SPACE,
        "there is no address space for a mapping of " + std::to_string(call.length) + " bytes");
  return {};
}

// The opened file's window, among the open mappings.
Status show(Result<std::unique_ptr<Mapping>> mapping, const MapCall& call, void** result) {
  if (!mapping.ok()) return mapping.status();
  const auto close_after = [&](const Status& status) {
    [[maybe_unused]] const Status ignored = mapping.value()->close();
    return status;
  };
  const bool replaces = (call.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED;
  if (replaces) {
    const AddressRange range = range_of(call.address, call.length);
    Status made = memory_calls::check_way(range);
    if (made.ok()) made = memory_calls::make_way(range);
    if (!made.ok()) return close_after(made);
  }
  auto at = mapping.value()->map_window(
      call.address, round_up(call.length, kPageBytes), call.protection,
      call.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE), static_cast<std::uint64_t>(call.offset));
  if (!at.ok()) {
    if (replaces) memory_calls::leave_nothing(range_of(call.address, call.length));
    return close_after(at.status());
  }
  const Window window = *mapping.value()->window();
  std::shared_ptr<Mapping> shared = std::move(mapping.value());
  if (const Status added = open_mappings::add(shared, window); !added.ok()) {
    [[maybe_unused]] const Status ignored = shared->close();
    return added;
  }
  if ((call.flags & MAP_POPULATE) != 0)
    memory::advise(window.address, window.length, MADV_POPULATE_READ);
  *result = at.value();
  return {};
}

}  // namespace

Status check_tracker(const Options& options) {
  return options.tracker == TrackerChoice::store ? check_stores_are_marked() : Status();
}

Status map_atomic(const MapCall& call, const pawl_options* given, void** result) {
  PAWL_TRY(check(call));
  link_the_wrappers();
  auto options = given != nullptr ? Options::from_public(*given) : Options::from_environment();
  if (!options.ok()) return options.status();
  options.value().mapped_by = call.caller;
  PAWL_TRY(check_tracker(options.value()));
  auto medium = open_medium(call.descriptor, options.value().medium);
  if (!medium.ok()) return medium.status();
  const FileTurn turn(FileTurn::To::open_or_close, *medium.value());
  return show(Mapping::open(std::move(medium.value()), options.value()), call, result);
}

Status map_atomic_in(const std::shared_ptr<Group>& group, const MapCall& call, void** result) {
  PAWL_TRY(check(call));
  link_the_wrappers();
  auto medium = open_medium(call.descriptor, MediumKind::block);
  if (!medium.ok()) return medium.status();
  const FileTurn turn(FileTurn::To::open_or_close, *medium.value());
  return show(Group::join(group, std::move(medium.value())), call, result);
}

}  // namespace pawl
