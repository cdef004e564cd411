// Files for the systems to work on.
#pragma once

#include <cstdint>
#include <string>

namespace pawl::bench {

// A file descriptor that closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  File& operator=(File&&) = delete;
  ~File();
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// A new file of so many bytes, all of them a hole.  `flags` join O_RDWR.
File make_sparse_file(const std::string& path, std::uint64_t bytes, int flags = 0);
// The same with every byte written and flushed, so that no later write has anything to allocate.
File make_written_file(const std::string& path, std::uint64_t bytes);
File open_file(const std::string& path, int flags);

}  // namespace pawl::bench
