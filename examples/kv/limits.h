// Every bound of the server, named once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kv {

// What a client may send.  Redis allows bulks of 512 MB and requests of 1 GB.
constexpr size_t kBulkBytesMax = size_t{64} << 20;
constexpr size_t kRequestBytesMax = size_t{256} << 20;
constexpr size_t kInlineBytesMax = size_t{64} << 10;  // also of a line that holds a number
constexpr int64_t kArgumentsMax = int64_t{1} << 20;

// What may wait to be sent to a client.  From the first bound on its requests are not read; a
// single reply that would pass the second one ends the connection.
constexpr size_t kOutputBytesPause = size_t{1} << 20;
constexpr size_t kOutputBytesMax = size_t{256} << 20;

constexpr size_t kClientsMax = 10000;
constexpr int kListenBacklog = 511;
constexpr unsigned kKeepaliveSeconds = 300;
constexpr size_t kReadBytes = size_t{64} << 10;  // taken from a socket at a time
constexpr size_t kIdleBufferBytes = size_t{1}
                                    << 20;  // a client's larger empty buffers are given back

// A table of keys that grows is rehashed in one go; there are many small tables, so that it is only
// this part of all keys whose nodes are then changed.
constexpr size_t kShards = 1024;

// Keys that are taken out of the way once they expired, and how often the server looks for them.
constexpr size_t kSweepKeysMax = 256;
constexpr uint64_t kSweepPeriodMs = 100;

// Of the mapping: what is committed waits in the journal until the file has it, and a page that is
// written again meanwhile is copied once.  With four times the pages that wait by default (64 MiB
// of memory) 50 clients had half as many requests again served, on two processors.
constexpr const char* kJournalSize = "256M";
constexpr const char* kApplyThresholdPages = "16384";

// Writes that are committed one by one after heap or disk were full; see rounds.h.
constexpr int kAloneAfterFull = 1000;

}  // namespace kv
