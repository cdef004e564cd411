#include "fase/log.h"

#include <algorithm>
#include <cstring>

#include "medium/law.h"
#include "medium/status.h"

namespace pawl::fase {
namespace {

std::uint64_t header_word(const Frame& frame) {
  PAWL_ASSERT(frame.function <= kFunctionsMax && frame.region < kRegionsMax);
  PAWL_ASSERT(frame.depth < kDepthMax && frame.locks.size() <= kLocksMax);
  return (frame.after_call ? kAfterCallBit : 0) | std::uint64_t{frame.function} << kFunctionShift |
         std::uint64_t{frame.region} << kRegionShift | frame.depth << kDepthShift |
         frame.locks.size();
}

// Puts content words into lines, each behind the line's own word.
class LineWriter {
 public:
  LineWriter(FramePlace& place, DirectMemory& memory, std::uint64_t line_word)
      : place_(place), memory_(memory), line_word_(line_word) {}

  void put(std::uint64_t word) {
    // Until the line is whole it has no number: it may be written back with what it has by then.
    if (at_ == 0) memory_.store_word(place_.lines[line_][at_++], 0);
    memory_.store_word(place_.lines[line_][at_++], word);
    if (at_ == kLineWords) finish_line();
  }
  void finish() {
    if (at_ != 0) finish_line();
  }

 private:
  void finish_line() {
    memory_.store_word(place_.lines[line_][0], line_word_);
    memory_.flush(reinterpret_cast<const std::byte*>(&place_.lines[line_]), kLineBytes);
    ++line_;
    at_ = 0;
  }

  FramePlace& place_;
  DirectMemory& memory_;
  const std::uint64_t line_word_;
  std::size_t line_ = 0;
  std::size_t at_ = 0;
};

std::size_t content_words(const Frame& frame) {
  return kFrameHeaderWords + (frame.depth > 0 ? 1 : 0) + frame.locks.size() +
         (frame.live_ins.size() + kWordBytes - 1) / kWordBytes;
}

}  // namespace

std::uint64_t Log::take_number() {
  PAWL_ASSERT(next_number_ < kNumbersEnd);
  return next_number_++;
}

std::size_t Log::lines_of(const Frame& frame) const {
  return (content_words(frame) + kLineContentWords - 1) / kLineContentWords;
}

FrameName Log::write(const Frame& frame) {
  const std::uint64_t number = take_number();
  const auto place = static_cast<std::uint8_t>(kept_[frame.depth] == 0 ? 1 : 0);
  const std::size_t lines = lines_of(frame);
  PAWL_ASSERT(lines <= kFrameLinesMax);
  // A frame that is alone in a FASE names its own list.
  const std::uint64_t list = frame.list != 0 ? frame.list : number;
  LineWriter writer(area_.frames[frame.depth][place], memory_, number << kNumberShift | lines);
  writer.put(header_word(frame));
  writer.put(list << kListShift | frame.entries);
  if (frame.depth > 0) writer.put(frame.caller);
  for (const std::uint64_t lock : frame.locks) writer.put(lock);
  for (std::size_t at = 0; at < frame.live_ins.size(); at += kWordBytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, frame.live_ins.data() + at,
                std::min(kWordBytes, frame.live_ins.size() - at));
    writer.put(word);
  }
  writer.finish();
  return {number, place};
}

void Log::keep(std::span<const std::uint8_t> places) {
  kept_.fill(kNoPlace);
  std::copy(places.begin(), places.end(), kept_.begin());
}

std::size_t Log::put_blocks(std::uint32_t index, std::uint64_t list,
                            std::span<const std::uint64_t> blocks) {
  BlockEntry* const first = &area_.blocks[index];
  BlockEntry* at = first;
  for (const std::uint64_t block : blocks) {
    memory_.store_word(at->list, 0);
    memory_.store_word(at->block, block);
    memory_.store_word(at->list, list);
    ++at;
  }
  const std::size_t bytes = blocks.size() * sizeof(BlockEntry);
  memory_.flush(reinterpret_cast<const std::byte*>(first), bytes);
  const std::size_t into_line = index * sizeof(BlockEntry) % kLineBytes;
  return (into_line + bytes + kLineBytes - 1) / kLineBytes;
}

void Log::clear_block(std::uint32_t index) {
  BlockEntry& at = area_.blocks[index];
  memory_.store_word(at.list, 0);
  memory_.flush(reinterpret_cast<const std::byte*>(&at), sizeof at);
}

// ---------------------------------------------------------------------------------------- reading

