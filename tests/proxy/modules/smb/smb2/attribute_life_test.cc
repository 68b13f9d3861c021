// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/attribute_life.h"

#include <catch2/catch.hpp>

using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kAlone = lease_state::read | lease_state::write;

bool file_answer_holds(const Open& open, longhaul::modules::Duration age, const Surroundings& surroundings) {
  return may_be_used(AnswerAbout::file, open, age, surroundings);
}

}  // namespace

TEST_CASE("attributes are guarded by a watched file, or by the client's own oplock") {
  Open open;
  CHECK_FALSE(attributes_guarded(open, {}));
  open.watched = true;
  CHECK(attributes_guarded(open, {}));
  open.directory = true;
  CHECK_FALSE(attributes_guarded(open, {}));

  Open own;
  own.caching = kAlone;
  CHECK(attributes_guarded(own, {}));
  own.moved = true;
  CHECK_FALSE(attributes_guarded(own, {}));

  Open ours;
  ours.caching = kAlone;
  ours.on_behalf = true;
  CHECK_FALSE(attributes_guarded(ours, {}));
}

TEST_CASE("without relaxed metadata a guarded answer about a file has no age, and others are not used") {
  Surroundings strict;
  Open open;
  CHECK_FALSE(file_answer_holds(open, 0s, strict));
  open.watched = true;
  CHECK(file_answer_holds(open, 1h, strict));
  CHECK_FALSE(may_be_used(AnswerAbout::volume, open, 0s, strict));
  open.break_pending = true;
  CHECK_FALSE(file_answer_holds(open, 0s, strict));
}

TEST_CASE("with relaxed metadata an answer holds as long as its oplock lets it") {
  Surroundings relaxed;
  relaxed.features.metadata_relaxed = true;
  Open open;
  CHECK(file_answer_holds(open, 100ms, relaxed));
  CHECK_FALSE(file_answer_holds(open, 101ms, relaxed));
  relaxed.round_trip = 300ms;
  CHECK(file_answer_holds(open, 600ms, relaxed));
  CHECK_FALSE(file_answer_holds(open, 601ms, relaxed));
  CHECK(may_be_used(AnswerAbout::volume, open, 600ms, relaxed));

  open.caching = lease_state::read;
  CHECK(file_answer_holds(open, kSharedLife, relaxed));
  CHECK_FALSE(file_answer_holds(open, kSharedLife + 1ms, relaxed));
  CHECK_FALSE(may_be_used(AnswerAbout::volume, open, kSharedLife, relaxed));

  open.caching = kAlone;
  CHECK(file_answer_holds(open, 1h, relaxed));
  open.on_behalf = true;
  CHECK_FALSE(file_answer_holds(open, 1h, relaxed));
  open.break_pending = true;
  CHECK_FALSE(file_answer_holds(open, 0s, relaxed));
}
