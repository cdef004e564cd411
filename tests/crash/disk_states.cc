#include "crash/disk_states.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

namespace pawl::test {
namespace {

using Kind = Event::Kind;

constexpr std::size_t kPendingCountedMax = 64;  // with more, there are too many recipes to count
constexpr std::size_t kOrderedWritesMax = 3;    // whose orders are all tried
constexpr std::uint32_t kFateRunsMax = 64;      // in a write that is torn at random
constexpr std::uint32_t kTrashSeedOfAll = 1;    // where all recipes are tried

bool is_data(const Event& event) { return event.kind == Kind::write || event.kind == Kind::store; }

// What a power cut leaves of a sector on its way, the same for the same seed.
class Trash {
 public:
  Trash(std::uint32_t seed, std::uint64_t sector)
      : state_((std::uint64_t{seed} << 32) ^ (sector * 0x9e3779b97f4a7c15) ^ 0x5851f42d4c957f2d) {}

  std::byte next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::byte>(state_ >> 56);
  }

 private:
  std::uint64_t state_;
};

std::uint64_t times(std::uint64_t a, std::uint64_t b, std::uint64_t bound) {
  return b != 0 && a > bound / b ? bound + 1 : a * b;
}

void append(std::vector<FateRun>& runs, std::uint32_t sectors, Fate fate) {
  if (sectors == 0) return;
  if (!runs.empty() && runs.back().fate == fate)
    runs.back().sectors += sectors;
  else
    runs.push_back({sectors, fate});
}

}  // namespace

// ----------------------------------------------------------------------------------------- sectors

std::uint64_t DiskStates::first_sector(const Event& write) const {
  return write.offset / sector_bytes_;
}
std::uint32_t DiskStates::sectors_of(const Event& write) const {
  return static_cast<std::uint32_t>((write.end() + sector_bytes_ - 1) / sector_bytes_ -
                                    first_sector(write));
}
bool DiskStates::share_a_sector(const Event& a, const Event& b) const {
  return first_sector(a) < first_sector(b) + sectors_of(b) &&
         first_sector(b) < first_sector(a) + sectors_of(a);
}
DiskStates::Part DiskStates::part_of(const Event& write, std::uint32_t sector,
                                     std::uint32_t sectors) const {
  const std::uint64_t first = first_sector(write) + sector;
  const std::uint64_t start = std::max(write.offset, first * sector_bytes_);
  const std::uint64_t stop = std::min(write.end(), (first + sectors) * sector_bytes_);
  return {start, std::span(*write.bytes).subspan(start - write.offset, stop - start)};
}

// ----------------------------------------------------------------------------------- recipe's text

// m57,n1,f0.c2.w12-k8.w15-k3d1t4.s77,f2...
std::string StateRecipe::text() const {
  std::string text = "m" + std::to_string(moment) + ",n" + std::to_string(names_kept);
  for (const FileFate& file : files) {
    text += ",f" + std::to_string(file.file) + ".c" + std::to_string(file.changes_kept);
    for (const WriteFate& write : file.writes) {
      text += ".w" + std::to_string(write.event) + "-";
      for (const FateRun& run : write.runs) {
        text += static_cast<char>(run.fate);
        text += std::to_string(run.sectors);
      }
    }
    text += ".s" + std::to_string(file.trash_seed);
  }
  return text;
}

