#include "medium/permissions.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "medium/descriptor.h"

namespace pawl {
namespace {

constexpr const char* kListAttribute = "system.posix_acl_access";
constexpr std::size_t kListBytesMax = 65536;
constexpr mode_t kOfUser = 0700;
constexpr mode_t kOfGroup = 0070;
constexpr mode_t kOfOthers = 0007;
constexpr mode_t kContentBits = 0666;  // to read and to write
constexpr std::uint16_t kContentRights = 06;
constexpr auto kNobodyById = static_cast<std::uint32_t>(ACL_UNDEFINED_ID);

using Entry = AccessEntry;
using List = std::vector<Entry>;  // empty: the file has none

// As the kernel gives it: a version, and the entries.
std::vector<std::byte> encode(const List& list) {
  const posix_acl_xattr_header header{htole32(POSIX_ACL_XATTR_VERSION)};
  std::vector<std::byte> bytes(sizeof header + list.size() * sizeof(posix_acl_xattr_entry));
  std::memcpy(bytes.data(), &header, sizeof header);
  std::size_t at = sizeof header;
  for (const Entry& entry : list) {
    const posix_acl_xattr_entry encoded{htole16(entry.tag), htole16(entry.rights),
                                        htole32(entry.id)};
    std::memcpy(bytes.data() + at, &encoded, sizeof encoded);
    at += sizeof encoded;
  }
  return bytes;
}

// True: it is gone, or there was none.
bool remove_list(int file) {
  return ::fremovexattr(file, kListAttribute) == 0 || errno == ENODATA || errno == ENOTSUP ||
         errno == ENOSYS;
}

bool set_list(int file, const List& list) {
  const std::vector<std::byte> bytes = encode(list);
  return ::fsetxattr(file, kListAttribute, bytes.data(), bytes.size(), 0) == 0;
}

std::uint16_t rights_of(mode_t mode, unsigned shift) {
  return static_cast<std::uint16_t>(mode >> shift & 7);
}

// A list that grants users and groups what the owner, the group and the list of another file do, on
// a file of another owner, and perhaps of another group.
List list_for_another_owner(const List& list, const struct stat& wanted, mode_t mode,
                            bool is_of_group) {
  const auto of_group = [&](std::uint16_t rights) {
    return is_of_group ? rights : std::uint16_t{0};
  };
  List made = {{ACL_USER_OBJ, rights_of(mode, 6), kNobodyById},
               {ACL_USER, rights_of(mode, 6), wanted.st_uid}};
  std::uint16_t bound = rights_of(mode, 6);
  std::uint16_t group_rights = rights_of(mode, 3);
  std::uint16_t of_list = 7;
  for (const Entry& entry : list) {
    if (entry.tag == ACL_MASK) of_list = entry.rights;
    if (entry.tag == ACL_GROUP_OBJ) group_rights = entry.rights;
  }
  group_rights &= of_list;
  const auto add = [&](std::uint16_t tag, std::uint16_t rights, std::uint32_t id) {
    made.push_back({tag, rights, id});
    bound |= rights;
  };
  for (const Entry& entry : list) {
    if (entry.tag == ACL_USER && entry.id != wanted.st_uid)
      add(ACL_USER, entry.rights & of_list, entry.id);
  }
  add(ACL_GROUP_OBJ, of_group(group_rights), kNobodyById);
  if (!is_of_group) add(ACL_GROUP, group_rights, wanted.st_gid);
  for (const Entry& entry : list) {
    if (entry.tag == ACL_GROUP && (is_of_group || entry.id != wanted.st_gid))
      add(ACL_GROUP, entry.rights & of_list, entry.id);
  }
  made.push_back({ACL_MASK, bound, kNobodyById});
  made.push_back({ACL_OTHER, rights_of(mode, 0), kNobodyById});
  return made;
}

// The file's group is one of the others where it is not the group: these get no more than it has.
void give_group_to_others(List& list, mode_t& mode) {
  std::uint16_t of_group = static_cast<std::uint16_t>((mode & kOfGroup) >> 3);
  for (Entry& entry : list) {
    if (entry.tag != ACL_GROUP_OBJ) continue;
    of_group &= entry.rights;  // of which the mode has the bound
    entry.rights = 0;
  }
  for (Entry& entry : list) {
    if (entry.tag == ACL_OTHER) entry.rights &= of_group;
  }
  mode &= ~kOfGroup & (~kOfOthers | mode_t{of_group});
}

// A text, empty where it cannot be read.  A stream would take a lock of libc's that another thread
// of its parent may hold for ever in a child of _Fork().
std::array<char, 64> beginning_of(const char* path) {
  std::array<char, 64> text{};
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  if (file.get() >= 0 && ::read(file.get(), text.data(), text.size() - 1) < 0) text = {};
  return text;
}

// Where the kernel does not say, the number is the one that it has by default.
bool is_shown(unsigned id, const char* map_path, const char* overflow_path) {
  constexpr unsigned kOverflowDefault = 65534;
  constexpr unsigned kAll = ~0u;
  unsigned overflow = kOverflowDefault;
  if (std::sscanf(beginning_of(overflow_path).data(), "%u", &overflow) != 1)
    overflow = kOverflowDefault;
  // Lists have the other one.
  if (id != overflow && id != kAll) return true;
  unsigned inside = 0;
  unsigned outside = 0;
  unsigned count = 0;
  return std::sscanf(beginning_of(map_path).data(), "%u %u %u", &inside, &outside, &count) == 3 &&
         inside == 0 && count == kAll;
}

}  // namespace

bool is_shown_user(uid_t user) {
  return is_shown(user, "/proc/thread-self/uid_map", "/proc/sys/kernel/overflowuid");
}

bool is_shown_group(gid_t group) {
  return is_shown(group, "/proc/thread-self/gid_map", "/proc/sys/kernel/overflowgid");
}

Result<std::vector<AccessEntry>> access_list_of(int file, const std::string& name) {
  // Few are longer than that, and a commit that looks for one takes no memory for none.
  std::array<std::byte, 512> few{};
  std::vector<std::byte> many;
  std::span<std::byte> bytes(few);
  ssize_t length = ::fgetxattr(file, kListAttribute, bytes.data(), bytes.size());
  if (length < 0 && errno == ERANGE) {
    many.resize(kListBytesMax);
    bytes = many;
    length = ::fgetxattr(file, kListAttribute, bytes.data(), bytes.size());
  }
  if (length < 0) {
    if (errno == ENODATA || errno == ENOTSUP || errno == ENOSYS) return List{};
    return FailedCall{errno, "cannot read the access control list of " + name};
  }
  List list;
  posix_acl_xattr_entry entry{};
  for (std::size_t at = sizeof(posix_acl_xattr_header);
       at + sizeof entry <= static_cast<std::size_t>(length); at += sizeof entry) {
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    list.push_back({le16toh(entry.e_tag), le16toh(entry.e_perm), le32toh(entry.e_id)});
  }
  return list;
}

Status adopt_permissions(int from, int to, mode_t bits, const std::string& name, mode_t kept) {
  struct stat wanted{};
  struct stat held{};
  if (::fstat(from, &wanted) != 0 || ::fstat(to, &held) != 0)
    return FailedCall{errno, "cannot stat " + name};
  auto list = access_list_of(from, name);
  if (!list.ok()) return list.status();
  auto present = access_list_of(to, name);
  if (!present.ok()) return present.status();
  for (Entry& entry : list.value()) {
    entry.rights &= static_cast<std::uint16_t>(bits & 7);
    if (entry.tag == ACL_USER_OBJ) entry.rights |= rights_of(kept, 6);
  }
  mode_t mode = (wanted.st_mode & bits) | (kept & kOfUser);
  const bool has_owners = wanted.st_uid == held.st_uid && wanted.st_gid == held.st_gid &&
                          is_shown_user(held.st_uid) && is_shown_group(held.st_gid);
  if (has_owners && (held.st_mode & 0777) == mode && list.value() == present.value()) return {};

  // Whoever was granted something before has nothing meanwhile.
  if (::fchmod(to, mode & 0700) != 0)
    return FailedCall{errno, "cannot give " + name + " the mode of the file"};
  if (!has_owners && ::fchown(to, wanted.st_uid, wanted.st_gid) != 0) {
    const bool is_of_group = (wanted.st_gid == held.st_gid && is_shown_group(held.st_gid)) ||
                             ::fchown(to, static_cast<uid_t>(-1), wanted.st_gid) == 0;
    if (wanted.st_uid != held.st_uid &&
        set_list(to, list_for_another_owner(list.value(), wanted, mode, is_of_group)))
      return {};
    if (!is_of_group) give_group_to_others(list.value(), mode);
  }
  if (!list.value().empty() && set_list(to, list.value())) return {};
  // Whom the list names, to grant or to deny, would be one of the others.
  if (!remove_list(to) || !list.value().empty()) mode &= ~(kOfGroup | kOfOthers);
  if (::fchmod(to, mode) != 0)
    return FailedCall{errno, "cannot give " + name + " the mode of the file"};
  return {};
}

Result<Rights> rights_of_file(int file, const std::string& name) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return FailedCall{errno, "cannot stat " + name};
  auto list = access_list_of(file, name);
  if (!list.ok()) return list.status();
  for (Entry& entry : list.value()) entry.rights &= kContentRights;
  return Rights{status.st_uid, status.st_gid, status.st_mode & kContentBits,
                std::move(list.value())};
}

