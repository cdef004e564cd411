// kv: a server that speaks the protocol of Redis, and whose data set is containers of the C++
// standard library in a persistent heap.  What it acknowledged is durable.
//
//   kv --heap FILE [--port N] [--bind ADDRESS] [--unixsocket PATH] [--requirepass-file FILE]
//      [--size-max BYTES[K|M|G|T]]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "../process/process.h"
#include "bounds.h"
#include "options.h"
#include "rounds.h"
#include "server.h"

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// What the user set stands.
void prefer_mapping_options() {
  setenv("PAWL_JOURNAL_SIZE", kv::kJournalSize, 0);
  setenv("PAWL_APPLY_THRESHOLD", kv::kApplyThresholdPages, 0);
#ifdef STORES_ARE_MARKED
  // Without a page fault for each page of a round: half as many requests again, with many clients.
  setenv("PAWL_TRACKER", "store", 0);
#endif
}

pawl::heap open_heap(const kv::Options& options) {
  pawl::heap_options heap_options;
  if (options.size_bytes_max != 0) heap_options.size_bytes_max = options.size_bytes_max;
  make_private_file(options.heap_file.c_str());
  return pawl::heap(options.heap_file, heap_options);
}

int serve(const kv::Options& options) {
  pawl::heap heap = open_heap(options);
  auto& store = heap.root<kv::Store>();
  heap.sync();
  int status = kExitFailure;
  {
    kv::RoundFacts facts;
    facts.heap = &heap;
    kv::Rounds rounds(store, facts);
    kv::Server server(options.settings, rounds, facts, "the heap takes no more commits");
    server.start();
    kv::announce(options, store.size());
    status = server.run();
  }
  if (status == 0) heap.close();
  return status;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    prepare_process();
    kv::give_back_freed_memory();
    prefer_mapping_options();
    return serve(kv::parse_options(count, arguments));
  } catch (const kv::UsageError& error) {
    std::fprintf(stderr, "kv: %s\nusage: kv %s\n", error.what(), kv::kUsage);
    return kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kv: %s\n", error.what());
    return kExitFailure;
  }
}
