// kv_sections: a server that speaks the protocol of Redis, and whose data set is a hash table in
// plain C in a file that is mapped directly.  What it acknowledged is durable.
//
//   kv_sections --heap FILE [--port N] [--bind ADDRESS] [--unixsocket PATH]
//               [--requirepass-file FILE] [--size-max BYTES[K|M|G|T]]
#include <pawl/fase.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "../../process/process.h"
#include "options.h"
#include "server.h"
#include "store.h"
#include "string_table.h"
#include "turns.h"

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

pawl_fase* open_file(const kv::Options& options) {
  pawl_fase_options of_file{};
  if (pawl_fase_options_init(&of_file) != 0) return nullptr;
  if (options.size_bytes_max != 0) of_file.size_bytes_max = options.size_bytes_max;
#ifdef KV_UNPROTECTED
  of_file.unprotected = 1;  // to measure what protection costs
#endif
  make_private_file(options.heap_file.c_str());
  return pawl_fase_open(options.heap_file.c_str(), &of_file);
}

int serve(const kv::Options& options) {
  pawl_fase* const file = open_file(options);
  strings* const data = file == nullptr ? nullptr : strings_open(file);
  if (data == nullptr) throw std::runtime_error(options.heap_file + ": " + pawl_last_error());
  int status = kExitFailure;
  {
    kv::Store store(file, data);
    kv::ServerFacts facts;
    kv::Turns turns(store, facts);
    kv::Server server(options.settings, turns, facts, "nothing can be stored any more");
    server.start();
    kv::announce(options, store.size());
    status = server.run();
  }
  if (pawl_fase_close(file) != 0) throw std::runtime_error(pawl_last_error());
  return status;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    prepare_process();
    kv::give_back_freed_memory();
    return serve(kv::parse_options(count, arguments));
  } catch (const kv::UsageError& error) {
    std::fprintf(stderr, "kv: %s\nusage: kv_sections %s\n", error.what(), kv::kUsage);
    return kExitUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kv: %s\n", error.what());
    return kExitFailure;
  }
}
