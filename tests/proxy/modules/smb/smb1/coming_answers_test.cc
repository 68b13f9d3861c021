// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/coming_answers.h"

#include "proxy/modules/smb/smb1/conversation.h"
#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1::testing {
namespace {

constexpr OpenKey kOpen{.session = 1, .tree = 2}, kOther{.session = 1, .tree = 3};
constexpr Header kHeader{.tid = 2, .uid = 1};

std::string query(Trans2 function) {
  Buffer question;
  for (const std::uint16_t field :
       {static_cast<std::uint16_t>(function), std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{100}})
    append_field(question, field);
  return std::string(as_text(question));
}
const std::string kAboutFile = query(Trans2::query_file_information),
                  kAboutVolume = query(Trans2::query_fs_information);

// With one query about the file and one about its volume under way.
struct Coming : ComingAnswers {
  Coming() { expect(kOpen, std::vector{kAboutFile, kAboutVolume}); }
  bool holds(const OpenKey& open, const std::string& question, std::size_t bytes = 100) {
    return hold(open, question, kHeader, frame_of(Slice::copy_of(Buffer(bytes))));
  }
};

TEST_CASE("SMB1: a query waits for an answer that comes, and for no other") {
  Coming coming;
  CHECK(coming.holds(kOpen, kAboutFile));
  CHECK_FALSE(coming.holds(kOpen, query(Trans2::query_path_information)));
  CHECK_FALSE(coming.holds(kOther, kAboutFile));
  CHECK(coming.held() == 1);
  const auto come = coming.take(kOpen, kAboutFile);
  REQUIRE(come);
  CHECK_FALSE(come->is_void);
  CHECK(come->held.size() == 1);
  CHECK(coming.held() == 0);
  CHECK_FALSE(coming.take(kOpen, kAboutFile));
  CHECK_FALSE(coming.holds(kOpen, kAboutFile));
}

TEST_CASE("SMB1: a query about a volume waits for what was asked through any open of its tree") {
  Coming coming;
  const Frame frame = frame_of(Slice::copy_of(Buffer(100)));
  CHECK(coming.hold_in_tree(kHeader, kAboutVolume, frame));
  CHECK_FALSE(coming.hold_in_tree({.tid = 3, .uid = 1}, kAboutVolume, frame));
  CHECK_FALSE(coming.hold_in_tree({.tid = 2, .uid = 2}, kAboutVolume, frame));
}

TEST_CASE("SMB1: behind a change no query waits for what was asked before, but those that wait do") {
  Coming coming;
  REQUIRE(coming.holds(kOpen, kAboutFile));
  bool is_of_volume = false;
  SECTION("of the file") { coming.drop(kOpen); }
  SECTION("of all") { coming.drop_all(); }
  SECTION("of the volume") {
    coming.drop_volumes();
    is_of_volume = true;
  }
  CHECK(coming.holds(kOpen, kAboutFile) == is_of_volume);
  CHECK_FALSE(coming.holds(kOpen, kAboutVolume));
  const auto come = coming.take(kOpen, kAboutFile);
  REQUIRE(come);
  CHECK(come->is_void == !is_of_volume);
  CHECK_FALSE(come->held.empty());
}

TEST_CASE("SMB1: queries that wait through an open that ends are given back") {
  Coming coming;
  REQUIRE(coming.holds(kOpen, kAboutFile));
  REQUIRE(coming.holds(kOpen, kAboutVolume));
  CHECK(coming.forget(kOther).empty());
  CHECK(coming.forget(kOpen).size() == 2);
  CHECK(coming.held() == 0);
  CHECK_FALSE(coming.take(kOpen, kAboutFile));
}

TEST_CASE("SMB1: few queries wait, and no long ones") {
  Coming coming;
  CHECK_FALSE(coming.holds(kOpen, kAboutFile, ComingAnswers::kMostHeldFrame + 1));
  for (std::size_t i = 0; i < ComingAnswers::kMostHeld; ++i) REQUIRE(coming.holds(kOpen, kAboutFile));
  CHECK_FALSE(coming.holds(kOpen, kAboutFile));
  CHECK_FALSE(coming.holds(kOpen, kAboutVolume));
}

}  // namespace
}  // namespace longhaul::smb::smb1::testing
