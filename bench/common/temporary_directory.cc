#include "common/temporary_directory.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/failure.h"

namespace pawl::bench {

TemporaryDirectory::TemporaryDirectory(const std::string& parent, const std::string& prefix) {
  std::filesystem::create_directories(parent);
  std::string name = std::filesystem::canonical(parent).string() + "/" + prefix + "-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) fail_with_errno("cannot make a directory in " + parent);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace pawl::bench
