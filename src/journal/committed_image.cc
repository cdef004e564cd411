#include "journal/committed_image.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "medium/law.h"

namespace pawl {
namespace {

// Neighbouring pages go into the base in one write of at most this size.
constexpr std::size_t kApplyRunPagesMax = 64;

void copy_lines(std::uint64_t lines, const PageBuffer& from, PageBuffer& to) {
  [[maybe_unused]] const Status copied =
      for_lines(lines, kPageBytes, [&](std::size_t offset, std::size_t length) {
        std::memcpy(to.bytes.data() + offset, from.bytes.data() + offset, length);
        return Status{};
      });
}

// Whatever comes of the cut.
class AtEnd {
 public:
  explicit AtEnd(const CommittedImage::AfterCut& call) : call_(call) {}
  ~AtEnd() {
    if (call_) call_();
  }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const CommittedImage::AfterCut& call_;
};

}  // namespace

bool CommittedImage::only_in_base(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return !overlay_.contains(number);
}

Result<CommittedImage::Page> CommittedImage::page(std::uint64_t number) {
  const std::uint64_t start = number * kPageBytes;
  std::uint64_t zeros_from = 0;
  Page lines_here;
  std::uint64_t lines = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = overlay_.find(number);
    if (found != overlay_.end() && !is_broken(Law::diff_against_committed)) {
      if (found->second.lines == kAllLines) return found->second.page;
      // A copy, because the next patch may change these bytes in place.
      lines_here = copy(found->second.page);
      lines = found->second.lines;
    }
    // A page leaves the overlay only after it stands in the base, so the base is current here.
    zeros_from = size_;
    if (truncation_.pending) zeros_from = std::min(zeros_from, truncation_.to);
    if (applying_.pending) zeros_from = std::min(zeros_from, applying_.to);
  }
  Page copy = pool_.take();
  const std::size_t kept = zeros_from > start ? std::min(zeros_from - start, kPageBytes) : 0;
  if (kept > 0) PAWL_TRY(base_.read(start, copy->bytes));
  std::memset(copy->bytes.data() + kept, 0, kPageBytes - kept);
  if (lines != 0) copy_lines(lines, *lines_here, *copy);
  return copy;
}

CommittedImage::Page CommittedImage::copy(const Page& page) {
  Page made = pool_.take();
  *made = *page;
  return made;
}

Status CommittedImage::reserve_space(std::uint64_t offset, std::uint64_t length) {
  const std::lock_guard lock(mutex_);
  PAWL_TRY(space_.reserve(offset, length, base_size_));
  in_hand_.add(offset / kPageBytes,
               (offset + length + kPageBytes - 1) / kPageBytes - offset / kPageBytes);
  return {};
}

// Where the base is cut, and where it grows, the rest of the block is zeroed when that is applied.
PageRuns CommittedImage::pages_at_ends(std::span<const std::uint64_t> ends) const {
  PageRuns pages;
  const auto add = [&pages, unit = base_.shared_unit_bytes()](std::uint64_t end) {
    if (end % unit != 0) pages.add(end / kPageBytes);
  };
  for (const std::uint64_t end : ends) add(end);
  if (truncation_.pending) add(truncation_.to);
  if (applying_.pending) add(applying_.to);
  for (const SizeAt& size : sizes_) add(size.size);
  if (!ends.empty() || base_size_ != size_) {
    for (const std::uint64_t end : {base_size_.load(), durable_size_, size_.load()}) add(end);
  }
  return pages;
}

