#include "wsp/process/records.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pawl::wsp {

namespace {

template <class T>
void add_all(ImageWriter& writer, const std::vector<T>& items) {
  writer.add_object(static_cast<std::uint64_t>(items.size()));
  writer.add(items.data(), items.size() * sizeof(T));
}

template <class T>
bool take_all(RecordReader& reader, std::vector<T>& into) {
  std::uint64_t count = 0;
  if (!reader.take_object(count) || count > reader.left() / sizeof(T)) return false;
  into.resize(count);
  return reader.take(into.data(), count * sizeof(T));
}

// What is handed to the kernel or printed with a length of its own.
template <std::size_t kBytes>
bool is_text(const char (&field)[kBytes]) {
  return std::memchr(field, 0, kBytes) != nullptr;
}

bool is_sound(const SavedDescriptor& descriptor) {
  return descriptor.facts.address_bytes <= sizeof(descriptor.facts.address) &&
         descriptor.facts.peer_bytes <= sizeof(descriptor.facts.peer) &&
         std::all_of(
             descriptor.options.begin(), descriptor.options.end(),
             [](const SocketOption& option) { return option.bytes <= sizeof(option.value); });
}

bool read_record(RecordReader& record, SavedProcess& into) {
  switch (record.kind()) {
    case RecordKind::system:
      return record.take_object(into.system) && is_text(into.system.release) &&
             is_text(into.system.boot);
    case RecordKind::process:
      return record.take_object(into.process) && take_all(record, into.groups) &&
             record.take_text(into.directory) && record.take_text(into.executable);
    case RecordKind::thread: {
      SavedThread& thread = into.threads.emplace_back();
      return record.take_object(thread.facts) && take_all(record, thread.vectors) &&
             take_all(record, thread.pending) && take_all(record, thread.processors) &&
             is_text(thread.facts.name);
    }
    case RecordKind::mapping: {
      SavedMapping& mapping = into.mappings.emplace_back();
      return record.take_object(mapping.facts) && record.take_text(mapping.name);
    }
    case RecordKind::origin: {
      OriginFacts facts{};
      Origin& origin = into.origins.emplace_back();
      if (!record.take_object(facts) || !record.take_text(origin.name)) return false;
      origin.start = facts.start;
      origin.bytes = facts.bytes;
      origin.offset = facts.offset;
      origin.inode = facts.inode;
      origin.is_file = facts.is_file != 0;
      return true;
    }
    case RecordKind::descriptor: {
      SavedDescriptor& descriptor = into.descriptors.emplace_back();
      return record.take_object(descriptor.facts) && record.take_text(descriptor.text) &&
             take_all(record, descriptor.options) && take_all(record, descriptor.entries) &&
             is_sound(descriptor);
    }
    case RecordKind::shared_signal:
      return take_all(record, into.pending);
  }
  return false;
}

}  // namespace

std::size_t record_bytes(const SavedDescriptor& descriptor) {
  return sizeof(descriptor.facts) + descriptor.text.size() +
         descriptor.options.size() * sizeof(descriptor.options[0]) +
         descriptor.entries.size() * sizeof(descriptor.entries[0]);
}

void write_records(ImageWriter& writer, const SavedProcess& process) {
  writer.begin(RecordKind::system);
  writer.add_object(process.system);
  writer.end();
  writer.begin(RecordKind::process);
  writer.add_object(process.process);
  add_all(writer, process.groups);
  writer.add_text(process.directory);
  writer.add_text(process.executable);
  writer.end();
  for (const SavedThread& thread : process.threads) {
    writer.begin(RecordKind::thread);
    writer.add_object(thread.facts);
    add_all(writer, thread.vectors);
    add_all(writer, thread.pending);
    add_all(writer, thread.processors);
    writer.end();
  }
  for (const SavedMapping& mapping : process.mappings) {
    writer.begin(RecordKind::mapping);
    writer.add_object(mapping.facts);
    writer.add_text(mapping.name);
    writer.end();
  }
  for (const Origin& origin : process.origins) {
    writer.begin(RecordKind::origin);
    writer.add_object(OriginFacts{origin.start, origin.bytes, origin.offset, origin.inode,
                                  origin.is_file ? 1 : 0, 0});
    writer.add_text(origin.name);
    writer.end();
  }
  for (const SavedDescriptor& descriptor : process.descriptors) {
    writer.begin(RecordKind::descriptor);
    writer.add_object(descriptor.facts);
    writer.add_text(descriptor.text);
    add_all(writer, descriptor.options);
    add_all(writer, descriptor.entries);
    writer.end();
  }
  writer.begin(RecordKind::shared_signal);
  add_all(writer, process.pending);
  writer.end();
}

Result<SavedProcess> read_saved(const KeptMemory& memory) {
  return read_saved(memory.image(), memory.generation(), memory.inode());
}

Result<SavedProcess> read_saved(std::span<const std::byte> image, std::uint64_t generation,
                                std::uint64_t memory_inode) {
  Result<std::vector<RecordReader>> records = read_image(image, generation, memory_inode);
  if (!records.ok()) return records.status();
  SavedProcess saved;
  for (RecordReader& record : records.value()) {
    if (!read_record(record, saved))
      return Status::failure(EBADMSG, "a record of what was saved is not as it must be");
  }
  if (saved.threads.empty() || saved.threads.front().facts.number != saved.process.process)
    return Status::failure(EBADMSG, "what was saved has no first thread");
  return saved;
}

}  // namespace pawl::wsp
