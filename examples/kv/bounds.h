// Every bound of the server, named once.  README.md has a table of what happens at each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kv {

// Tests build the server with a thousandth of each bound of memory, to meet them all.
#ifdef KV_SMALL_BOUNDS
constexpr size_t kMega = size_t{1} << 10;
#else
constexpr size_t kMega = size_t{1} << 20;
#endif

// What a client may send.  Redis allows bulks of 512 MB and requests of 1 GB.
constexpr size_t kBulkBytesMax = 64 * kMega;
constexpr size_t kRequestBytesMax = 256 * kMega;
constexpr size_t kInlineBytesMax = size_t{64} << 10;  // also of a line that holds a number
constexpr auto kArgumentsMax = static_cast<int64_t>(kMega);

// The same of a client that owes a password.
constexpr size_t kLoginBulkBytesMax = 16384;
constexpr int64_t kLoginArgumentsMax = 10;

// What may wait to be sent to a client.  From the first bound on its requests are not read; a
// request whose reply would pass the second one is refused.
constexpr size_t kOutputBytesPause = kMega;
constexpr size_t kOutputBytesMax = 256 * kMega;

// What the buffers of all clients may take together, besides the request that is being served.  The
// connection of the client with the largest ones is closed when they would take more.
constexpr size_t kAllBuffersBytesMax = 1024 * kMega;
// A client's larger empty buffers are given back.
constexpr size_t kIdleBufferBytes = size_t{16} << 10;

constexpr size_t kClientsMax = 10000;
constexpr int kListenBacklog = 511;
constexpr unsigned kKeepaliveSeconds = 300;
constexpr size_t kReadBytes = size_t{64} << 10;  // taken from a socket at a time

constexpr size_t kPasswordBytesMax = 512;
// How often standard error says that a browser was turned away.
constexpr int64_t kWarningPeriodMs = 60'000;

// A table of keys that grows is rehashed in one go; there are many small tables, so that it is only
// this part of all keys whose nodes are then changed.
constexpr size_t kShards = 1024;

// How often the server takes keys out of the way that expired; for how long at a time, where there
// are many; and after how many it looks at the clock.
constexpr uint64_t kSweepPeriodMs = 100;
constexpr int64_t kSweepMsMax = 25;
constexpr size_t kSweepKeysAtOnce = 256;
// With each request that writes: more than it can let expire, so that they do not pile up.
constexpr size_t kSweepKeysWithRequest = 2;

// Of the mapping: what is committed waits in the journal until the file has it, and a page that is
// written again meanwhile is copied once.  With four times the pages that wait by default (64 MiB
// of memory) 50 clients had half as many requests again served, on two processors.
constexpr const char* kJournalSize = "256M";
constexpr const char* kApplyThresholdPages = "16384";

// Writes that are committed one by one after heap or disk were full; see rounds.h.
constexpr int kAloneAfterFull = 1000;

}  // namespace kv
