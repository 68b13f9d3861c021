// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/oplock_fences.h"

#include <catch2/catch.hpp>

namespace longhaul::smb {
namespace {

using std::chrono_literals::operator""s;

constexpr OpenKey kFirst{.session = 1}, kSecond{.session = 2};

}  // namespace

TEST_CASE("a near half that does not confirm the break of an oplock is late, once for each") {
  OplockFences fences;
  const TimePoint start{};
  CHECK_FALSE(fences.next_timeout());
  fences.begin(start, kFirst);
  fences.begin(start + 5s, kSecond);
  CHECK(fences.next_timeout() == start + kOplockFence);
  CHECK_FALSE(fences.is_late(start + kOplockFence - 1s));
  CHECK(fences.is_late(start + kOplockFence));
  CHECK_FALSE(fences.is_late(start + kOplockFence));
  CHECK(fences.next_timeout() == start + 5s + kOplockFence);
  CHECK(fences.is_late(start + 60s));
  CHECK_FALSE(fences.next_timeout());
}

TEST_CASE("a break that was confirmed is waited for no more, in whatever order") {
  OplockFences fences;
  const TimePoint start{};
  fences.begin(start, kFirst);
  fences.begin(start + 1s, kSecond);
  fences.done(kSecond);
  CHECK(fences.next_timeout() == start + kOplockFence);
  fences.done(kFirst);
  fences.done(kFirst);
  CHECK_FALSE(fences.next_timeout());
  CHECK_FALSE(fences.is_late(start + 60s));
}

TEST_CASE("an oplock that is broken again has the whole time anew") {
  OplockFences fences;
  const TimePoint start{};
  fences.begin(start, kFirst);
  fences.begin(start + 10s, kFirst);
  CHECK(fences.next_timeout() == start + 10s + kOplockFence);
  CHECK_FALSE(fences.is_late(start + kOplockFence));
  CHECK(fences.is_late(start + 10s + kOplockFence));
}

}  // namespace longhaul::smb
