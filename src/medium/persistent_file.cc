#include "medium/persistent_file.h"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "medium/law.h"

namespace pawl {

constinit std::atomic<std::uint64_t> MemoryWindow::bytes_owned_{0};

MemoryWindow::MemoryWindow(MemoryWindow&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      is_owned_(std::exchange(other.is_owned_, false)) {}

MemoryWindow& MemoryWindow::operator=(MemoryWindow&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_owned_, other.is_owned_);
  return *this;
}

MemoryWindow::~MemoryWindow() {
  if (!is_owned_) return;
  ::munmap(address_, bytes_);
  bytes_owned_.fetch_sub(bytes_);
}

PersistentFile::PersistentFile(MediumFile& beneath, MemoryWindow window,
                               std::shared_ptr<PersistentMemory> memory, std::string path)
    : beneath_(beneath),
      window_(std::move(window)),
      memory_(std::move(memory)),
      path_(std::move(path)) {
  // A process that died may have changed the file, and not have flushed that.
  changed_beneath();
}

PersistentFile::PersistentFile(std::unique_ptr<MediumFile> beneath, MemoryWindow window,
                               std::shared_ptr<PersistentMemory> memory, std::string path)
    : owned_(std::move(beneath)),
      beneath_(*owned_),
      window_(std::move(window)),
      memory_(std::move(memory)),
      path_(std::move(path)) {
  // A process that died may have changed the file, and not have flushed that.
  changed_beneath();
}

// ------------------------------------------------------------------------------- size and space

void PersistentFile::forget() {
  const std::lock_guard size_lock(size_mutex_);
  const std::lock_guard lock(space_mutex_);
  space_.clear();
  space_prefix_.store(0);
  learned_.store(false);
  changed_beneath();
}

Status PersistentFile::learn() {
  if (learned_.load(std::memory_order_acquire)) return {};
  const std::lock_guard size_lock(size_mutex_);
  if (learned_.load()) return {};
  auto present = beneath_.size();
  if (!present.ok()) return present.status();
  auto prefix = beneath_.allocated_prefix_bytes();
  if (!prefix.ok()) return prefix.status();
  size_bytes_.store(present.value());
  const std::lock_guard lock(space_mutex_);
  const std::uint64_t end = round_down(prefix.value(), kPageBytes);
  space_.add(0, end);
  space_prefix_.store(end);
  learned_.store(true, std::memory_order_release);
  return {};
}

Status PersistentFile::check_window(std::uint64_t offset, std::uint64_t length) const {
  if (offset <= window_.bytes() && length <= window_.bytes() - offset) return {};
  return Status::failure(EFBIG, PAWL_ERROR_REOPEN_TO_GROW,
                         path_ + " cannot grow past " + std::to_string(window_.bytes()) +
                             " bytes while it is open as memory: so much of the address "
                             "space was there for it. Close it and open it again, or use "
                             "PAWL_MEDIUM=block");
}

bool PersistentFile::has_space(std::uint64_t offset, std::uint64_t length) const {
  if (offset + length <= space_prefix_.load(std::memory_order_relaxed)) return true;
  const std::unique_lock lock(space_mutex_, std::try_to_lock);
  return lock.owns_lock() && space_.contains(offset, offset + length);
}

Status PersistentFile::take_space(std::uint64_t offset, std::uint64_t length) {
  if (has_space(offset, length)) return {};
  const std::uint64_t start = round_down(offset, kPageBytes);
  const std::uint64_t end = round_up(offset + length, kPageBytes);
  const Status reserved = beneath_.reserve(start, end - start);
  changed_beneath();
  PAWL_TRY(reserved);
  const std::lock_guard lock(space_mutex_);
  space_.add(start, end);
  if (start <= space_prefix_.load()) space_prefix_.store(std::max(space_prefix_.load(), end));
  return {};
}

// Before the space goes, so that nobody takes it for there.
void PersistentFile::lose_space(std::uint64_t offset, std::uint64_t end) {
  const std::lock_guard lock(space_mutex_);
  // Blocks may be smaller than pages: where part of a page goes, all of it has to be asked for.
  const std::uint64_t start = round_down(offset, kPageBytes);
  space_.remove(start, end);
  space_prefix_.store(std::min(space_prefix_.load(), start));
}

Result<std::uint64_t> PersistentFile::size() {
  PAWL_TRY(learn());
  return size_bytes_.load();
}

Status PersistentFile::resize(std::uint64_t size_bytes) {
  PAWL_TRY(check_window(0, size_bytes));
  PAWL_TRY(learn());
  const std::lock_guard size_lock(size_mutex_);
  // What is still on its way to bytes that are cut off must not come later.
  memory_->fence();
  const std::uint64_t before = size_bytes_.load();
  if (size_bytes < before) {
    lose_space(size_bytes, ~std::uint64_t{0});
    size_bytes_.store(size_bytes);
  }
  Status changed = beneath_.resize(size_bytes);
  changed_beneath();
  if (!changed.ok()) {
    // It may have been made: what is behind the smaller size is not loaded.
    size_bytes_.store(std::min(before, size_bytes));
    return changed;
  }
  size_bytes_.store(size_bytes);
  return {};
}

// For a write that ends behind the end.
Status PersistentFile::grow(std::uint64_t size_bytes) {
  const std::lock_guard size_lock(size_mutex_);
  if (size_bytes <= size_bytes_.load()) return {};
  const Status changed = beneath_.resize(size_bytes);
  changed_beneath();
  PAWL_TRY(changed);
  size_bytes_.store(size_bytes);
  return {};
}

Status PersistentFile::reserve(std::uint64_t offset, std::uint64_t length) {
  PAWL_TRY(check_window(offset, length));
  PAWL_TRY(learn());
  return take_space(offset, length);
}

Status PersistentFile::punch(std::uint64_t offset, std::uint64_t length) {
  PAWL_TRY(check_window(offset, length));
  PAWL_TRY(learn());
  memory_->fence();
  lose_space(offset, round_up(offset + length, kPageBytes));
  const Status punched = beneath_.punch(offset, length);
  changed_beneath();
  return punched;
}

// --------------------------------------------------------------------------------------- bytes

Status PersistentFile::read(std::uint64_t offset, std::span<std::byte> into) {
  PAWL_TRY(learn());
  const std::uint64_t size_bytes = size_bytes_.load();
  const std::uint64_t end = std::min<std::uint64_t>(offset + into.size(), size_bytes);
  const std::size_t present = end > offset ? end - offset : 0;
  if (present > 0) {
    const auto bytes = into.first(present);
    if (end <= window_.bytes() && has_space(offset, present))
      std::memcpy(bytes.data(), window_.address() + offset, present);
    else
      PAWL_TRY(beneath_.read(offset, bytes));
  }
  std::memset(into.data() + present, 0, into.size() - present);
  return {};
}

Status PersistentFile::write(std::uint64_t offset, std::span<const std::byte> from) {
  if (from.empty()) return {};
  // Most writes: of bytes before the end, of which it is known that they have their space.
  const std::uint64_t end = offset + from.size();
  if (end > offset && end <= window_.bytes() &&
      end <= space_prefix_.load(std::memory_order_relaxed) &&
      end <= size_bytes_.load(std::memory_order_relaxed)) {
    memory_->copy(window_.address() + offset, from);
    return {};
  }
  return write_elsewhere(offset, from);
}

Status PersistentFile::write_elsewhere(std::uint64_t offset, std::span<const std::byte> from) {
  PAWL_TRY(check_window(offset, from.size()));
  PAWL_TRY(learn());
  PAWL_TRY(take_space(offset, from.size()));
  if (offset + from.size() > size_bytes_.load()) PAWL_TRY(grow(offset + from.size()));
  memory_->copy(window_.address() + offset, from);
  return {};
}

void PersistentFile::write_in_place(std::uint64_t offset, std::span<const std::byte> from) {
  PAWL_ASSERT(offset + from.size() <= size_bytes_.load(std::memory_order_relaxed));
  memory_->copy(window_.address() + offset, from);
}

Status PersistentFile::zero(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return {};
  PAWL_TRY(check_window(offset, length));
  PAWL_TRY(learn());
  PAWL_TRY(take_space(offset, length));
  const std::uint64_t end = std::min(offset + length, size_bytes_.load());
  if (end > offset) memory_->zero(window_.address() + offset, end - offset);
  return {};
}

Status PersistentFile::flush() {
  if (!is_broken(Law::fence_what_was_copied)) memory_->fence();
  const std::uint64_t changes = beneath_changes_.made();
  if (!beneath_changes_.any(changes) || is_broken(Law::sync_the_size)) return {};
  PAWL_TRY(beneath_.flush());
  beneath_changes_.flushed(changes);
  return {};
}

}  // namespace pawl