StateRecipe StateRecipe::parse(const std::string& text) {
  StateRecipe recipe;
  std::size_t at = 0;
  const auto fail = [&]() {
    throw std::runtime_error("the recipe cannot be read from '" + text.substr(at) + "' on");
  };
  const auto number = [&]() -> std::uint64_t {
    std::size_t used = 0;
    std::uint64_t value = 0;
    while (at + used < text.size() && text[at + used] >= '0' && text[at + used] <= '9' && used < 18)
      value = value * 10 + static_cast<std::uint64_t>(text[at + used++] - '0');
    if (used == 0) fail();
    at += used;
    return value;
  };
  const auto take = [&](char letter) {
    if (at >= text.size() || text[at] != letter) return false;
    at += 1;
    return true;
  };
  if (!take('m')) fail();
  recipe.moment = number();
  if (!take(',') || !take('n')) fail();
  recipe.names_kept = number();
  while (take(',')) {
    FileFate file{};
    if (!take('f')) fail();
    file.file = static_cast<std::uint32_t>(number());
    if (!take('.') || !take('c')) fail();
    file.changes_kept = number();
    while (take('.')) {
      if (take('s')) {
        file.trash_seed = static_cast<std::uint32_t>(number());
        break;
      }
      WriteFate write{};
      if (!take('w')) fail();
      write.event = number();
      if (!take('-')) fail();
      while (at < text.size() && (text[at] == 'k' || text[at] == 'd' || text[at] == 't')) {
        const auto fate = static_cast<Fate>(text[at++]);
        write.runs.push_back({static_cast<std::uint32_t>(number()), fate});
      }
      file.writes.push_back(std::move(write));
    }
    recipe.files.push_back(std::move(file));
  }
  if (at != text.size()) fail();
  return recipe;
}

// ------------------------------------------------------------------------------- what is durable

DiskStates::DiskStates(const Trace& trace)
    : trace_(trace),
      sector_bytes_(trace.is_memory ? kMemoryWordBytes : kSectorBytes),
      names_(trace.volumes.size(), 0),
      progress_(trace.volumes.size()) {
  auto next = static_cast<std::uint32_t>(trace.volumes.size());
  for (std::size_t volume = 0; volume < trace.volumes.size(); ++volume) {
    const StoredDisk& disk = trace.volumes[volume].at_first;
    files_[static_cast<std::uint32_t>(volume)] = {disk.base, disk.mark, {}, true};
    if (!disk.journal.has_value()) continue;
    names_[volume] = next;
    files_[next++] = {*disk.journal, {}, {}, false};
  }
}

// What is durable now over [offset, end) has replaced what earlier writes may bring there.
void DiskStates::replace(File& file, std::size_t before, std::uint64_t offset, std::uint64_t end) {
  for (Pending& pending : file.pending) {
    const Event& event = event_of(pending);
    if (pending.event >= before || !is_data(event) || event.offset >= end || offset >= event.end())
      continue;
    pending.gone.resize(sectors_of(event), false);
    for (std::uint32_t sector = 0; sector < sectors_of(event); ++sector) {
      const std::uint64_t start = (first_sector(event) + sector) * sector_bytes_;
      if (start < end && offset < start + sector_bytes_) pending.gone[sector] = true;
    }
  }
}

void DiskStates::land(File& file, const std::function<bool(const Pending&)>& lands) {
  std::vector<Pending> rest;
  std::vector<std::size_t> landed;
  for (Pending& pending : file.pending) {
    if (lands(pending))
      landed.push_back(pending.event);
    else
      rest.push_back(std::move(pending));
  }
  file.pending = std::move(rest);
  for (const std::size_t number : landed) {
    const Event& event = trace_.events[number];
    switch (event.kind) {
      case Kind::write:
      case Kind::store:
        PAWL_ASSERT(!trace_.is_memory || event.end() <= file.durable.size());
        file.durable.write(event.offset, *event.bytes);
        replace(file, number, event.offset, event.end());
        break;
      case Kind::resize:
        file.durable.resize(event.offset);
        replace(file, number, event.offset, ~std::uint64_t{0});
        break;
      case Kind::zero:
        file.durable.zero(event.offset, event.length);
        replace(file, number, event.offset, event.end());
        break;
      default:
        file.mark = event.marked;
    }
  }
}

// Where the write makes the file grow, the changes before it come with the new size.
void DiskStates::land_write(File& file, std::size_t number) {
  const bool grows = trace_.events[number].end() > file.durable.size();
  land(file, [&](const Pending& pending) {
    return pending.event == number ||
           (grows && pending.event < number && !is_data(event_of(pending)));
  });
}

