#include "crash/trace.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <span>
#include <stdexcept>

namespace pawl::test {
namespace {

constexpr std::array<char, 8> kMagic = {'P', 'A', 'W', 'L', 'T', 'R', 'C', '3'};
// Whatever a damaged trace says, no more is taken into memory at once.
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 32;

class Writer {
 public:
  explicit Writer(const std::string& path)
      : path_(path), file_(path, std::ios::binary | std::ios::trunc) {}

  void bytes(std::span<const std::byte> from) {
    file_.write(reinterpret_cast<const char*>(from.data()),
                static_cast<std::streamsize>(from.size()));
  }
  void number(std::uint64_t value) { bytes(std::as_bytes(std::span(&value, 1))); }
  void text(const std::string& value) {
    number(value.size());
    bytes(std::as_bytes(std::span(value)));
  }
  void mark(const std::optional<Mark>& mark) {
    number(mark.has_value() ? 1 : 0);
    if (!mark.has_value()) return;
    bytes(mark->journal_id);
    text(mark->journal_path);
    number(mark->is_opening ? 1 : 0);
    bytes(mark->recovered_id);
  }
  // Pages of zeros are left out.
  void content(const Content& content) {
    number(content.size());
    std::array<std::byte, kPageBytes> page{};
    for (std::uint64_t start = 0; start < content.size(); start += kPageBytes) {
      content.read(start, page);
      if (std::all_of(page.begin(), page.end(), [](std::byte b) { return b == std::byte{0}; }))
        continue;
      number(start);
      bytes(page);
    }
    number(content.size());
  }
  void finish() {
    file_.flush();
    if (!file_) throw std::runtime_error("cannot write the trace " + path_);
  }

 private:
  const std::string path_;
  std::ofstream file_;
};

class Loader {
 public:
  explicit Loader(const std::string& path) : path_(path), file_(path, std::ios::binary) {}

  void bytes(std::span<std::byte> into) {
    file_.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    if (!file_) throw std::runtime_error("cannot read the trace " + path_);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  std::uint64_t count() {
    const std::uint64_t value = number();
    if (value > kBytesMax) throw std::runtime_error(path_ + " is no trace, or a damaged one");
    return value;
  }
  std::string text() {
    std::string value(count(), '\0');
    bytes(std::as_writable_bytes(std::span(value)));
    return value;
  }
  std::optional<Mark> mark() {
    if (number() == 0) return std::nullopt;
    Mark mark;
    bytes(mark.journal_id);
    mark.journal_path = text();
    mark.is_opening = number() != 0;
    bytes(mark.recovered_id);
    return mark;
  }
  Content content() {
    Content content;
    const std::uint64_t size = number();
    content.resize(size);
    std::array<std::byte, kPageBytes> page{};
    for (std::uint64_t start = number(); start < size; start = number()) {
      bytes(page);
      content.write(start,
                    std::span(page).first(std::min<std::uint64_t>(kPageBytes, size - start)));
    }
    return content;
  }

 private:
  const std::string path_;
  std::ifstream file_;
};

void save_disk(Writer& writer, const StoredDisk& disk) {
  writer.content(disk.base);
  writer.mark(disk.mark);
  writer.number(disk.journal.has_value() ? 1 : 0);
  if (disk.journal.has_value()) writer.content(*disk.journal);
}

StoredDisk load_disk(Loader& loader) {
  StoredDisk disk;
  disk.base = loader.content();
  disk.mark = loader.mark();
  if (loader.number() != 0) disk.journal = loader.content();
  return disk;
}

}  // namespace

void Trace::save(const std::string& path) const {
  Writer writer(path);
  writer.bytes(std::as_bytes(std::span(kMagic)));
  writer.number(can_mark ? 1 : 0);
  writer.number(is_memory ? 1 : 0);
  writer.number(volumes.size());
  for (const Volume& volume : volumes) {
    save_disk(writer, volume.at_first);
    writer.number(volume.commits.size());
    for (const Content& content : volume.commits) writer.content(content);
  }
  writer.number(events.size());
  for (const Event& event : events) {
    for (const std::uint64_t number :
         {static_cast<std::uint64_t>(event.kind), std::uint64_t{event.failed},
          std::uint64_t{event.volume}, std::uint64_t{event.file}, event.offset, event.length})
      writer.number(number);
    writer.number(event.bytes == nullptr ? 0 : event.bytes->size());
    if (event.bytes != nullptr) writer.bytes(*event.bytes);
    writer.mark(event.marked);
  }
  writer.finish();
}

Trace Trace::load(const std::string& path) {
  Loader loader(path);
  std::array<char, 8> magic{};
  loader.bytes(std::as_writable_bytes(std::span(magic)));
  if (magic != kMagic) throw std::runtime_error(path + " is no trace of this version");
  Trace trace;
  trace.can_mark = loader.number() != 0;
  trace.is_memory = loader.number() != 0;
  trace.volumes.resize(loader.count());
  for (Volume& volume : trace.volumes) {
    volume.at_first = load_disk(loader);
    volume.commits.resize(loader.count());
    for (Content& content : volume.commits) content = loader.content();
  }
  const std::uint64_t events = loader.count();
  for (std::uint64_t i = 0; i < events; ++i) {
    Event event{};
    event.kind = static_cast<Event::Kind>(loader.number());
    event.failed = loader.number() != 0;
    event.volume = static_cast<std::uint16_t>(loader.number());
    event.file = static_cast<std::uint32_t>(loader.number());
    event.offset = loader.number();
    event.length = loader.number();
    std::vector<std::byte> bytes(loader.count());
    loader.bytes(bytes);
    if (!bytes.empty())
      event.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    event.marked = loader.mark();
    trace.events.push_back(std::move(event));
  }
  return trace;
}

std::string describe(const Event& event) {
  using Kind = Event::Kind;
  const std::string volume = "volume " + std::to_string(event.volume);
  const std::string file = volume + " file " + std::to_string(event.file);
  const std::string range =
      "bytes " + std::to_string(event.offset) + " to " + std::to_string(event.end());
  const std::string number = std::to_string(event.offset);
  switch (event.kind) {
    case Kind::write:
      return file + ": write of " + range + (event.failed ? ", which failed" : "");
    case Kind::store:
      return file + ": store of " + range;
    case Kind::write_back:
      return file + ": write-back of the line at " + number;
    case Kind::fence:
      return "fence";
    case Kind::resize:
      return file + ": resize to " + number + (event.failed ? ", which failed" : "");
    case Kind::zero:
      return file + ": zeros for " + range;
    case Kind::mark:
      return file + (event.marked.has_value() ? ": mark set" : ": mark cleared");
    case Kind::reserve:
      return file + ": space for " + range;
    case Kind::flush_begins:
      return file + ": flush begins";
    case Kind::flush_ends:
      return file + ": flush " + number + " ends";
    case Kind::flush_fails:
      return file + ": flush " + number + " fails";
    case Kind::write_lands:
      return file + ": write " + number + " is durable";
    case Kind::make_journal:
      return file + ": made, without a name";
    case Kind::name_journal:
      return volume + ": the journal is file " + std::to_string(event.file);
    case Kind::remove_journal:
      return volume + ": no journal";
    case Kind::names_land:
      return "names are durable";
    case Kind::commit_begins:
      return volume + ": commit " + number + " begins";
    case Kind::acknowledged:
      return volume + ": commit " + number + " is acknowledged";
    case Kind::refused:
      return volume + ": commit " + number + " is refused";
  }
  return "?";
}

}  // namespace pawl::test
