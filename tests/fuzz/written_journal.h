// Journals as Pawl writes them, with all kinds of records, and what each of them stands for: seeds
// for the fuzzers, and what the damage test damages.  The same bytes each time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "medium/medium.h"
#include "support/memory_medium.h"
#include "workload/content.h"

namespace pawl::fuzz {

struct WrittenRecord {
  std::uint64_t position;
  std::uint64_t bytes;  // header and payload, without the zeros up to a whole block
  std::uint64_t sequence;
  std::uint64_t durable_sequence;
  std::uint64_t generation;
  test::Content after;  // the file with this commit
};

struct WrittenJournal {
  std::string name;
  std::vector<std::byte> bytes;
  std::size_t newest_slot;
  std::uint64_t generation;  // of the header there
  std::uint64_t block_bytes;
  bool has_older_header;
  test::Content base;                  // all that the newest header says the file holds
  std::vector<WrittenRecord> records;  // from its tail on
  // The journal as it was before each of its writes, oldest first.
  std::vector<std::vector<std::byte>> earlier;

  test::StoredDisk disk() const;
  const test::Content& last() const { return records.empty() ? base : records.back().after; }
};

std::vector<WrittenJournal> written_journals();

// The journal of a group of two files, and the side file of one of them.
struct SideFile {
  std::string name;
  std::vector<std::byte> bytes;
};
std::vector<SideFile> side_files_of_groups();

test::Content content_of(std::span<const std::byte> bytes);
std::vector<std::byte> bytes_of(const test::Content& content);

}  // namespace pawl::fuzz