// What was written past the caches, or written back, is durable.  Behind a change of size or holes
// that is not, it waits to be put where that leaves it.
void DiskStates::pass_fence() {
  for (auto& [number, file] : files_) {
    bool waits = false;
    for (Pending& pending : file.pending) {
      const Kind kind = event_of(pending).kind;
      waits = waits || kind == Kind::resize || kind == Kind::zero;
      if (pending.arrives && waits) pending.settled = true;
    }
    land(file, [](const Pending& pending) { return pending.arrives && !pending.settled; });
  }
}

void DiskStates::write_back(File& file, std::uint64_t line) {
  for (Pending& pending : file.pending) {
    const Event& event = event_of(pending);
    if (event.kind == Kind::store && event.offset < line + kMemoryLineBytes && line < event.end())
      pending.arrives = true;
  }
}

bool DiskStates::advance() {
  const Event& event = trace_.events[moment_];
  const std::size_t number = moment_++;
  switch (event.kind) {
    case Kind::write:
    case Kind::store:
    case Kind::resize:
    case Kind::zero:
    case Kind::mark:
      files_.at(event.file)
          .pending.push_back({.event = number,
                              .in_doubt = event.failed,
                              .arrives = trace_.is_memory && event.kind == Kind::write,
                              .settled = false,
                              .gone = {}});
      return true;
    case Kind::write_back:
      write_back(files_.at(event.file), event.offset);
      return false;
    case Kind::fence:
      pass_fence();
      return true;
    case Kind::reserve:
    case Kind::flush_begins:
      return false;
    case Kind::flush_ends:
      // Of memory a flush knows what is no byte, and the bytes that waited for a size.
      land(files_.at(event.file), [&](const Pending& pending) {
        return pending.event < event.offset && !pending.in_doubt &&
               (!trace_.is_memory || !is_data(event_of(pending)) || pending.settled);
      });
      return true;
    case Kind::flush_fails:
      for (Pending& pending : files_.at(event.file).pending)
        if (pending.event < event.offset && is_data(event_of(pending))) pending.in_doubt = true;
      return false;
    case Kind::write_lands:
      land_write(files_.at(event.file), event.offset);
      return true;
    case Kind::make_journal:
      files_[event.file] = {};
      return false;
    case Kind::name_journal:
      pending_names_.push_back({event.volume, event.file});
      return true;
    case Kind::remove_journal:
      pending_names_.push_back({event.volume, 0});
      return true;
    case Kind::names_land:
      for (const Name& name : pending_names_) names_[name.volume] = name.file;
      pending_names_.clear();
      return true;
    case Kind::commit_begins:
      progress_[event.volume].begun = event.offset;
      return false;  // the states are what they were, and one more content is welcome
    case Kind::acknowledged:
      progress_[event.volume].acknowledged = event.offset;
      return true;
    case Kind::refused:
      progress_[event.volume].refused.push_back(event.offset);
      return true;
  }
  return false;
}

std::size_t DiskStates::pending() const {
  std::size_t count = pending_names_.size();
  for (const std::uint32_t number : reachable_files()) count += files_.at(number).pending.size();
  return count;
}

std::vector<std::size_t> DiskStates::acceptable(std::size_t volume) const {
  const Progress& progress = progress_[volume];
  std::vector<std::size_t> numbers;
  for (std::size_t number = progress.acknowledged; number <= progress.begun; ++number) {
    if (std::find(progress.refused.begin(), progress.refused.end(), number) ==
        progress.refused.end())
      numbers.push_back(number);
  }
  return numbers;
}

// ------------------------------------------------------------------------------------ all recipes

// The files of which a power cut leaves anything that can be found, and not all is durable.
std::vector<std::uint32_t> DiskStates::reachable_files() const {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, file] : files_) {
    if (file.pending.empty()) continue;
    const bool named =
        file.is_base || std::find(names_.begin(), names_.end(), number) != names_.end() ||
        std::any_of(pending_names_.begin(), pending_names_.end(),
                    [wanted = number](const Name& name) { return name.file == wanted; });
    if (named) numbers.push_back(number);
  }
  return numbers;
}

