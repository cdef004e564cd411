#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "fuzz/face.h"
#include "mapping/open_mappings.h"
#include "medium/block_medium.h"
#include "pawl/pawl.h"

namespace pawl::fuzz {
namespace {

// One directory a process, in memory where there is such a place.
const std::string& scratch_path() {
  static const std::string path = [] {
    const char* const wanted = std::getenv("PAWL_TEST_DIR");
    std::string pattern = wanted != nullptr                           ? wanted
                          : std::filesystem::is_directory("/dev/shm") ? "/dev/shm"
                                                                      : "/tmp";
    pattern += "/pawl-fuzz-XXXXXX";
    require(::mkdtemp(pattern.data()) != nullptr, "a directory for the file can be made");
    static std::string to_remove;
    to_remove = pattern;
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(to_remove, ignored);
    });
    return pattern + "/file";
  }();
  return path;
}

class CFace final : public Face {
 public:
  explicit CFace(const Content& content) {
    std::filesystem::remove(journal_path());
    content.save_as(scratch_path());
    descriptor_ = ::open(scratch_path().c_str(), O_RDWR | O_CLOEXEC);
    require(descriptor_ >= 0, "the file can be opened");
  }
  ~CFace() override {
    if (address_ != nullptr) crash();
    ::close(descriptor_);
    std::filesystem::remove(journal_path());
    std::filesystem::remove(scratch_path());
  }

  Status open(const Options& options, const PageRun& window) override {
    pawl_options given{};
    if (pawl_options_init(&given) != 0) return failure();
    given.journal_size_bytes = options.journal_size_bytes;
    given.tracker = static_cast<int>(options.tracker);
    given.apply = static_cast<int>(options.apply);
    given.apply_threshold_pages = options.apply_threshold_pages;
    given.resident_bytes_max = options.resident_bytes_max;
    length_ = window.count * kPageBytes;
    void* const at =
        pawl_mmap_with(nullptr, length_, PROT_READ | PROT_WRITE, MAP_ATOMIC, descriptor_,
                       static_cast<off_t>(window.first * kPageBytes), &given);
    if (at == MAP_FAILED) return failure();
    address_ = static_cast<char*>(at);
    return {};
  }
  Status commit(char* address, std::size_t length) override {
    return status_of(pawl_msync(address, length, MS_SYNC));
  }
  Status queue(char* address, std::size_t length) override {
    return status_of(pawl_msync(address, length, MS_ASYNC));
  }
  Status wait() override { return status_of(pawl_wait(address_)); }
  Status roll_back(char* address, std::size_t length) override {
    return status_of(pawl_msync(address, length, MS_INVALIDATE));
  }
  Status truncate(std::uint64_t size_bytes) override {
    return status_of(pawl_ftruncate(descriptor_, static_cast<off_t>(size_bytes)));
  }
  Status close() override {
    const Status status = status_of(pawl_munmap(address_, length_));
    closed_at_ = std::exchange(address_, nullptr);
    return status;
  }
  void crash() override {
    void* const at = std::exchange(address_, nullptr);
    if (const auto mapping = open_mappings::find(at)) open_mappings::remove(*mapping, at);
  }
  Status recover() override {
    return pawl_recover(scratch_path().c_str()) >= 0 ? Status{} : failure();
  }