namespace {

std::uint64_t load(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
}

// The frame at a place, if all its lines are there.
std::optional<FoundFrame> read_frame(const FramePlace& place, std::uint32_t depth,
                                     std::uint8_t place_number) {
  const std::uint64_t line_word = load(place.lines[0][0]);
  const std::size_t lines = line_word & ((1u << kNumberShift) - 1);
  if (line_word >> kNumberShift == 0 || lines == 0 || lines > kFrameLinesMax) return std::nullopt;
  std::vector<std::uint64_t> content;
  for (std::size_t line = 0; line < lines; ++line) {
    if (load(place.lines[line][0]) != line_word) return std::nullopt;
    for (std::size_t at = 1; at < kLineWords; ++at) content.push_back(load(place.lines[line][at]));
  }
  FoundFrame found;
  found.name = {line_word >> kNumberShift, place_number};
  found.after_call = (content[0] & kAfterCallBit) != 0;
  found.function = static_cast<std::uint32_t>((content[0] & ~kAfterCallBit) >> kFunctionShift);
  found.region = content[0] >> kRegionShift & (kRegionsMax - 1);
  found.depth = content[0] >> kDepthShift & 0xff;
  found.list = content[1] >> kListShift;
  found.entries = content[1] & ((1u << kListShift) - 1);
  const std::size_t locks = content[0] & 0xff;
  std::size_t at = kFrameHeaderWords;
  if (found.depth != depth || locks > kLocksMax ||
      at + (depth > 0 ? 1 : 0) + locks > content.size())
    return std::nullopt;
  if (depth > 0) found.caller = content[at++];
  found.locks.assign(content.begin() + at, content.begin() + at + locks);
  at += locks;
  found.live_ins.resize((content.size() - at) * kWordBytes);
  std::memcpy(found.live_ins.data(), content.data() + at, found.live_ins.size());
  return found;
}

class Reader {
 public:
  explicit Reader(const LogArea& area) : area_(area) {
    for (std::uint32_t depth = 0; depth < kDepthMax; ++depth) {
      for (std::uint8_t place = 0; place < kPlaces; ++place)
        frames_[depth][place] = read_frame(area.frames[depth][place], depth, place);
    }
  }

  std::vector<FoundFrame> chain() const {
    const FoundFrame* last = nullptr;
    for (const auto& places : frames_) {
      for (const auto& frame : places) {
        if (frame && !frame->after_call && counts(*frame) &&
            (last == nullptr || frame->name.number > last->name.number))
          last = &*frame;
      }
    }
    std::vector<FoundFrame> chain;
    if (last == nullptr || last->function == 0) return chain;
    for (; last != nullptr; last = caller_of(*last)) chain.push_back(*last);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  // Null: no FASE has ended.
  const FoundFrame* last_end() const {
    const FoundFrame* last = nullptr;
    for (const auto& frame : frames_[0]) {
      if (frame && frame->function == 0 &&
          (last == nullptr || frame->name.number > last->name.number))
        last = &*frame;
    }
    return last;
  }

 private:
  const FoundFrame* caller_of(const FoundFrame& frame) const {
    if (frame.depth == 0) return nullptr;
    for (const auto& caller : frames_[frame.depth - 1]) {
      if (caller && caller->after_call && caller->name.number == frame.caller) return &*caller;
    }
    return nullptr;
  }

  bool counts(const FoundFrame& frame) const {
    for (std::uint32_t i = 0; i < frame.entries; ++i) {
      if (load(area_.blocks[i].list) != frame.list) return false;
    }
    const FoundFrame* at = &frame;
    while (at->depth > 0) {
      at = caller_of(*at);
      if (at == nullptr) return false;
    }
    return true;
  }

  const LogArea& area_;
  std::array<std::array<std::optional<FoundFrame>, kPlaces>, kDepthMax> frames_;
};

// Above the numbers of all lines and lists, those of frames that are not whole included: one of
// their lines must never be taken for one of another frame.
std::uint64_t next_number(const LogArea& area) {
  std::uint64_t highest = 0;
  for (const auto& places : area.frames) {
    for (const FramePlace& place : places) {
      for (const auto& line : place.lines) {
        highest = std::max(highest, load(line[0]) >> kNumberShift);
      }
    }
  }
  for (const BlockEntry& entry : area.blocks) highest = std::max(highest, load(entry.list));
  // One that is too high for any log stays so, and is no number of a damaged one that wraps.
  return std::min(highest, kNumbersEnd) + 1;
}

}  // namespace

FoundLog read_log(const LogArea& area) {
  FoundLog found;
  const Reader reader(area);
  found.chain = reader.chain();
  if (const FoundFrame* const end = reader.last_end()) {
    found.end_place = end->name.place;
    found.freed = end->locks;
  }
  found.next_number = next_number(area);
  return found;
}

}  // namespace pawl::fase