// A write in doubt does not make the file grow once its end was cut off for good; and stores into
// memory never do.
bool DiskStates::grows(const Pending& pending, const Event& write, std::uint64_t size) const {
  return !trace_.is_memory && write.end() > size && (pending.gone.empty() || !pending.gone.back());
}

std::size_t DiskStates::changes_of(const File& file) const {
  std::size_t changes = 0;
  std::uint64_t size = file.durable.size();
  for (const Pending& pending : file.pending) {
    const Event& event = event_of(pending);
    if (is_data(event)) {
      if (!grows(pending, event, size)) continue;
      size = event.end();
    } else if (event.kind == Kind::resize) {
      size = event.offset;
    }
    changes += 1;
  }
  return changes;
}

// Sectors that hold already what the write brings offer no choice, if nothing else is at them.
DiskStates::Choices DiskStates::choices_of(std::uint32_t number) const {
  const File& file = files_.at(number);
  Choices choices;
  choices.file = number;
  choices.changes = changes_of(file);
  const bool all_count =
      choices.changes > 0 &&
      std::any_of(file.pending.begin(), file.pending.end(), [&](const Pending& pending) {
        const Kind kind = event_of(pending).kind;
        return kind == Kind::resize || kind == Kind::zero;
      });
  std::array<std::byte, kSectorBytes> before{};
  for (const Pending& pending : file.pending) {
    const Event& event = event_of(pending);
    if (!is_data(event)) continue;
    const bool overlaps =
        std::any_of(file.pending.begin(), file.pending.end(), [&](const Pending& other) {
          return other.event != pending.event && is_data(event_of(other)) &&
                 share_a_sector(event_of(other), event);
        });
    // Memory keeps the order of what is stored to one word.
    if (overlaps && !trace_.is_memory) choices.overlapping.push_back(choices.writes);
    for (std::uint32_t sector = 0; sector < sectors_of(event) && !pending.settled; ++sector) {
      if (!pending.gone.empty() && pending.gone[sector]) continue;
      const Part part = part_of(event, sector);
      const auto old = std::span(before).first(part.bytes.size());
      file.durable.read(part.offset, old);
      const bool differs = !std::equal(old.begin(), old.end(), part.bytes.begin());
      if (!differs && !overlaps && !all_count && part.offset + old.size() <= file.durable.size())
        continue;
      const bool may_be_trashed = !trace_.is_memory && (differs || !file.is_base);
      // With the rest of its line, where lines are chosen and not words.
      if (by_lines_ && !choices.sectors.empty()) {
        Choices::Sector& last = choices.sectors.back();
        if (last.write == choices.writes && part_of(event, last.sector).offset / kMemoryLineBytes ==
                                                part.offset / kMemoryLineBytes) {
          last.count = sector - last.sector + 1;
          continue;
        }
      }
      choices.sectors.push_back({choices.writes, sector, 1, may_be_trashed});
    }
    choices.writes += 1;
  }
  return choices;
}

std::uint64_t DiskStates::count(std::uint64_t bound) {
  by_lines_ = false;
  std::uint64_t all = count_choices(bound);
  if (all <= bound || !trace_.is_memory) return all;
  by_lines_ = true;
  all = count_choices(bound);
  return all;
}

std::uint64_t DiskStates::count_choices(std::uint64_t bound) const {
  std::uint64_t product = pending_names_.size() + 1;
  for (const std::uint32_t number : reachable_files()) {
    const File& file = files_.at(number);
    if (file.pending.size() > kPendingCountedMax) return bound + 1;
    const Choices choices = choices_of(number);
    product = times(product, choices.changes + 1, bound);
    if (choices.overlapping.size() > kOrderedWritesMax) return bound + 1;
    for (std::size_t i = 2; i <= choices.overlapping.size(); ++i)
      product = times(product, i, bound);
    for (const auto& sector : choices.sectors) {
      product = times(product, sector.may_be_trashed ? 3 : 2, bound);
      if (product > bound) return product;
    }
  }
  return product;
}