  void call_wrongly(const Call& call) override {
    if (address_ == nullptr) {
      must_fail(status_of(pawl_munmap(closed_at_, length_)), EINVAL, "unmapped twice");
      must_fail(status_of(pawl_msync(closed_at_, length_, MS_SYNC)), ENOMEM, "unmapped");
      return must_fail(status_of(pawl_wait(closed_at_)), ENOMEM, "unmapped");
    }
    switch (call.a % 16) {
      case 0:
        return must_fail(commit(address_ + 1 + call.b % 4095, 100), EINVAL, "unaligned");
      case 1:
        return must_fail(commit(address_, length_ + 1 + call.b), ENOMEM, "past the end");
      case 2:
        return must_fail(commit(address_, ~std::size_t{0} - call.b), ENOMEM, "length overflows");
      case 3:
        return must_fail(queue(address_ + length_, kPageBytes), ENOMEM, "behind");
      case 4: {
        const int flags = static_cast<int>(call.b);
        if (flags == MS_SYNC || flags == MS_ASYNC || flags == MS_INVALIDATE) return;
        return must_fail(status_of(pawl_msync(address_, length_, flags)), EINVAL, "flags");
      }
      case 5:
        return must_fail(status_of(pawl_munmap(address_, length_ + kPageBytes)), EINVAL,
                         "unmapped with another length");
      case 6:
        return must_fail(status_of(pawl_munmap(address_ + kPageBytes, kPageBytes)), EINVAL,
                         "a part is unmapped");
      case 7:
        return must_fail(status_of(pawl_ftruncate(descriptor_, -1 - static_cast<off_t>(call.c))),
                         EINVAL, "a negative size");
      case 8:
        return must_fail(truncate(kTooLarge + call.c), EFBIG, "no such size");
      case 9:
        return must_fail(status_of(pawl_stats(address_, nullptr)), EINVAL, "no statistics");
      case 10:
        return must_fail(status_of(pawl_recover(scratch_path().c_str()) < 0 ? -1 : 0), EBUSY,
                         "recovery of a mapped file");
      case 11:
        return must_fail(status_of(pawl_recover(nullptr) < 0 ? -1 : 0), EINVAL, "no path");
      default:
        return map_wrongly(call);
    }
  }

  Content file() override { return Content::load_from(scratch_path()); }
  bool is_just_a_file() override { return !std::filesystem::exists(journal_path()); }
  Mapping* mapping() override { return open_mappings::find(address_).get(); }
  bool has_all_calls() const override { return false; }

 private:
  static std::string journal_path() { return scratch_path() + kJournalSuffix; }
  static Status failure() {
    require(*pawl_last_error() != '\0', "a failure says why");
    const int error_number = errno;
    return Status::failure(error_number, pawl_last_error());
  }
  static Status status_of(int result) { return result == 0 ? Status{} : failure(); }

  Status map(std::size_t length, int flags, int descriptor, off_t offset,
             const pawl_options* options) {
    return pawl_mmap_with(nullptr, length, PROT_READ | PROT_WRITE, flags, descriptor, offset,
                          options) == MAP_FAILED
               ? failure()
               : Status{};
  }
  void map_wrongly(const Call& call) {
    pawl_options options{};
    require(pawl_options_init(&options) == 0, "options have defaults");
    switch (call.b % 11) {
      case 0:
        return must_fail(map(length_, MAP_ATOMIC, descriptor_, 0, nullptr), EBUSY, "mapped twice");
      case 1:
        return must_fail(map(0, MAP_ATOMIC, descriptor_, 0, nullptr), EINVAL, "no length");
      case 2:
        return must_fail(map(length_, MAP_SHARED, descriptor_, 0, nullptr), EINVAL, "not atomic");
      case 3:
        return must_fail(map(length_, MAP_ATOMIC | MAP_LOCKED, descriptor_, 0, nullptr), EOPNOTSUPP,
                         "unknown flags");
      case 4:
        return must_fail(map(length_, MAP_ATOMIC, descriptor_, 1 + call.c % 4095, nullptr), EINVAL,
                         "unaligned offset");
      case 5:
        return must_fail(map(length_, MAP_ATOMIC, descriptor_, -4096, nullptr), EINVAL,
                         "negative offset");
      case 6:
        return must_fail(map(~std::size_t{0} - call.c, MAP_ATOMIC, descriptor_, 0, nullptr), ENOMEM,
                         "no such length");
      case 7:
        return must_fail(map(length_, MAP_ATOMIC, -1, 0, nullptr), EBADF, "no file");
      case 8:
        options.struct_size_bytes = call.c % 8;
        return must_fail(map(length_, MAP_ATOMIC, descriptor_, 0, &options), EINVAL,
                         "options of another size");
      case 9:
        options.journal_size_bytes = call.c % kJournalSizeMin;
        return must_fail(map(length_, MAP_ATOMIC, descriptor_, 0, &options), EINVAL,
                         "a journal too small");
      default:
        options.tracker = 3 + static_cast<int>(call.c % 1000);
        return must_fail(map(length_, MAP_ATOMIC, descriptor_, 0, &options), EINVAL,
                         "no such tracker");
    }
  }

  int descriptor_ = -1;
  char* address_ = nullptr;
  char* closed_at_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace

std::unique_ptr<Face> c_face(const Content& content) { return std::make_unique<CFace>(content); }

}  // namespace pawl::fuzz
