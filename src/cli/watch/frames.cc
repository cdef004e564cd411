#include "cli/watch/frames.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace pawl::cli::watch {

namespace {

constexpr std::uint64_t kRbp = 6;  // DWARF's numbers of the registers
constexpr std::uint64_t kRsp = 7;
constexpr std::uint8_t kEncodingOmitted = 0xff;
constexpr std::uint8_t kEncodingRelative = 0x10;
constexpr std::size_t kRememberedMax = 64;

// Reads forward and never past its end; after that everything is 0 and `failed`.
class Cursor {
 public:
  Cursor(const std::vector<char>& bytes, std::size_t begin, std::size_t end)
      : bytes_(bytes), at_(begin), end_(std::min(end, bytes.size())) {}

  bool has_more() const { return !failed_ && at_ < end_; }
  bool failed() const { return failed_; }
  std::size_t at() const { return at_; }
  void skip(std::uint64_t count) {
    if (at_ > end_ || count > end_ - at_) {
      failed_ = true;
    } else {
      at_ += count;
    }
  }
  template <class T>
  T fixed() {
    T value{};
    const std::size_t from = at_;
    skip(sizeof(T));
    if (!failed_) std::memcpy(&value, bytes_.data() + from, sizeof(T));
    return value;
  }
  std::uint64_t unsigned_number() { return number(false); }
  std::int64_t signed_number() { return static_cast<std::int64_t>(number(true)); }
  std::string text() {
    std::string result;
    for (char letter = fixed<char>(); !failed_ && letter != 0; letter = fixed<char>()) {
      result.push_back(letter);
    }
    return result;
  }
  // By one of the encodings DW_EH_PE_*; `address` is where the section stands.
  std::uint64_t pointer(std::uint8_t encoding, std::uint64_t address) {
    const std::uint64_t base = (encoding & 0x70) == kEncodingRelative ? address + at_ : 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        return base + fixed<std::uint64_t>();
      case 0x03:
        return base + fixed<std::uint32_t>();
      case 0x0b:
        return base + static_cast<std::uint64_t>(std::int64_t{fixed<std::int32_t>()});
      default:
        failed_ = true;
        return 0;
    }
  }

 private:
  std::uint64_t number(bool is_signed) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) != 0) continue;
      if (is_signed && (byte & 0x40U) != 0 && shift + 7 < 64)
        value |= ~std::uint64_t{0} << (shift + 7);
      return value;
    }
    failed_ = true;
    return 0;
  }

  const std::vector<char>& bytes_;
  std::size_t at_;
  std::size_t end_;
  bool failed_ = false;
};

struct State {
  FrameRule rule;
  bool is_known = true;  // the base is a register and an offset
};

struct Factors {
  std::uint64_t code = 1;
  std::int64_t data = 1;
};

class Machine {
 public:
  Machine(Factors factors, std::uint64_t begin, std::uint64_t target)
      : factors_(factors), address_(begin), target_(target) {}

  // Goes on until the instruction's address is passed.
  void run(Cursor cursor) {
    while (cursor.has_more() && address_ <= target_) step(cursor);
    if (cursor.failed()) state_.is_known = false;
  }
  void set_initial() { initial_ = state_; }
  std::optional<FrameRule> rule() const {
    return state_.is_known ? std::optional(state_.rule) : std::nullopt;
  }

 private:
  void advance(std::uint64_t delta) {
    const std::uint64_t next = address_ + delta * factors_.code;
    address_ = next;
  }
  void save(std::uint64_t reg, std::int64_t offset) {
    if (reg == kRbp) state_.rule.saved_rbp = offset * factors_.data;
  }
  void restore(std::uint64_t reg) {
    if (reg == kRbp) state_.rule.saved_rbp = initial_.rule.saved_rbp;
  }
  void base_register(std::uint64_t reg) {
    state_.is_known = reg == kRbp || reg == kRsp;
    state_.rule.base_from_rbp = reg == kRbp;
  }

  void step(Cursor& cursor) {
    const auto operation = cursor.fixed<std::uint8_t>();
    const std::uint8_t low = operation & 0x3fU;
    switch (operation & 0xc0U) {
      case 0x40:
        return advance(low);
      case 0x80:
        return save(low, static_cast<std::int64_t>(cursor.unsigned_number()));
      case 0xc0:
        return restore(low);
      default:
        return extended(low, cursor);
    }
  }

