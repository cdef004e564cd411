#include "support/watched_medium.h"

namespace pawl::test {
namespace {

class WatchedFile final : public MediumFile {
 public:
  WatchedFile(MediumFile* real, std::unique_ptr<MediumFile> owned, Which which,
              std::shared_ptr<Watch> watch)
      : owned_(std::move(owned)),
        real_(owned_ != nullptr ? owned_.get() : real),
        which_(which),
        watch_(std::move(watch)) {}

  Status read(std::uint64_t offset, std::span<std::byte> into) override {
    PAWL_TRY(watch_->happens({which_, Act::read, offset, into.size()}));
    return real_->read(offset, into);
  }
  Status write(std::uint64_t offset, std::span<const std::byte> from) override {
    const Event event{which_, Act::write, offset, from.size()};
    PAWL_TRY(watch_->happens(event));
    PAWL_TRY(real_->write(offset, from));
    return watch_->happened(event);
  }
  Status flush() override {
    const Event event{which_, Act::flush, 0, 0};
    PAWL_TRY(watch_->happens(event));
    PAWL_TRY(real_->flush());
    return watch_->happened(event);
  }
  Status write_durably(std::uint64_t offset, std::span<const std::byte> from) override {
    PAWL_TRY(write(offset, from));
    return flush();
  }
  void use_page_cache() override { real_->use_page_cache(); }
  Result<std::uint64_t> size() override { return real_->size(); }
  Status resize(std::uint64_t size_bytes) override {
    const Event event{which_, Act::resize, size_bytes, 0};
    PAWL_TRY(watch_->happens(event));
    PAWL_TRY(real_->resize(size_bytes));
    return watch_->happened(event);
  }
  Status reserve(std::uint64_t offset, std::uint64_t length) override {
    const Event event{which_, Act::reserve, offset, length};
    PAWL_TRY(watch_->happens(event));
    PAWL_TRY(real_->reserve(offset, length));
    return watch_->happened(event);
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    const Event event{which_, Act::punch, offset, length};
    PAWL_TRY(watch_->happens(event));
    PAWL_TRY(real_->punch(offset, length));
    return watch_->happened(event);
  }
  Status zero(std::uint64_t offset, std::uint64_t length) override {
    const Event event{which_, Act::zero, offset, length};
    PAWL_TRY(watch_->happens(event));
    PAWL_TRY(real_->zero(offset, length));
    return watch_->happened(event);
  }
  const std::byte* in_place() const override { return real_->in_place(); }
  void write_in_place(std::uint64_t offset, std::span<const std::byte> from) override {
    // It cannot fail.
    const Status seen = watch_->happens({which_, Act::write, offset, from.size()});
    PAWL_ASSERT(seen.ok());
    real_->write_in_place(offset, from);
  }
  std::uint64_t shared_unit_bytes() override { return real_->shared_unit_bytes(); }
  Result<std::uint64_t> find_shared(std::uint64_t offset, std::uint64_t end,
                                    const FoundShared& found) override {
    return real_->find_shared(offset, end, found);
  }
  std::uint64_t find_data(std::uint64_t offset) override { return real_->find_data(offset); }
  Status check_overwrite(std::uint64_t bytes) override { return real_->check_overwrite(bytes); }
  std::uint64_t free_bytes() override { return real_->free_bytes(); }
  Result<std::uint64_t> written_prefix_bytes() override { return real_->written_prefix_bytes(); }
  Result<std::uint64_t> allocated_prefix_bytes() override {
    return real_->allocated_prefix_bytes();
  }

 private:
  std::unique_ptr<MediumFile> owned_;
  MediumFile* real_;
  Which which_;
  std::shared_ptr<Watch> watch_;
};

class WatchedMedium final : public Medium {
 public:
  WatchedMedium(std::unique_ptr<Medium> real, std::shared_ptr<Watch> watch)
      : real_(std::move(real)),
        watch_(std::move(watch)),
        base_(&real_->base(), nullptr, Which::base, watch_) {}

