#include "fase/crash/memory_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "support/zeroed_data.h"

namespace pawl::test {
namespace {

template <class T>
void write_all(std::ofstream& to, const std::vector<T>& values) {
  const std::uint64_t count = values.size();
  to.write(reinterpret_cast<const char*>(&count), sizeof count);
  to.write(reinterpret_cast<const char*>(values.data()),
           static_cast<std::streamsize>(count * sizeof(T)));
}

template <class T>
void read_all(std::ifstream& from, std::vector<T>& values) {
  std::uint64_t count = 0;
  from.read(reinterpret_cast<char*>(&count), sizeof count);
  if (!from) return;
  values.resize(count);
  from.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(count * sizeof(T)));
}

}  // namespace

void MemoryTrace::save(const std::string& path) const {
  std::ofstream to(path, std::ios::binary);
  write_all(to, std::vector{file_bytes});
  write_all(to, segments);
  write_all(to, at_first);
  write_all(to, events);
  if (!to.flush()) throw std::runtime_error("the trace cannot be written: " + path);
}

MemoryTrace MemoryTrace::load(const std::string& path) {
  MemoryTrace trace;
  std::ifstream from(path, std::ios::binary);
  std::vector<std::uint64_t> file_bytes(1);
  read_all(from, file_bytes);
  trace.file_bytes = file_bytes[0];
  read_all(from, trace.segments);
  read_all(from, trace.at_first);
  read_all(from, trace.events);
  if (!from) throw std::runtime_error("the trace cannot be read: " + path);
  return trace;
}

void write_image(const std::string& path, const MemoryTrace& of,
                 const std::vector<std::byte>& image) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool written =
      file >= 0 && zero_data(file) && ftruncate(file, static_cast<off_t>(of.file_bytes)) == 0;
  const std::byte* at = image.data();
  for (const Segment& segment : of.segments) {
    written = written && pwrite(file, at, segment.bytes, static_cast<off_t>(segment.file_offset)) ==
                             static_cast<ssize_t>(segment.bytes);
    at += segment.bytes;
  }
  if (file >= 0) close(file);
  if (!written) throw std::runtime_error("there is no room for " + path);
}

}  // namespace pawl::test