Rights common_rights(const Rights& one, const Rights& other) {
  Rights common = one;
  const bool has_one_user = one.user == other.user && is_shown_user(one.user);
  const bool has_one_group = one.group == other.group && is_shown_group(one.group);
  if (!one.list.empty() || !other.list.empty()) {
    if (has_one_user && has_one_group && one.list == other.list) return common;
    common.list.clear();
    common.mode &= kOfUser;
    return common;
  }
  mode_t of_group = other.mode >> 3 & kOfOthers;
  mode_t of_others = other.mode & kOfOthers;
  // Who is in the group of the one may be one of the others of the other, and the reverse.
  if (!has_one_group) of_group = of_others = of_group & of_others;
  // And the user of the other one may be in either.
  if (!has_one_user) {
    of_group &= other.mode >> 6;
    of_others &= other.mode >> 6;
  }
  common.mode &= kOfUser | of_group << 3 | of_others;
  return common;
}

Status give_rights(int file, const Rights& rights, const std::string& name) {
  if (::fchmod(file, rights.mode & kOfUser) != 0)
    return FailedCall{errno, "cannot change the mode of " + name};
  if (!rights.list.empty()) {
    if (set_list(file, rights.list)) return {};
    return FailedCall{errno, "cannot change the access control list of " + name};
  }
  if (!remove_list(file)) return FailedCall{errno, "cannot remove the list of " + name};
  if (::fchmod(file, rights.mode) != 0)
    return FailedCall{errno, "cannot change the mode of " + name};
  return {};
}

