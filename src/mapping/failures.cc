#include "mapping/failures.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace pawl {

void Failures::take_note(const Status& status) noexcept {
  if (status.error_number() == EIO) return note_final(status);
  const std::lock_guard lock(mutex_);
  note_last(status);
}

Status Failures::note(Status status) {
  if (!status.ok()) take_note(status);
  return status;
}

void Failures::note_last(const Status& status) noexcept {
  last_number_ = status.error_number();
  last_code_ = status.code();
  try {
    last_ = status.text();
  } catch (const std::bad_alloc&) {
    last_.clear();
  }
}

void Failures::note_final(const Status& status) noexcept {
  const std::lock_guard lock(mutex_);
  note_last(status);
  if (!final_.ok()) return;
  try {
    final_ = status;
  } catch (const std::bad_alloc&) {
    final_ = status.with_text({});
  }
  has_final_.store(true);
}

std::string Failures::final_text() const {
  const std::lock_guard lock(mutex_);
  return final_.text();
}

void Failures::describe(MappingStatistics& statistics) const {
  const std::lock_guard lock(mutex_);
  statistics.last_error_number = last_number_;
  statistics.last_error_code = last_code_;
  const std::size_t shown = std::min(last_.size(), sizeof statistics.last_error - 1);
  std::memcpy(statistics.last_error, last_.data(), shown);
}

}  // namespace pawl