  MediumFile& base() override { return base_; }
  FileIdentity identity() const override { return real_->identity(); }
  const std::string& path() const override { return real_->path(); }
  const std::string& journal_path() const override { return real_->journal_path(); }
  Result<JournalFile> acquire_journal(bool create) override {
    auto acquired = real_->acquire_journal(create);
    if (!acquired.ok()) return acquired;
    acquired.value().file = std::make_unique<WatchedFile>(nullptr, std::move(acquired.value().file),
                                                          Which::journal, watch_);
    return acquired;
  }
  SideFileOwner adopt_journal(SideFileOwner owner) override { return real_->adopt_journal(owner); }
  Status publish_journal() override { return real_->publish_journal(); }
  Result<std::unique_ptr<MediumFile>> read_journal() override { return real_->read_journal(); }
  Status remove_journal() override { return real_->remove_journal(); }
  bool can_mark() const override { return real_->can_mark(); }
  Result<std::optional<Mark>> mark() override {
    watch_->looks_at_mark();
    return real_->mark();
  }
  Result<FileIdentity> journal_identity() override { return real_->journal_identity(); }
  Status claim(const JournalId& journal_id, const std::optional<JournalId>& recovered) override {
    return real_->claim(journal_id, recovered);
  }
  Result<SoughtJournal> seek_journal(const Mark& mark) override {
    return real_->seek_journal(mark);
  }
  Status retire_journal(const Mark& mark, const EmptyJournal& empty) override {
    return real_->retire_journal(mark, empty);
  }
  Status set_mark(const Mark& mark) override { return real_->set_mark(mark); }
  Status clear_mark() override { return real_->clear_mark(); }
  Result<std::unique_ptr<Medium>> open_sibling(const std::string& name) override {
    return real_->open_sibling(name);
  }
  Result<std::unique_ptr<Medium>> open_group(const std::string& name) override {
    return real_->open_group(name);
  }
  Result<char*> map_private(void* address, std::size_t length, int protection, int flags,
                            std::uint64_t offset) override {
    return real_->map_private(address, length, protection, flags, offset);
  }
  Status check_before_commit() override { return real_->check_before_commit(); }

 private:
  std::unique_ptr<Medium> real_;
  std::shared_ptr<Watch> watch_;
  WatchedFile base_;
};

}  // namespace

void Watch::judge_with(Judge judge) {
  const std::lock_guard lock(mutex_);
  judge_ = std::move(judge);
}

void Watch::judge_afterwards_with(Judge judge) {
  const std::lock_guard lock(mutex_);
  judge_afterwards_ = std::move(judge);
}

Status Watch::happened(const Event& event) {
  Judge judge;
  {
    const std::lock_guard lock(mutex_);
    judge = judge_afterwards_;
  }
  return judge ? judge(event) : Status{};
}

Status Watch::happens(const Event& event) {
  Judge judge;
  {
    const std::lock_guard lock(mutex_);
    judge = judge_;
  }
  if (judge) PAWL_TRY(judge(event));
  const std::lock_guard lock(mutex_);
  events_.push_back(event);
  return {};
}

void Watch::before_mark(std::function<void()> meanwhile) {
  const std::lock_guard lock(mutex_);
  before_mark_ = std::move(meanwhile);
}

void Watch::looks_at_mark() {
  std::function<void()> meanwhile;
  {
    const std::lock_guard lock(mutex_);
    meanwhile = std::exchange(before_mark_, {});
  }
  if (meanwhile) meanwhile();
}

std::vector<Event> Watch::take_events() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::unique_ptr<MediumFile> watched_file(MediumFile& real, Which which,
                                         std::shared_ptr<Watch> watch) {
  return std::make_unique<WatchedFile>(&real, nullptr, which, std::move(watch));
}

std::unique_ptr<Medium> watched_medium(std::unique_ptr<Medium> real, std::shared_ptr<Watch> watch) {
  return std::make_unique<WatchedMedium>(std::move(real), std::move(watch));
}

}  // namespace pawl::test
