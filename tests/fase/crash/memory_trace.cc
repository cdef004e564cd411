#include "fase/crash/memory_trace.h"

#include <fstream>
#include <stdexcept>

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
  write_all(to, at_first);
  write_all(to, events);
  if (!to.flush()) throw std::runtime_error("the trace cannot be written: " + path);
}

MemoryTrace MemoryTrace::load(const std::string& path) {
  MemoryTrace trace;
  std::ifstream from(path, std::ios::binary);
  read_all(from, trace.at_first);
  read_all(from, trace.events);
  if (!from) throw std::runtime_error("the trace cannot be read: " + path);
  return trace;
}

}  // namespace pawl::test
