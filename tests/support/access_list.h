// Access control lists, as the kernel takes and gives them.
#pragma once

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/types.h>
#include <sys/xattr.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace pawl::test {

inline constexpr const char* kAccessList = "system.posix_acl_access";
inline constexpr auto kNoId = static_cast<std::uint32_t>(ACL_UNDEFINED_ID);

struct [[gnu::packed]] AccessLine {
  std::uint16_t tag, rights;
  std::uint32_t id;
};

// False where the file system has no lists.
inline bool give_access_list(const std::string& path, const std::vector<AccessLine>& lines,
                             const char* attribute = kAccessList) {
  const std::uint32_t version = POSIX_ACL_XATTR_VERSION;
  std::string bytes(sizeof version + lines.size() * sizeof(AccessLine), '\0');
  std::memcpy(bytes.data(), &version, sizeof version);
  std::memcpy(bytes.data() + sizeof version, lines.data(), lines.size() * sizeof(AccessLine));
  return ::setxattr(path.c_str(), attribute, bytes.data(), bytes.size(), 0) == 0;
}

}  // namespace pawl::test