// In one call as a rule, though more pages lie between: most files are in few pieces.  Only where
// there are many it is worth while to put what waits in order, and to ask for that alone.
Status CommittedImage::find_shared(PageRuns& asked, const MediumFile::FoundShared& found) const {
  std::uint64_t start = ~std::uint64_t{0};
  std::uint64_t end = 0;
  const auto widen = [&](std::uint64_t first_page, std::uint64_t end_page) {
    start = std::min(start, first_page * kPageBytes);
    end = std::max(end, end_page * kPageBytes);
  };
  if (!asked.empty()) widen(asked.runs().front().first, asked.runs().back().end());
  if (!overlay_.empty()) widen(waiting_first_, waiting_end_);
  auto next = base_.find_shared(start, end, found);
  if (!next.ok()) return next.status();
  std::uint64_t looked_to = next.value();
  if (looked_to >= end) return {};
  for (const auto& [number, waiting] : overlay_) asked.add(number);
  for (const PageRun& run : asked.runs()) {
    looked_to = std::max(looked_to, run.first * kPageBytes);
    while (looked_to < run.end() * kPageBytes) {
      next = base_.find_shared(looked_to, end, found);
      if (!next.ok()) return next.status();
      looked_to = next.value();
    }
  }
  return {};
}

Status CommittedImage::check_space_where_shared(const std::vector<PageRun>& changed,
                                                std::span<const std::uint64_t> ends) {
  if (is_broken(Law::space_where_shared)) return {};
  const std::lock_guard lock(mutex_);
  PageRuns at_ends = pages_at_ends(ends);
  PageRuns asked = at_ends;
  for (const PageRun& run : changed) asked.add(run.first, run.count);
  if (asked.empty() && overlay_.empty()) return {};
  bool is_shared = false;
  PageRuns lost;
  PAWL_TRY(find_shared(asked, [&](std::uint64_t start, std::uint64_t stop) {
    is_shared = true;
    space_.forget(start, stop);
    // Of holes there no space is wanted.
    lost.add(at_ends.take(start / kPageBytes, round_up(stop, kPageBytes) / kPageBytes));
  }));
  if (!is_shared) return {};
  for (const auto& [number, waiting] : overlay_) {
    if (!space_.is_known(number * kPageBytes, kPageBytes)) lost.add(number);
  }
  for (const PageRun& run : lost.runs())
    PAWL_TRY(space_.reserve(run.first * kPageBytes, run.count * kPageBytes));
  return {};
}

void CommittedImage::end_commit() {
  // Only the committing thread changes it, so that it may look without the lock.
  if (in_hand_.empty()) return;
  const std::lock_guard lock(mutex_);
  in_hand_.clear();
}

PageBuffer& CommittedImage::writable(Waiting& waiting) {
  if (waiting.applying) {
    waiting.page = copy(waiting.page);
    waiting.applying = false;
  }
  return *waiting.page;
}

void CommittedImage::truncate(std::uint64_t to, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (!truncation_.pending) truncation_ = {true, to, sequence, sequence};
  truncation_.to = std::min(truncation_.to, to);
  truncation_.last_sequence = sequence;
  for (auto entry = overlay_.begin(); entry != overlay_.end();) {
    const std::uint64_t start = entry->first * kPageBytes;
    if (start >= to) {
      // The record that held it must stay until the truncation is in the base.
      truncation_.first_sequence =
          std::min(truncation_.first_sequence, entry->second.first_sequence);
      entry = overlay_.erase(entry);
      continue;
    }
    if (start + kPageBytes > to) {
      const std::size_t kept = to - start;
      PageBuffer& bytes = writable(entry->second);
      std::memset(bytes.bytes.data() + kept, 0, kPageBytes - kept);
      entry->second.last_sequence = sequence;
    }
    ++entry;
  }
}

void CommittedImage::set_size(std::uint64_t size_bytes, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (size_bytes == size_) return;
  sizes_.push_back({sequence, size_bytes});
  size_ = size_bytes;
}

