#include "wsp/vm/device_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "medium/checksum.h"

namespace pawl::wsp::vm {

namespace {

// A machine of 1 GiB without a graphics card has a third of a MiB.
constexpr std::uint64_t kReservedBytes = std::uint64_t{4} << 20;
constexpr std::array<char, 8> kStateMagic{'P', 'A', 'W', 'L', 'W', 'S', 'P', 'D'};

struct StoredStateHeader {
  std::array<char, 8> magic;
  std::uint64_t generation;
  std::uint64_t save_id;
  std::uint32_t reserved;
  std::uint32_t checksum;  // of what stands before it
};
static_assert(sizeof(StoredStateHeader) == 32);
constexpr std::size_t kStateChecksumAt = offsetof(StoredStateHeader, checksum);

}  // namespace

Result<DeviceStateFile> DeviceStateFile::open(const MachineDirectory& directory, int flags) {
  Result<Descriptor> file = directory.files().open_file(kDeviceStateFile, O_RDWR | flags);
  if (!file.ok()) return file.status();
  return DeviceStateFile(std::move(file.value()), directory.path_of(kDeviceStateFile));
}

Result<DeviceStateFile> DeviceStateFile::open_for_saves(const MachineDirectory& directory) {
  Result<DeviceStateFile> made = open(directory, O_CREAT);
  if (made.ok()) PAWL_TRY(made.value().reserve(0));
  return made;
}

Status DeviceStateFile::reserve(std::uint64_t more_bytes) {
  if (const int error_number =
          ::posix_fallocate(file_.get(), 0, static_cast<off_t>(kReservedBytes + more_bytes));
      error_number != 0)
    return FailedCall{error_number, "cannot reserve space in " + path_};
  return {};
}

Result<DeviceStateFile> DeviceStateFile::open_saved(const MachineDirectory& directory) {
  return open(directory, 0);
}

Status DeviceStateFile::forget() {
  constexpr std::array<std::byte, kDeviceStateHeaderBytes + sizeof(std::uint64_t)> kZeros{};
  if (::pwrite(file_.get(), kZeros.data(), kZeros.size(), 0) != static_cast<ssize_t>(kZeros.size()))
    return FailedCall{errno, "cannot write " + path_};
  return {};
}

Status DeviceStateFile::rewind() {
  if (::lseek(file_.get(), kDeviceStateHeaderBytes, SEEK_SET) < 0)
    return FailedCall{errno, "cannot use " + path_};
  return {};
}

Result<std::uint64_t> DeviceStateFile::stream_bytes() const {
  const off_t end = ::lseek(file_.get(), 0, SEEK_CUR);
  if (end <= static_cast<off_t>(kDeviceStateHeaderBytes))
    return Status::failure(EIO, "QEMU wrote no device state into " + path_);
  return static_cast<std::uint64_t>(end) - kDeviceStateHeaderBytes;
}

Result<std::uint32_t> DeviceStateFile::stream_checksum(std::uint64_t bytes) const {
  alignas(64) std::array<std::byte, 65536> piece;
  std::uint32_t sum = 0;
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t wanted = std::min<std::uint64_t>(piece.size(), bytes - at);
    const ssize_t count = ::pread(file_.get(), piece.data(), wanted,
                                  static_cast<off_t>(kDeviceStateHeaderBytes + at));
    if (count < 0) return FailedCall{errno, "cannot read " + path_};
    if (count == 0) return Status::failure(EBADMSG, path_ + " is shorter than what was saved");
    sum = checksum(piece.data(), static_cast<std::size_t>(count), sum);
    at += static_cast<std::uint64_t>(count);
  }
  return sum;
}

Status DeviceStateFile::write_header(const DeviceStateHeader& header) {
  StoredStateHeader into{kStateMagic, header.generation, header.save_id, 0, 0};
  into.checksum = checksum(&into, kStateChecksumAt);
  if (::pwrite(file_.get(), &into, sizeof into, 0) != ssize_t{sizeof into})
    return FailedCall{errno, "cannot write " + path_};
  return {};
}

Result<DeviceStateHeader> DeviceStateFile::read_header() const {
  StoredStateHeader from{};
  if (::pread(file_.get(), &from, sizeof from, 0) < 0)
    return FailedCall{errno, "cannot read " + path_};
  if (from.magic != kStateMagic || from.checksum != checksum(&from, kStateChecksumAt))
    return Status::failure(EBADMSG, "the header of " + path_ + " is damaged");
  return DeviceStateHeader{from.generation, from.save_id};
}

Result<bool> DeviceStateFile::has_stream() const {
  std::uint64_t first = 0;
  if (::pread(file_.get(), &first, sizeof first, kDeviceStateHeaderBytes) < 0)
    return FailedCall{errno, "cannot read " + path_};
  return first != 0;
}

Status DeviceStateFile::flush() {
  if (::fdatasync(file_.get()) != 0) return FailedCall{errno, "cannot flush " + path_};
  return {};
}

}  // namespace pawl::wsp::vm
