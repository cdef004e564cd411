#include "medium/permissions.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
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
  // The kernel asks no list where the mode grants the group nothing, not even to execute: whom it
  // names would be one of the others.
  if (!list.value().empty() && (wanted.st_mode & kOfGroup) != 0 && (mode & kOfGroup) == 0) {
    list.value().clear();
    mode &= ~kOfOthers;
  }
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
  // Where the mode grants the group nothing at all, the kernel asks the mode alone: whom the list
  // names is then one of the others.
  if ((status.st_mode & kOfGroup) == 0) list.value().clear();
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

bool Answers::denies_a_group() const {
  return std::any_of(groups.begin(), groups.end(), [](const auto& one) { return !one.second; });
}

bool Answers::grants_a_group() const {
  return std::any_of(groups.begin(), groups.end(), [](const auto& one) { return one.second; });
}

Answers answers_of(const Rights& rights, std::uint16_t right) {
  Answers answers;
  answers.others = (rights.mode & right) != 0;
  if (rights.list.empty()) {
    answers.groups[rights.group] = (rights.mode >> 3 & right) != 0;
    return answers;
  }
  const auto mask = std::find_if(rights.list.begin(), rights.list.end(),
                                 [](const Entry& entry) { return entry.tag == ACL_MASK; });
  const bool is_masked = mask != rights.list.end() && (mask->rights & right) == 0;
  for (const Entry& entry : rights.list) {
    const bool grants = (entry.rights & right) != 0 && !is_masked;
    if (entry.tag == ACL_USER) answers.users[entry.id] |= grants;
    if (entry.tag == ACL_GROUP_OBJ) answers.groups[rights.group] |= grants;
    if (entry.tag == ACL_GROUP) answers.groups[entry.id] |= grants;
  }
  return answers;
}

MayWrite may_write(const Rights& rights, uid_t user) {
  const Answers file = answers_of(rights, ACL_WRITE);
  const bool is_shown = is_shown_user(user);
  if (user == rights.user && is_shown) return MayWrite::yes;
  for (const auto& [id, may] : file.users) {
    if (id == user && is_shown) return may ? MayWrite::yes : MayWrite::no;
    if (!is_shown && !is_shown_user(id) && !may) return MayWrite::no;  // it may be he
  }
  if (file.others && !file.denies_a_group()) return MayWrite::yes;
  return file.grants_a_group() ? MayWrite::by_a_group : MayWrite::no;
}

// Whom no list names is in whatever groups make the difference: two are enough, one by which the
// one file lets him in, and one by which the other does not.
std::optional<Intruder> find_intruder(const Rights& one, const Rights& than, std::uint16_t right,
                                      HiddenIds hidden) {
  const Answers in = answers_of(one, right);
  const Answers out = answers_of(than, right);
  const bool may_be_let_in = in.others || in.grants_a_group();
  const bool may_be_kept_out = !out.others || out.denies_a_group();
  const bool keeps_a_user_out = std::any_of(out.users.begin(), out.users.end(),
                                            [](const auto& user) { return !user.second; });
  if (!may_be_kept_out && !keeps_a_user_out) return std::nullopt;
  const auto is_known = [&](bool is_shown) {
    return is_shown || hidden == HiddenIds::are_the_same;
  };
  // 1 or 0 as the answers name somebody, and what; -1 where they do not, as far as is known.
  const auto answer = [](const auto& answers, std::uint32_t id, bool known) {
    const auto found = known ? answers.find(id) : answers.end();
    return found == answers.end() ? -1 : int{found->second};
  };
  const auto is_owner = [&](uid_t user) {
    return is_known(is_shown_user(user)) && (user == one.user || user == than.user);
  };
  for (const auto& [user, is_in] : in.users) {
    const bool known = is_known(is_shown_user(user));
    const int other = answer(out.users, user, known);
    if (is_in && !is_owner(user) && (other == 0 || (other < 0 && (may_be_kept_out || !known))))
      return Intruder{Intruder::Kind::user, user};
  }
  for (const auto& [user, is_in] : out.users) {
    if (!is_in && !is_owner(user) && may_be_let_in &&
        answer(in.users, user, is_known(is_shown_user(user))) < 0)
      return Intruder{Intruder::Kind::user, user};
  }
  if (in.others && !out.others) return Intruder{Intruder::Kind::anyone, 0};
  for (const auto& [group, is_in] : in.groups) {
    const int other = answer(out.groups, group, is_known(is_shown_group(group)));
    if (is_in && (other == 0 || (other < 0 && may_be_kept_out)))
      return Intruder{Intruder::Kind::group, group};
  }
  for (const auto& [group, is_in] : out.groups) {
    if (!is_in && in.others && answer(in.groups, group, is_known(is_shown_group(group))) < 0)
      return Intruder{Intruder::Kind::group, group};
  }
  return std::nullopt;
}

bool grants_more(int one, int than) {
  const auto first = rights_of_file(one, {});
  const auto second = rights_of_file(than, {});
  if (!first.ok() || !second.ok()) return true;
  const auto has_intruder = [&](std::uint16_t right) {
    return find_intruder(first.value(), second.value(), right, HiddenIds::are_the_same).has_value();
  };
  return has_intruder(ACL_READ) || has_intruder(ACL_WRITE);
}

}  // namespace pawl