FileFate DiskStates::fate_of_all(std::uint32_t number, Fate fate) const {
  const File& file = files_.at(number);
  FileFate all;
  all.file = number;
  all.changes_kept = fate == Fate::kept ? changes_of(file) : 0;
  all.trash_seed = kTrashSeedOfAll;
  for (const Pending& pending : file.pending) {
    if (is_data(event_of(pending)))
      all.writes.push_back({pending.event, {{sectors_of(event_of(pending)), fate}}});
  }
  return all;
}

StateRecipe DiskStates::nothing_kept() const {
  StateRecipe recipe;
  recipe.moment = moment_;
  for (const std::uint32_t number : reachable_files())
    recipe.files.push_back(fate_of_all(number, Fate::dropped));
  return recipe;
}

StateRecipe DiskStates::all_kept() const {
  StateRecipe recipe;
  recipe.moment = moment_;
  recipe.names_kept = pending_names_.size();
  for (const std::uint32_t number : reachable_files())
    recipe.files.push_back(fate_of_all(number, Fate::kept));
  return recipe;
}

StateRecipe DiskStates::recipe(std::uint64_t number) const {
  StateRecipe recipe;
  recipe.moment = moment_;
  const auto digit = [&](std::uint64_t base) {
    const std::uint64_t value = number % base;
    number /= base;
    return value;
  };
  recipe.names_kept = digit(pending_names_.size() + 1);
  for (const std::uint32_t file : reachable_files()) {
    const Choices choices = choices_of(file);
    FileFate fate = fate_of_all(file, Fate::kept);
    fate.changes_kept = digit(choices.changes + 1);
    std::vector<std::vector<Fate>> fates;
    for (const WriteFate& write : fate.writes)
      fates.emplace_back(write.runs.front().sectors, Fate::kept);
    for (const auto& sector : choices.sectors) {
      static constexpr std::array<Fate, 3> kFates = {Fate::kept, Fate::dropped, Fate::trashed};
      const Fate fate_of_sector = kFates[digit(sector.may_be_trashed ? 3 : 2)];
      std::fill_n(fates[sector.write].begin() + sector.sector, sector.count, fate_of_sector);
    }
    for (std::size_t i = 0; i < fates.size(); ++i) {
      fate.writes[i].runs.clear();
      for (const Fate one : fates[i]) append(fate.writes[i].runs, 1, one);
    }
    // The order of those whose order matters, in their places.
    std::vector<std::size_t> rest = choices.overlapping;
    std::vector<WriteFate> ordered = fate.writes;
    for (std::size_t i = 0; i < choices.overlapping.size(); ++i) {
      const std::size_t chosen = digit(rest.size());
      ordered[choices.overlapping[i]] = fate.writes[rest[chosen]];
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    fate.writes = std::move(ordered);
    recipe.files.push_back(std::move(fate));
  }
  return recipe;
}

// ------------------------------------------------------------------------------------ by chance

namespace {

bool one_in(Random& random, std::uint64_t count) { return below(random, count) == 0; }

std::vector<FateRun> torn(Random& random, std::uint32_t sectors, Fate there, Fate else_there) {
  std::vector<FateRun> runs;
  const auto cut = static_cast<std::uint32_t>(below(random, sectors + 1));
  switch (below(random, 5)) {
    case 0:
      append(runs, cut, there);
      append(runs, sectors - cut, else_there);
      break;
    case 1:
      append(runs, cut, else_there);
      append(runs, sectors - cut, there);
      break;
    case 2: {  // one run is otherwise
      const auto length =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(1 + below(random, 4), sectors - cut));
      append(runs, cut, there);
      append(runs, length, else_there);
      append(runs, sectors - cut - length, there);
      break;
    }
    default: {
      const std::uint32_t step = (sectors + kFateRunsMax - 1) / kFateRunsMax;
      for (std::uint32_t done = 0; done < sectors; done += step)
        append(runs, std::min(step, sectors - done), one_in(random, 2) ? there : else_there);
    }
  }
  return runs;
}

std::vector<FateRun> any_fate(Random& random, std::uint32_t sectors, unsigned kept_percent,
                              bool may_be_trashed) {
  const std::uint64_t chance = below(random, may_be_trashed ? 100 : 80);
  if (chance < 40)
    return {{sectors, below(random, 100) < kept_percent ? Fate::kept : Fate::dropped}};
  if (chance < 80) return torn(random, sectors, Fate::kept, Fate::dropped);
  return torn(random, sectors, one_in(random, 2) ? Fate::kept : Fate::dropped, Fate::trashed);
}

}  // namespace

