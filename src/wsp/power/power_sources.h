// Where word comes from that the power is failing (section 4 of Narayanan and Hodson's
// "Whole-System Persistence", whose microcontroller watches the power supply and interrupts over a
// serial line).
//
// Three sources, any of which is enough:
// - SIGPWR, as init systems and UPS daemons send it to a process;
// - a named pipe, for the hooks of NUT and apcupsd: a line "failing" says it, ended by a line feed
// or
//   by the hook's end;
// - a serial line, 115200 baud, 8N1: each byte 'F' says it; other bytes are heartbeats and say
// nothing.
//
// A false alarm is harmless: what was saved is restored.  So there is no way to take a word back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "medium/descriptor.h"
#include "medium/status.h"

namespace pawl::wsp {

struct PowerSourceOptions {
  std::string pipe;             // made if there is none, of mode 0600; empty: no pipe
  std::string serial_line;      // a terminal device; empty: no line
  std::string shown_pipe = {};  // what messages call the pipe; empty: by its name
};

// What was heard first.
struct PowerWord {
  enum class Source { kSignal, kPipe, kSerialLine };
  Source source;
  std::uint64_t heard_ns;  // CLOCK_MONOTONIC
};

const char* name_of(PowerWord::Source source);

class PowerSources {
 public:
  // Blocks SIGPWR in the calling thread, and so in the threads that it starts later: call it before
  // there are any.  EEXIST where `pipe` is something else, ENOTTY where `serial_line` is no
  // terminal.
  static Result<PowerSources> open(const PowerSourceOptions& options);

  // To be polled for input, together with what else the caller waits for.
  int descriptor() const { return any_.get(); }

  // Takes what there is to hear, without waiting.  A failure is for the operator, to whom whoever
  // watches should say it, and hear on: EIO, a source has gone (the serial line hung up; told
  // once); EPROTO, the pipe said what is no word of ours (told a few times).
  Result<std::optional<PowerWord>> listen();

 private:
  PowerSources() = default;
  Status add(int descriptor);
  bool hear_signal();
  Result<bool> hear_pipe();
  bool end_line();
  Status begin_pipe_anew();
  Status not_understood();
  Result<bool> hear_serial_line();

  Descriptor signal_;
  Descriptor pipe_;
  std::string pipe_name_;
  std::string shown_pipe_;
  Descriptor serial_line_;
  std::string serial_line_name_;
  std::string line_;  // the pipe's, as far as it came
  std::optional<std::string> odd_line_;
  int odd_lines_told_ = 0;
  Descriptor any_;
};

// What a hook does: says "failing" into the pipe.  ENXIO where nobody listens.
Status tell_power_failing(const std::string& pipe);

}  // namespace pawl::wsp
