#include <sys/mman.h>
#include <algorithm>
#include <cstring>

#include "crash/program.h"
#include "mapping/mapping.h"

namespace pawl::test {
namespace {

class PawlSubject final : public Subject {
 public:
  PawlSubject(std::unique_ptr<Mapping> mapping, char* window)
      : mapping_(std::move(mapping)), window_(window) {}

  char* bytes() override { return window_; }
  Status sync(std::uint64_t offset, std::uint64_t length) override {
    return mapping_->commit(window_ + offset, length);
  }
  Status sync_later(std::uint64_t offset, std::uint64_t length) override {
    return mapping_->commit_async(window_ + offset, length);
  }
  Status wait() override { return mapping_->wait(); }
  Status roll_back(std::uint64_t offset, std::uint64_t length, const Content& /*to*/) override {
    return mapping_->roll_back(window_ + offset, length);
  }
  Status truncate(std::uint64_t size_bytes) override { return mapping_->truncate(size_bytes); }
  Status close() override { return mapping_->close(); }
  std::uint64_t size() const override { return mapping_->size(); }

 private:
  std::unique_ptr<Mapping> mapping_;
  char* window_;
};

// A shared mapping as the kernel keeps it: a dirty page goes back to the file when it likes, and
// msync() writes the others and flushes.
class PlainSubject final : public Subject {
 public:
  PlainSubject(std::unique_ptr<Medium> medium, const SubjectOptions& options)
      : medium_(std::move(medium)),
        random_(options.seed),
        memory_(options.window_pages * kPageBytes),
        in_file_(memory_.size()) {}

  Status load() {
    auto present = medium_->base().size();
    if (!present.ok()) return present.status();
    size_ = present.value();
    PAWL_TRY(medium_->base().read(0, std::as_writable_bytes(std::span(memory_))));
    in_file_ = memory_;
    return {};
  }

  char* bytes() override { return memory_.data(); }
  Status sync(std::uint64_t offset, std::uint64_t length) override {
    PAWL_TRY(write_back(offset, length, 1));
    return medium_->base().flush();
  }
  Status sync_later(std::uint64_t offset, std::uint64_t length) override {
    return write_back(offset, length, 2);
  }
  Status wait() override { return sync(0, memory_.size()); }
  // The kernel has nothing of the kind: the program undoes what it did.
  Status roll_back(std::uint64_t /*offset*/, std::uint64_t /*length*/, const Content& to) override {
    PAWL_TRY(truncate(to.size()));
    to.read(0, std::as_writable_bytes(std::span(memory_)));
    return sync(0, memory_.size());
  }
  Status truncate(std::uint64_t size_bytes) override {
    PAWL_TRY(medium_->base().resize(size_bytes));
    for (std::vector<char>* bytes : {&memory_, &in_file_}) {
      if (size_bytes < bytes->size())
        std::fill(bytes->begin() + static_cast<std::ptrdiff_t>(size_bytes), bytes->end(), '\0');
    }
    size_ = size_bytes;
    return {};
  }
  void idle() override { [[maybe_unused]] const Status ignored = write_back(0, size_, 4); }
  Status close() override { return wait(); }
  std::uint64_t size() const override { return size_; }

 private:
  // One in so many of the dirty pages.
  Status write_back(std::uint64_t offset, std::uint64_t length, std::uint64_t one_in) {
    const std::uint64_t end = std::min<std::uint64_t>(size_, offset + length);
    for (std::uint64_t start = offset; start < end; start += kPageBytes) {
      const std::size_t count = std::min(kPageBytes, size_ - start);
      if (std::memcmp(&memory_[start], &in_file_[start], count) == 0) continue;
      if (below(random_, one_in) != 0) continue;
      PAWL_TRY(medium_->base().write(start, std::as_bytes(std::span(&memory_[start], count))));
      std::memcpy(&in_file_[start], &memory_[start], count);
    }
    return {};
  }

  std::unique_ptr<Medium> medium_;
  Random random_;
  std::vector<char> memory_;
  std::vector<char> in_file_;
  std::uint64_t size_ = 0;
};

}  // namespace

Result<std::unique_ptr<Subject>> open_subject(std::unique_ptr<Medium> medium,
                                              const SubjectOptions& options) {
  if (options.plain) {
    auto plain = std::make_unique<PlainSubject>(std::move(medium), options);
    PAWL_TRY(plain->load());
    return std::unique_ptr<Subject>(std::move(plain));
  }
  auto mapping = Mapping::open(std::move(medium), options.pawl);
  if (!mapping.ok()) return mapping.status();
  auto window = mapping.value()->map_window(nullptr, options.window_pages * kPageBytes,
                                            PROT_READ | PROT_WRITE, 0, 0);
  if (!window.ok()) return window.status();
  return std::unique_ptr<Subject>(
      std::make_unique<PawlSubject>(std::move(mapping.value()), window.value()));
}

Status recover_pawl(Medium& medium) { return recover(medium).status(); }

// What lies there is what there is.
Status recover_plain(Medium& /*medium*/) { return {}; }

}  // namespace pawl::test