  void extended(std::uint8_t operation, Cursor& cursor) {
    switch (operation) {
      case 0x00:  // nothing
        return;
      case 0x02:
        return advance(cursor.fixed<std::uint8_t>());
      case 0x03:
        return advance(cursor.fixed<std::uint16_t>());
      case 0x04:
        return advance(cursor.fixed<std::uint32_t>());
      case 0x05: {  // saved at an offset
        const std::uint64_t reg = cursor.unsigned_number();
        return save(reg, static_cast<std::int64_t>(cursor.unsigned_number()));
      }
      case 0x06:
        return restore(cursor.unsigned_number());
      case 0x07:  // undefined
      case 0x08:  // as in the caller
        if (cursor.unsigned_number() == kRbp) state_.rule.saved_rbp.reset();
        return;
      case 0x09:  // in another register
        cursor.unsigned_number();
        cursor.unsigned_number();
        return;
      case 0x0a:
        if (remembered_.size() < kRememberedMax) remembered_.push_back(state_);
        return;
      case 0x0b:
        if (remembered_.empty()) return;
        state_ = remembered_.back();
        remembered_.pop_back();
        return;
      case 0x0c:
        base_register(cursor.unsigned_number());
        state_.rule.base_offset = static_cast<std::int64_t>(cursor.unsigned_number());
        return;
      case 0x0d:
        return base_register(cursor.unsigned_number());
      case 0x0e:
        state_.rule.base_offset = static_cast<std::int64_t>(cursor.unsigned_number());
        return;
      case 0x0f:  // the base by an expression
        state_.is_known = false;
        return cursor.skip(cursor.unsigned_number());
      case 0x10:  // a register by an expression
      case 0x16:
        cursor.unsigned_number();
        return cursor.skip(cursor.unsigned_number());
      case 0x11: {
        const std::uint64_t reg = cursor.unsigned_number();
        return save(reg, cursor.signed_number());
      }
      case 0x12:
        base_register(cursor.unsigned_number());
        state_.rule.base_offset = cursor.signed_number() * factors_.data;
        return;
      case 0x13:
        state_.rule.base_offset = cursor.signed_number() * factors_.data;
        return;
      case 0x2e:  // size of arguments
        cursor.unsigned_number();
        return;
      default:
        cursor.skip(~std::uint64_t{0});
    }
  }

  Factors factors_;
  std::uint64_t address_;
  std::uint64_t target_;
  State state_;
  State initial_;
  std::vector<State> remembered_;
};

}  // namespace

FrameTable::FrameTable(std::span<const char> section, std::uint64_t address)
    : bytes_(section.begin(), section.end()), address_(address) {
  std::size_t at = 0;
  while (at + 8 <= bytes_.size()) {
    Cursor cursor(bytes_, at, bytes_.size());
    const auto length = cursor.fixed<std::uint32_t>();
    if (length == 0 || length == 0xffffffffU) break;  // the end; entries of 4 GiB there are none
    const std::size_t id_at = cursor.at();
    const auto id = cursor.fixed<std::uint32_t>();
    const std::size_t end = id_at + length;
    if (id == 0) {
      read_common(at, cursor.at(), end);
    } else if (id <= id_at) {
      read_function(id_at - id, cursor.at(), end);
    }
    at = end;
  }
  std::ranges::sort(functions_, {}, &Function::begin);
}

void FrameTable::read_common(std::size_t key, std::size_t begin, std::size_t end) {
  Cursor cursor(bytes_, begin, end);
  Common common;
  cursor.fixed<std::uint8_t>();  // version
  const std::string augmentation = cursor.text();
  common.code_factor = cursor.unsigned_number();
  common.data_factor = cursor.signed_number();
  cursor.unsigned_number();  // the return address's register
  if (augmentation.starts_with('z')) {
    common.has_augmentation = true;
    const std::uint64_t length = cursor.unsigned_number();
    Cursor data(bytes_, cursor.at(), end);
    cursor.skip(length);
    for (const char letter : augmentation.substr(1)) {
      if (letter == 'R') common.encoding = data.fixed<std::uint8_t>();
      if (letter == 'L') data.fixed<std::uint8_t>();
      if (letter == 'P') data.pointer(data.fixed<std::uint8_t>() & 0x7fU, 0);
    }
  }
  if (cursor.failed() || common.encoding == kEncodingOmitted) return;
  common.begin = cursor.at();
  common.end = end;
  commons_[key] = common;
}

void FrameTable::read_function(std::size_t common_key, std::size_t begin, std::size_t end) {
  const auto found = commons_.find(common_key);
  if (found == commons_.end()) return;
  const Common& common = found->second;
  Cursor cursor(bytes_, begin, end);
  Function function;
  function.begin = cursor.pointer(common.encoding, address_);
  function.end = function.begin + cursor.pointer(common.encoding & 0x0fU, 0);
  if (common.has_augmentation) cursor.skip(cursor.unsigned_number());
  if (cursor.failed()) return;
  function.common = common_key;
  function.instructions_begin = cursor.at();
  function.instructions_end = end;
  functions_.push_back(function);
}

std::optional<FrameRule> FrameTable::rule_at(std::uint64_t address) const {
  const auto next = std::ranges::upper_bound(functions_, address, {}, &Function::begin);
  if (next == functions_.begin()) return std::nullopt;
  const Function& function = *std::prev(next);
  if (address >= function.end) return std::nullopt;
  const Common& common = commons_.at(function.common);
  Machine machine({common.code_factor, common.data_factor}, function.begin, address);
  machine.run(Cursor(bytes_, common.begin, common.end));
  machine.set_initial();
  machine.run(Cursor(bytes_, function.instructions_begin, function.instructions_end));
  return machine.rule();
}

}  // namespace pawl::cli::watch