void CommittedImage::patch(std::uint64_t number, const Page& page, std::uint64_t offset_in_page,
                           std::span<const std::byte> bytes, std::uint64_t sequence) {
  PAWL_ASSERT(offset_in_page + bytes.size() <= kPageBytes);
  const std::lock_guard lock(mutex_);
  // A page is either a copy loaded for this commit, or one that was applied since it was looked up,
  // and may still be read by the one who applied it.
  const auto own = [&] { return page.use_count() == 1 ? page : copy(page); };
  auto found = overlay_.find(number);
  if (found == overlay_.end()) {
    const bool is_alone = overlay_.empty();
    waiting_first_ = is_alone ? number : std::min(waiting_first_, number);
    waiting_end_ = is_alone ? number + 1 : std::max(waiting_end_, number + 1);
    Waiting entry;
    entry.page = page == nullptr ? pool_.take() : own();
    entry.lines = page == nullptr ? 0 : kAllLines;
    entry.first_sequence = sequence;
    found = overlay_.emplace(number, std::move(entry)).first;
  } else if (page != nullptr && found->second.lines != kAllLines) {
    found->second.page = own();
    found->second.lines = kAllLines;
    found->second.applying = false;
  }
  Waiting& waiting = found->second;
  waiting.last_sequence = sequence;
  if (waiting.lines != kAllLines) {
    PAWL_ASSERT(offset_in_page % kLineBytes == 0);
    waiting.lines |= line_bits(offset_in_page, bytes.size());
  }
  std::memcpy(writable(waiting).bytes.data() + offset_in_page, bytes.data(), bytes.size());
}

void CommittedImage::durable(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  PAWL_ASSERT(sequence >= durable_sequence_);
  durable_sequence_ = sequence;
  while (!sizes_.empty() && sizes_.front().sequence <= sequence) {
    durable_size_ = sizes_.front().size;
    sizes_.pop_front();
  }
}

// The base loses what the file lost, but keeps the space of pages that are about to be written:
// cutting it to `to` and growing it again would give that space away (law 7).  All of it happens
// under the lock, so that no commit takes space for its own that is given back a moment later.
Status CommittedImage::apply_truncation(std::uint64_t size_bytes,
                                        const std::vector<std::uint64_t>& copied_pages) {
  const AtEnd unlocked(after_cut_);
  const std::lock_guard lock(mutex_);
  // Copied pages are written over whole; others that wait and those in hand are zeroed in place.
  PageRuns copied;
  for (const std::uint64_t page : copied_pages) copied.add(page);
  PageRuns wanted = in_hand_;
  for (const auto& [number, waiting] : overlay_) wanted.add(number);
  wanted.add(copied);
  // Blocks may be smaller than pages: the last page loses space as well.
  const std::uint64_t cut = round_down(size_bytes, kPageBytes);
  if (base_size_ > size_bytes) {
    // First: a cut that fails may have been made.
    space_.forget(cut, ~std::uint64_t{0});
    PAWL_TRY(base_.resize(size_bytes));
    base_size_ = size_bytes;
  }
  // The space behind the end went with the cut, this time or when it was tried before; what is
  // defined already counts on it.
  for (const PageRun& run : wanted.runs()) {
    const std::uint64_t start = std::max(run.first * kPageBytes, cut);
    if (start < run.end() * kPageBytes)
      PAWL_TRY(space_.reserve(start, run.end() * kPageBytes - start));
  }
  std::uint64_t from = applying_.to;
  const auto punch_to = [&](std::uint64_t end) -> Status {
    end = std::min(end, base_size_.load());
    if (from >= end) return {};
    space_.forget(round_down(from, kPageBytes), round_up(end, kPageBytes));
    PAWL_TRY(base_.punch(from, end - from));
    from = end;
    return {};
  };
  for (const PageRun& run : wanted.runs()) {
    for (std::uint64_t page = run.first; page < run.end(); ++page) {
      const std::uint64_t end = std::min((page + 1) * kPageBytes, base_size_.load());
      if (end <= from) continue;
      PAWL_TRY(punch_to(page * kPageBytes));
      from = std::max(from, page * kPageBytes);
      if (from < end && !copied.contains(page)) PAWL_TRY(base_.zero(from, end - from));
      from = std::max(from, end);
    }
  }
  PAWL_TRY(punch_to(base_size_));
  // What is still to be written over was not zeroed: as long as it is not, the base has what was
  // cut there, and the record that cut it must stay.
  for (const std::uint64_t page : copied_pages) {
    const auto found = overlay_.find(page);
    if (found == overlay_.end() || (page + 1) * kPageBytes <= applying_.to) continue;
    found->second.first_sequence = std::min(found->second.first_sequence, applying_.first_sequence);
  }
  applying_.pending = false;
  return {};
}