Writers writers_of(const Rights& rights) {
  Writers writers;
  writers.all_others = (rights.mode & S_IWOTH) != 0;
  if (rights.list.empty()) {
    if ((rights.mode & S_IWGRP) != 0) writers.groups.insert(rights.group);
    return writers;
  }
  // The mode has the list's bound for all but the owner and the others.
  if ((rights.mode & S_IWGRP) == 0) return writers;
  for (const Entry& entry : rights.list) {
    if ((entry.rights & ACL_WRITE) == 0) continue;
    if (entry.tag == ACL_USER) writers.users.insert(entry.id);
    if (entry.tag == ACL_GROUP_OBJ) writers.groups.insert(rights.group);
    if (entry.tag == ACL_GROUP) writers.groups.insert(entry.id);
  }
  return writers;
}

bool grants_more(int one, int than) {
  struct stat first{};
  struct stat second{};
  if (::fstat(one, &first) != 0 || ::fstat(than, &second) != 0) return true;
  constexpr mode_t kRights = 06;  // of one class
  if ((first.st_mode & ~second.st_mode & (kRights << 3 | kRights)) != 0) return true;
  // Of each the group is one of the others of the other.
  if (first.st_gid != second.st_gid &&
      (((first.st_mode & ~(second.st_mode >> 3)) | ((first.st_mode >> 3) & ~second.st_mode)) &
       kRights) != 0)
    return true;
  const auto list = access_list_of(one, {});
  const auto other = access_list_of(than, {});
  return !list.ok() || !other.ok() || (!list.value().empty() && list.value() != other.value());
}

}  // namespace pawl
