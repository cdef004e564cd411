#include "heap/roots.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "heap/address_space.h"
#include "track/store_marks.h"

namespace pawl {
namespace {

using heap_format::NamedRoot;

Status check_name(std::string_view name) {
  if (name.empty() || name.size() > PAWL_HEAP_NAME_MAX || name.find('\0') != std::string_view::npos)
    return Status::failure(EINVAL, "the name of a root has 1 to " +
                                       std::to_string(PAWL_HEAP_NAME_MAX) + " bytes, none zero");
  return {};
}

Status no_such_name(std::string_view name) {
  return Status::failure(ENOENT, PAWL_ERROR_NO_SUCH_ROOT,
                         "the heap has no root named " + std::string(name));
}

Status outside() {
  return Status::failure(EINVAL, "a root must lead into the heap, for the next run to find it");
}

}  // namespace

std::string_view name_of(const NamedRoot& root) {
  return {root.name.data(), ::strnlen(root.name.data(), root.name.size())};
}

Result<char*> Roots::root() const {
  const std::uint64_t address = arena_.header().root;
  char* const root = memory_at(address);
  if (root != nullptr && !arena_.contains(root))
    return heap_damaged("the root leads out of the heap");
  return root;
}

Status Roots::set_root(char* address) {
  if (address != nullptr && !arena_.contains(address)) return outside();
  arena_.header().root = reinterpret_cast<std::uintptr_t>(address);
  note_stored(arena_.header().root);
  return {};
}

NamedRoot* Roots::find(std::string_view name) const {
  NamedRoot* const all = arena_.named_roots();
  NamedRoot* const end = all + PAWL_HEAP_ROOTS_MAX;
  NamedRoot* const found =
      std::find_if(all, end, [&](const NamedRoot& root) { return name_of(root) == name; });
  return found == end ? nullptr : found;
}

Result<Roots::Named> Roots::named(std::string_view name) const {
  PAWL_TRY(check_name(name));
  const NamedRoot* const found = find(name);
  if (found == nullptr) return no_such_name(name);
  PAWL_TRY(check(static_cast<std::uint32_t>(found - arena_.named_roots())));
  return Named{memory_at(found->address), found->type_tag};
}

Status Roots::set_named(std::string_view name, Named to) {
  PAWL_TRY(check_name(name));
  NamedRoot* slot = find(name);
  if (to.address == nullptr) {
    if (slot == nullptr) return no_such_name(name);
    *slot = {};
    note_stored(*slot);
    return {};
  }
  if (!arena_.contains(to.address)) return outside();
  if (slot == nullptr) slot = find({});
  if (slot == nullptr)
    return Status::failure(ENOSPC, PAWL_ERROR_TOO_MANY,
                           "a heap has " + std::to_string(PAWL_HEAP_ROOTS_MAX) +
                               " named roots at most; keep a container of names under one of them");
  *slot = {};
  std::copy(name.begin(), name.end(), slot->name.begin());
  slot->address = reinterpret_cast<std::uintptr_t>(to.address);
  slot->type_tag = to.type_tag;
  note_stored(*slot);
  return {};
}

std::uint32_t Roots::count() const {
  const NamedRoot* const all = arena_.named_roots();
  return static_cast<std::uint32_t>(
      std::count_if(all, all + PAWL_HEAP_ROOTS_MAX,
                    [](const NamedRoot& root) { return !name_of(root).empty(); }));
}

Status Roots::check(std::uint32_t slot) const {
  const NamedRoot& root = arena_.named_roots()[slot];
  const std::string_view name = name_of(root);
  if (name.empty()) return {};
  if (name.size() > PAWL_HEAP_NAME_MAX || !arena_.contains(memory_at(root.address)))
    return heap_damaged("named root " + std::to_string(slot) + " was overwritten");
  return {};
}

}  // namespace pawl
