// The committed image beside a model of plain bytes: whatever is patched, cut, grown and applied,
// in whole pages and in lines, it shows what was committed last, and so does the base once all of
// it is applied.
#include "journal/committed_image.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "medium/block_medium.h"
#include "support/temporary_directory.h"
#include "support/watched_medium.h"
#include "workload/random.h"

namespace pawl {
namespace {

constexpr std::uint64_t kPagesMax = 12;

class CommittedImages : public testing::Test {
 protected:
  CommittedImages() {
    test::write_file(path_, std::string(8 * kPageBytes, 'a'));
    owner_ = std::move(open_block_medium(path_, false).value());
    base_ = test::watched_file(owner_->base(), test::Which::base, watch_);
    image_ = std::make_unique<CommittedImage>(*base_, 8 * kPageBytes, 0);
    EXPECT_TRUE(image_->learn_space().ok());
    model_.assign(8 * kPageBytes, 'a');
  }

  // A commit of lines whose page nobody read, as the store tracker's are.
  void patch_lines(std::uint64_t page, std::size_t first_line, std::size_t lines, char letter) {
    const std::uint64_t start = page * kPageBytes + first_line * kLineBytes;
    const std::string text(std::min(lines * kLineBytes, model_.size() - start), letter);
    ASSERT_TRUE(image_->reserve_space(page * kPageBytes, kPageBytes).ok());
    image_->patch(page, nullptr, first_line * kLineBytes, std::as_bytes(std::span(text)),
                  sequence_);
    model_.replace(start, text.size(), text);
  }
  void patch_bytes(std::uint64_t page, std::size_t at, std::size_t length, char letter) {
    const std::uint64_t start = page * kPageBytes + at;
    const std::string text(std::min(length, model_.size() - start), letter);
    const auto committed = image_->page(page);
    ASSERT_TRUE(committed.ok());
    ASSERT_TRUE(image_->reserve_space(page * kPageBytes, kPageBytes).ok());
    image_->patch(page, committed.value(), at, std::as_bytes(std::span(text)), sequence_);
    model_.replace(start, text.size(), text);
  }
  void resize(std::uint64_t to, std::uint64_t size) {
    if (to < model_.size()) image_->truncate(to, sequence_);
    image_->set_size(size, sequence_);
    model_.resize(std::min<std::size_t>(model_.size(), to));
    model_.resize(size, '\0');
  }
  void expect_the_model() {
    for (std::uint64_t page = 0; page < kPagesMax; ++page) {
      const auto shown = image_->page(page);
      ASSERT_TRUE(shown.ok());
      std::string expected = page * kPageBytes < model_.size()
                                 ? model_.substr(page * kPageBytes, kPageBytes)
                                 : std::string();
      expected.resize(kPageBytes, '\0');
      if (std::memcmp(&shown.value()->bytes[0], expected.data(), kPageBytes) == 0) continue;
      for (std::size_t at = 0; at < kPageBytes; ++at)
        ASSERT_EQ(static_cast<char>(shown.value()->bytes[at]), expected[at])
            << "page " << page << " byte " << at;
    }
  }
  // The next write to the base ends after so many bytes, for want of space.
  void let_a_write_fail(std::size_t after_bytes) {
    watch_->judge_with([this, after_bytes](const test::Event& event) -> Status {
      if (event.act != test::Act::write) return {};
      watch_->judge_with(nullptr);
      const std::string text(after_bytes, '?');
      if (after_bytes > 0)
        PAWL_TRY(owner_->base().write(event.offset, std::as_bytes(std::span(text))));
      return FailedCall{ENOSPC, "no space"};
    });
  }
  void expect_the_base() { ASSERT_EQ(test::read_file(path_), model_); }