FileFate DiskStates::sample_file(std::uint32_t number, Random& random) const {
  const File& file = files_.at(number);
  FileFate fate = fate_of_all(number, Fate::kept);
  const std::size_t changes = fate.changes_kept;
  fate.trash_seed = static_cast<std::uint32_t>(below(random, 1000));
  const auto sectors = [](const WriteFate& write) { return write.runs.front().sectors; };
  switch (below(random, 5)) {
    case 0: {  // in order, up to one that is torn
      const std::size_t last = below(random, file.pending.size() + 1);
      const std::size_t limit =
          last < file.pending.size() ? file.pending[last].event : ~std::size_t{0};
      File before;
      before.durable = file.durable;
      for (const Pending& pending : file.pending)
        if (pending.event < limit) before.pending.push_back(pending);
      fate.changes_kept =
          std::min(changes, changes_of(before) + static_cast<std::size_t>(below(random, 2)));
      for (WriteFate& write : fate.writes) {
        if (write.event == limit)
          write.runs = any_fate(random, sectors(write), 50, !trace_.is_memory);
        else if (write.event > limit)
          write.runs.front().fate = Fate::dropped;
      }
      return fate;
    }
    case 1:    // all but something
    case 2: {  // nothing but something
      const bool all = below(random, 2) == 0;
      if (!all) fate = fate_of_all(number, Fate::dropped);
      fate.trash_seed = static_cast<std::uint32_t>(below(random, 1000));
      if (fate.writes.empty() || one_in(random, 3)) {
        fate.changes_kept = below(random, changes + 1);
      } else {
        WriteFate& write = fate.writes[below(random, fate.writes.size())];
        write.runs = any_fate(random, sectors(write), all ? 0 : 100, !trace_.is_memory);
      }
      break;
    }
    default: {
      static constexpr std::array<unsigned, 3> kKeptPercent = {10, 50, 90};
      const unsigned kept_percent = kKeptPercent[below(random, kKeptPercent.size())];
      fate.changes_kept = below(random, changes + 1);
      for (WriteFate& write : fate.writes)
        write.runs = any_fate(random, sectors(write), kept_percent, !trace_.is_memory);
    }
  }
  if (!trace_.is_memory && one_in(random, 3))
    std::shuffle(fate.writes.begin(), fate.writes.end(), random);
  return fate;
}

StateRecipe DiskStates::sample(Random& random) const {
  StateRecipe recipe;
  recipe.moment = moment_;
  recipe.names_kept = below(random, pending_names_.size() + 1);
  for (const std::uint32_t number : reachable_files()) {
    switch (below(random, 6)) {
      case 0:
        recipe.files.push_back(fate_of_all(number, Fate::kept));
        break;
      case 1:
        recipe.files.push_back(fate_of_all(number, Fate::dropped));
        break;
      default:
        recipe.files.push_back(sample_file(number, random));
    }
  }
  return recipe;
}

// --------------------------------------------------------------------------------------- building