// It waits again, with what was defined since.
void CommittedImage::truncation_failed() {
  const std::lock_guard lock(mutex_);
  if (!applying_.pending) return;
  if (truncation_.pending) {
    truncation_.to = std::min(truncation_.to, applying_.to);
    truncation_.first_sequence = std::min(truncation_.first_sequence, applying_.first_sequence);
  } else {
    truncation_ = applying_;
  }
  applying_.pending = false;
}

Status CommittedImage::apply() {
  try {
    return apply_durable();
  } catch (const std::bad_alloc&) {
    truncation_failed();
    return Status::no_memory("no memory to apply commits; free some and call again");
  }
}

Status CommittedImage::write_base(std::uint64_t offset, std::span<const std::byte> bytes) {
  const Status written = base_.write(offset, bytes);
  std::uint64_t end = offset + bytes.size();
  if (!written.ok()) {
    // Some of it may have made the base longer.
    auto size = base_.size();
    end = size.ok() ? size.value() : 0;
  }
  base_size_ = std::max(base_size_.load(), end);
  return written;
}

Status CommittedImage::apply_durable() {
  struct Copy {
    std::uint64_t number;
    Page page;
    std::uint64_t lines;
  };
  std::vector<Copy> copies;
  std::uint64_t complete = 0;
  std::uint64_t size_bytes = 0;
  bool cuts = false;
  {
    const std::lock_guard lock(mutex_);
    complete = durable_sequence_;
    size_bytes = durable_size_;
    // While a truncation waits, pages that it reaches would be cut again: they wait too.
    std::uint64_t limit_page = ~std::uint64_t{0};
    if (truncation_.pending && truncation_.last_sequence <= durable_sequence_) {
      applying_ = std::exchange(truncation_, Truncation{});
      cuts = true;
    } else if (truncation_.pending) {
      complete = std::min(complete, truncation_.first_sequence - 1);
      limit_page = truncation_.to / kPageBytes;
    }
    for (auto& [number, waiting] : overlay_) {
      const bool durable =
          waiting.last_sequence <= durable_sequence_ || is_broken(Law::apply_after_flush);
      if (!durable || number >= limit_page) {
        complete = std::min(complete, waiting.first_sequence - 1);
        continue;
      }
      waiting.applying = true;
      copies.push_back({number, waiting.page, waiting.lines});
    }
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.number < b.number; });

  if (cuts) {
    std::vector<std::uint64_t> copied;
    for (const Copy& copy : copies)
      if (copy.lines == kAllLines) copied.push_back(copy.number);
    if (const Status cut = apply_truncation(size_bytes, copied); !cut.ok()) {
      truncation_failed();
      return cut;
    }
  }

  std::vector<std::byte> run;
  for (std::size_t i = 0; i < copies.size();) {
    std::size_t end = i + 1;
    while (end < copies.size() && copies[end].number == copies[end - 1].number + 1 &&
           copies[end].lines == kAllLines && copies[i].lines == kAllLines &&
           end - i < kApplyRunPagesMax)
      ++end;
    const std::uint64_t start = copies[i].number * kPageBytes;
    // The base never runs ahead of the committed size.
    const std::uint64_t stop = std::min((copies[end - 1].number + 1) * kPageBytes, size_bytes);
    if (stop > start) {
      if (end == i + 1) {
        const std::span<const std::byte> page = copies[i].page->bytes;
        PAWL_TRY(for_lines(copies[i].lines, stop - start, [&](std::size_t at, std::size_t length) {
          return write_base(start + at, page.subspan(at, length));
        }));
      } else {
        run.clear();
        for (std::size_t j = i; j < end; ++j)
          run.insert(run.end(), copies[j].page->bytes.begin(), copies[j].page->bytes.end());
        PAWL_TRY(write_base(start, std::span(run).first(stop - start)));
      }
    }
    const std::lock_guard lock(mutex_);
    for (; i < end; ++i) {
      const auto found = overlay_.find(copies[i].number);
      if (found == overlay_.end()) continue;
      if (found->second.page == copies[i].page) {
        overlay_.erase(found);
      } else {
        // Changed while it was copied: the newer change waits.
        found->second.first_sequence = std::max(found->second.first_sequence, complete + 1);
      }
      pages_applied_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (base_size_ < size_bytes) {
    PAWL_TRY(base_.resize(size_bytes));
    base_size_ = size_bytes;
  }
  const std::lock_guard lock(mutex_);
  applied_sequence_ = std::max(applied_sequence_.load(), complete);
  return {};
}

std::uint64_t CommittedImage::applied_sequence() const {
  const std::lock_guard lock(mutex_);
  return applied_sequence_;
}

std::size_t CommittedImage::waiting_pages() const {
  const std::lock_guard lock(mutex_);
  return overlay_.size();
}

Status CommittedImage::begin_direct(std::uint64_t truncate_to, std::uint64_t size_bytes,
                                    std::uint64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    PAWL_ASSERT(overlay_.empty() && !truncation_.pending && sizes_.empty());
    // The sequence number counts as durable, and so as applied, only when all of it is in the base
    // (end_direct): a background apply must not let go of the record before.
    size_ = size_bytes;
    durable_size_ = size_bytes;
    PAWL_ASSERT(sequence > durable_sequence_);
  }
  if (truncate_to != journal::kNoTruncation) {
    if (base_size_ > size_bytes) {
      PAWL_TRY(base_.resize(size_bytes));
      base_size_ = size_bytes;
      const std::lock_guard lock(mutex_);
      space_.forget(round_down(size_bytes, kPageBytes), ~std::uint64_t{0});
    }
    // What the record holds keeps its reserved space; the gaps between give theirs back.
    direct_from_ = std::min(truncate_to, base_size_.load());
    direct_zero_end_ = base_size_;
  }
  if (base_size_ < size_bytes) {
    PAWL_TRY(base_.resize(size_bytes));
    base_size_ = size_bytes;
  }
  return {};
}