  test::TemporaryDirectory directory_;
  std::string path_ = directory_ / "file";
  std::unique_ptr<Medium> owner_;
  std::shared_ptr<test::Watch> watch_ = std::make_shared<test::Watch>();
  std::unique_ptr<MediumFile> base_;
  std::unique_ptr<CommittedImage> image_;
  std::string model_;
  std::uint64_t sequence_ = 1;
};

TEST_F(CommittedImages, LinesOfAPageThatNobodyReadStandBesideThoseOfTheBase) {
  EXPECT_TRUE(image_->only_in_base(3));
  patch_lines(3, 2, 1, 'b');
  patch_lines(3, 63, 1, 'c');
  EXPECT_FALSE(image_->only_in_base(3));
  expect_the_model();
  image_->durable(sequence_);
  ASSERT_TRUE(image_->apply().ok());
  EXPECT_TRUE(image_->only_in_base(3));
  expect_the_base();
  expect_the_model();
}

TEST_F(CommittedImages, LinesAreWrittenAloneAndTheirNeighboursKept) {
  patch_lines(3, 2, 1, 'b');
  image_->durable(sequence_);
  // Somebody else's bytes, in lines that no commit wrote, are not written over.
  const std::string text = "x";
  const std::uint64_t at = 3 * kPageBytes + 3 * kLineBytes;
  ASSERT_TRUE(owner_->base().write(at, std::as_bytes(std::span(text))).ok());
  model_[at] = 'x';
  ASSERT_TRUE(image_->apply().ok());
  expect_the_base();
}

TEST_F(CommittedImages, ACutThroughAPageOfWhichLinesWaitLosesWhatTheBaseHasBehindIt) {
  patch_lines(3, 2, 1, 'b');
  patch_lines(3, 40, 1, 'c');
  image_->durable(sequence_++);
  const std::uint64_t to = 3 * kPageBytes + 10 * kLineBytes + 5;
  resize(to, 8 * kPageBytes);
  expect_the_model();
  image_->durable(sequence_);
  ASSERT_TRUE(image_->apply().ok());
  expect_the_base();
  expect_the_model();
}

TEST_F(CommittedImages, ABaseThatLinesMadeLongerIsAsLongAsTheFile) {
  resize(model_.size(), 10 * kPageBytes + 100);
  patch_lines(9, 1, 1, 'b');
  patch_lines(10, 0, 1, 'c');
  image_->durable(sequence_);
  ASSERT_TRUE(image_->apply().ok());
  expect_the_base();
}

TEST_F(CommittedImages, LinesOfAPageThatCouldNotAllBeWrittenAreWrittenByTheNextTry) {
  patch_lines(3, 2, 1, 'b');
  patch_lines(3, 9, 2, 'c');
  image_->durable(sequence_);
  let_a_write_fail(10);
  ASSERT_FALSE(image_->apply().ok());
  EXPECT_EQ(image_->applied_sequence(), 0u);
  expect_the_model();
  ASSERT_TRUE(image_->apply().ok());
  EXPECT_EQ(image_->applied_sequence(), sequence_);
  expect_the_base();
}

// A page that waits whole is written over what a cut left in the base.  When that failed, and a
// commit that is not durable yet changed the page, the next try passed it by and let go of the
// record that cut it: after a crash the page had its old bytes again.
TEST_F(CommittedImages, ARecordThatCutAPageWasDroppedBeforeThePageWasWritten) {
  resize(2 * kPageBytes, 8 * kPageBytes);
  image_->durable(sequence_++);
  patch_bytes(5, 0, 64, 'b');
  image_->durable(sequence_++);
  let_a_write_fail(0);
  ASSERT_FALSE(image_->apply().ok());
  patch_bytes(5, 64, 64, 'c');
  ASSERT_TRUE(image_->apply().ok());
  EXPECT_EQ(image_->applied_sequence(), 0u) << "the base has what the first record cut";
  image_->durable(sequence_);
  ASSERT_TRUE(image_->apply().ok());
  EXPECT_EQ(image_->applied_sequence(), sequence_);
  expect_the_base();
}

TEST_F(CommittedImages, AWriteThatFailedHalfwayLeftTheBaseLongerThanTheFile) {
  resize(model_.size(), 12 * kPageBytes);
  patch_bytes(9, 0, kPageBytes, 'b');
  image_->durable(sequence_++);
  let_a_write_fail(1000);
  ASSERT_FALSE(image_->apply().ok());
  resize(8 * kPageBytes, 8 * kPageBytes);
  image_->durable(sequence_);
  ASSERT_TRUE(image_->apply().ok());
  expect_the_base();
}

TEST_F(CommittedImages, AnyOrderOfChangesShowsTheModel) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kSeeds = 60;  // they take long, and see more in each
#else
  constexpr std::uint64_t kSeeds = 300;
#endif
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    test::Random random(static_cast<unsigned>(seed));
    for (int step = 0; step < 40; ++step, ++sequence_) {
      for (std::uint64_t changes = test::below(random, 4); changes > 0; --changes) {
        const std::uint64_t pages = model_.size() / kPageBytes;
        if (pages == 0) break;
        const std::uint64_t page = test::below(random, pages);
        const char letter = static_cast<char>('b' + test::below(random, 20));
        const std::size_t line = test::below(random, 64);
        const bool nobody_reads = image_->only_in_base(page) && test::below(random, 4) != 0;
        if (nobody_reads)
          patch_lines(page, line, 1 + test::below(random, 64 - line), letter);
        else
          patch_bytes(page, line * kLineBytes,
                      1 + test::below(random, kPageBytes - line * kLineBytes), letter);
      }
      if (test::below(random, 6) == 0) {
        const std::uint64_t size = test::below(random, kPagesMax * kPageBytes);
        resize(test::below(random, size + 1), size);
      }
      if (test::below(random, 3) != 0) image_->durable(sequence_);
      if (test::below(random, 3) == 0) {
        ASSERT_TRUE(image_->apply().ok());
      }
      if (test::below(random, 4) == 0) expect_the_model();
      if (HasFatalFailure()) return;
    }
    image_->durable(sequence_++);
    ASSERT_TRUE(image_->apply().ok());
    expect_the_base();
    expect_the_model();
    if (HasFatalFailure()) return;
  }
}

// What is applied is read by one thread while the other patches it again.
TEST_F(CommittedImages, LinesThatArePatchedWhileTheyAreAppliedReachTheBase) {
  std::atomic<bool> stop{false};
  std::thread applier([&] {
    while (!stop) ASSERT_TRUE(image_->apply().ok());
  });
  test::Random random(7);
  for (int step = 0; step < 20000 && !HasFatalFailure(); ++step, ++sequence_) {
    const std::uint64_t page = test::below(random, 4);
    const char letter = static_cast<char>('b' + test::below(random, 20));
    const std::size_t line = test::below(random, 64);
    if (image_->only_in_base(page))
      patch_lines(page, line, 1 + test::below(random, 64 - line), letter);
    else
      patch_bytes(page, line * kLineBytes, kLineBytes, letter);
    image_->end_commit();
    image_->durable(sequence_);
    if (step % 100 == 0) expect_the_model();
  }
  stop = true;
  applier.join();
  ASSERT_TRUE(image_->apply().ok());
  expect_the_base();
}

}  // namespace
}  // namespace pawl