void DiskStates::land_pieces(Content& content, const File& file, const Pending& pending,
                             const WriteFate& fate, std::uint32_t seed) const {
  const Event& write = event_of(pending);
  std::array<std::byte, kSectorBytes> sector_bytes{};
  std::array<std::byte, kSectorBytes> before{};
  std::uint32_t sector = 0;
  const auto land_part = [&](Part part) {
    // Behind the end there is nothing.
    if (part.offset >= content.size()) return;
    part.bytes =
        part.bytes.first(std::min<std::uint64_t>(part.bytes.size(), content.size() - part.offset));
    content.write(part.offset, part.bytes);
  };
  for (const FateRun& run : fate.runs) {
    if (run.sectors > sectors_of(write) - sector)
      throw std::runtime_error("the recipe has more sectors than the write");
    const Fate run_fate = pending.settled ? Fate::kept : run.fate;
    if (run_fate == Fate::kept && pending.gone.empty() && run.sectors > 0) {
      land_part(part_of(write, sector, run.sectors));
      sector += run.sectors;
      continue;
    }
    for (std::uint32_t end = sector + run.sectors; sector < end; ++sector) {
      if (run_fate == Fate::dropped || (!pending.gone.empty() && pending.gone[sector])) continue;
      Part part = part_of(write, sector);
      if (run_fate == Fate::trashed) {
        const auto old = std::span(before).first(part.bytes.size());
        file.durable.read(part.offset, old);
        Trash trash(seed, first_sector(write) + sector);
        for (std::size_t i = 0; i < part.bytes.size(); ++i) {
          const std::byte byte = trash.next();
          sector_bytes[i] = file.is_base && old[i] == part.bytes[i] ? part.bytes[i] : byte;
        }
        part.bytes = std::span(sector_bytes).first(part.bytes.size());
      }
      land_part(part);
    }
  }
}

DiskStates::Built DiskStates::build_file(const File& file, const FileFate* fate) const {
  Built built{file.durable, file.mark};
  if (fate == nullptr) return built;
  // Writes keep their order within each stretch between changes that take bytes away.
  std::size_t stretch_start = 0;
  const auto land_stretch = [&](std::size_t end) {
    for (const WriteFate& write : fate->writes) {
      const auto pending =
          std::find_if(file.pending.begin() + static_cast<std::ptrdiff_t>(stretch_start),
                       file.pending.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Pending& candidate) { return candidate.event == write.event; });
      if (pending != file.pending.begin() + static_cast<std::ptrdiff_t>(end))
        land_pieces(built.content, file, *pending, write, fate->trash_seed);
    }
    stretch_start = end;
  };
  std::size_t left = fate->changes_kept;
  std::uint64_t size = file.durable.size();
  for (std::size_t i = 0; i < file.pending.size() && left > 0; ++i) {
    const Event& event = event_of(file.pending[i]);
    if (is_data(event)) {
      if (!grows(file.pending[i], event, size)) continue;
      size = event.end();
      built.content.resize(std::max(built.content.size(), size));
    } else if (event.kind == Kind::resize) {
      if (event.offset < built.content.size()) land_stretch(i);
      size = event.offset;
      built.content.resize(size);
    } else if (event.kind == Kind::zero) {
      land_stretch(i);
      built.content.zero(event.offset, event.length);
    } else {
      built.mark = event.marked;
    }
    left -= 1;
  }
  land_stretch(file.pending.size());
  return built;
}

std::vector<StoredDisk> DiskStates::build(const StateRecipe& recipe) const {
  if (recipe.moment != moment_ || recipe.names_kept > pending_names_.size())
    throw std::runtime_error("the recipe is of another moment, or of another trace");
  std::vector<std::uint32_t> names = names_;
  for (std::size_t i = 0; i < recipe.names_kept; ++i)
    names[pending_names_[i].volume] = pending_names_[i].file;
  const auto built = [&](std::uint32_t number) {
    const auto fate =
        std::find_if(recipe.files.begin(), recipe.files.end(),
                     [&](const FileFate& candidate) { return candidate.file == number; });
    return build_file(files_.at(number), fate == recipe.files.end() ? nullptr : &*fate);
  };
  std::vector<StoredDisk> disks;
  for (std::uint32_t volume = 0; volume < names.size(); ++volume) {
    Built base = built(volume);
    StoredDisk disk{std::move(base.content), std::move(base.mark), {}};
    if (names[volume] != 0) disk.journal = built(names[volume]).content;
    disks.push_back(std::move(disk));
  }
  return disks;
}

}  // namespace pawl::test