Status CommittedImage::punch_direct(std::uint64_t end) {
  if (direct_from_ >= end) return {};
  PAWL_TRY(base_.punch(direct_from_, end - direct_from_));
  const std::lock_guard lock(mutex_);
  space_.forget(round_down(direct_from_, kPageBytes), round_up(end, kPageBytes));
  direct_from_ = end;
  return {};
}

Status CommittedImage::direct(std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t first = std::min(round_down(offset, kPageBytes), direct_zero_end_);
  const std::uint64_t end = std::min(round_up(offset + bytes.size(), kPageBytes), direct_zero_end_);
  if (end > direct_from_) {
    PAWL_TRY(punch_direct(first));
    PAWL_TRY(base_.zero(direct_from_, end - direct_from_));
    direct_from_ = end;
  }
  PAWL_TRY(base_.write(offset, bytes));
  // Only one thread applies.  An atomic addition would wait for what was written to persistent
  // memory.
  const std::uint64_t pages = (bytes.size() + kPageBytes - 1) / kPageBytes;
  pages_applied_.store(pages_applied() + pages, std::memory_order_relaxed);
  return {};
}

void CommittedImage::applied_in_place(std::uint64_t sequence) {
  PAWL_ASSERT(overlay_.empty() && sequence > durable_sequence_);
  durable_sequence_.store(sequence, std::memory_order_relaxed);
  applied_sequence_.store(sequence, std::memory_order_relaxed);
}

Status CommittedImage::end_direct(std::uint64_t sequence) {
  PAWL_TRY(punch_direct(direct_zero_end_));
  direct_from_ = direct_zero_end_ = 0;
  const std::lock_guard lock(mutex_);
  durable_sequence_ = sequence;
  applied_sequence_ = sequence;
  return {};
}

}  // namespace pawl
