// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/contact_watch.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace std::chrono_literals;

namespace {

using Finding = ContactWatch::Finding;
const TimePoint kContactSince{1000s};

// Looks at a contact that was confirmed at some times, as a half does with each frame.
struct LookingHalf {
  ContactWatch watch;
  Surroundings before;
  TimePoint now = kContactSince;
  link::Contact contact{.since = kContactSince, .confirmed = kContactSince, .heard = kContactSince};

  Finding look() {
    const Finding finding = watch.look(now, contact, before);
    before.contact = contact;
    return finding;
  }
};

}  // namespace

TEST_CASE("nothing is concluded from a contact that is unknown") {
  LookingHalf t;
  t.contact = {};
  t.now += 1h;
  CHECK(t.look() == Finding::nothing_new);
  CHECK(t.watch.is_in_contact());
}

TEST_CASE("a short silence gives doubts, a long one ends answers, each once") {
  LookingHalf t;
  CHECK(t.look() == Finding::nothing_new);
  t.now += twin::kUnheard;
  CHECK(t.look() == Finding::nothing_new);
  CHECK(t.watch.is_in_contact());
  t.now += 1ms;
  CHECK(t.look() == Finding::doubts);
  CHECK(t.look() == Finding::nothing_new);
  CHECK_FALSE(t.watch.is_in_contact());
  CHECK_FALSE(t.watch.is_apart());
  t.now = kContactSince + link::kApart;
  CHECK(t.look() == Finding::nothing_new);
  t.now += 1ms;
  CHECK(t.look() == Finding::stops);
  CHECK(t.look() == Finding::nothing_new);
  CHECK(t.watch.is_apart());
  t.contact.confirmed = t.now;
  CHECK(t.look() == Finding::nothing_new);
  CHECK(t.watch.is_in_contact());
}

TEST_CASE("the line's delay is part of a short silence that means nothing") {
  LookingHalf t;
  t.before.round_trip = 300ms;
  t.now += twin::kUnheard + 300ms;
  CHECK(t.look() == Finding::nothing_new);
  t.now += 1ms;
  CHECK(t.look() == Finding::doubts);
}

TEST_CASE("with relaxed metadata only a long silence matters") {
  LookingHalf t;
  t.before.features.metadata_relaxed = true;
  t.now += link::kApart;
  CHECK(t.look() == Finding::nothing_new);
  CHECK(t.watch.is_in_contact());
  t.now += 1ms;
  CHECK(t.look() == Finding::stops);
}

TEST_CASE("a long silence that is over when it is found ends answers all the same") {
  LookingHalf t;
  CHECK(t.look() == Finding::nothing_new);
  t.now += 1h;
  t.contact = {.since = t.now, .confirmed = t.now, .heard = t.now};
  CHECK(t.look() == Finding::stops);
  CHECK(t.watch.is_in_contact());
  CHECK(t.look() == Finding::nothing_new);
}
