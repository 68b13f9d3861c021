// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/fetched_listing.h"

#include <catch2/catch.hpp>

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace std::chrono_literals;

namespace {

const link::TimePoint kListedAt{100s};

// Entries of this many bytes each.
std::vector<ListingEntry> some_entries(std::size_t count, std::size_t bytes = 16) {
  std::vector<ListingEntry> entries(count);
  for (ListingEntry& entry : entries) entry.bytes = Slice::copy_of(Buffer(bytes));
  return entries;
}

}  // namespace

TEST_CASE("a listing that nothing has come of has no next entry, and a rest") {
  const FetchedListing fetched;
  CHECK_FALSE(fetched.has_next());
  CHECK(fetched.has_rest());
  CHECK_FALSE(fetched.has_come());
  CHECK_FALSE(fetched.is_old(kListedAt));
  CHECK_FALSE(fetched.is_older_than(kListedAt, 0s));
}

TEST_CASE("entries come before the end, which answers all further queries") {
  FetchedListing fetched;
  fetched.add(kListedAt, some_entries(3));
  fetched.end(kListedAt, Status::no_more_files);
  const auto first = fetched.take(32, false);
  CHECK(first.status == Status::success);
  CHECK(first.count == 2);
  CHECK(first.entries.size() == 32);
  CHECK(fetched.take(1000, true).count == 1);
  CHECK(fetched.has_next());
  CHECK_FALSE(fetched.has_rest());
  for (int i = 0; i < 2; ++i) {
    const auto end = fetched.take(1000, false);
    CHECK(end.status == Status::no_more_files);
    CHECK(end.count == 0);
    CHECK(end.entries.empty());
  }
}

TEST_CASE("an entry that does not fit is an error of the query, and stays") {
  FetchedListing fetched;
  fetched.add(kListedAt, some_entries(1));
  CHECK(fetched.take(10, false).status == Status::info_length_mismatch);
  CHECK(fetched.bytes() == 16);
  CHECK(fetched.take(16, false).status == Status::success);
  CHECK(fetched.bytes() == 0);
}

TEST_CASE("what comes next is as old as the entries that came with it") {
  FetchedListing fetched;
  fetched.add(kListedAt, some_entries(2));
  fetched.add(kListedAt + 900ms, some_entries(2));
  const auto then = kListedAt + FetchedListing::kUnreportedLife + 1ms;
  CHECK(fetched.is_old(then));
  CHECK_FALSE(fetched.is_old(then - 1ms));
  CHECK(fetched.take(16, false).count == 1);
  CHECK(fetched.is_old(then));
  CHECK(fetched.take(16, false).count == 1);
  CHECK_FALSE(fetched.is_old(then));  // the rest came later
  CHECK(fetched.take(100, false).count == 2);
  CHECK_FALSE(fetched.is_old(then + 1h));  // more is under way
  fetched.end(then, Status::no_more_files);
  CHECK_FALSE(fetched.is_old(then));
  CHECK(fetched.is_old(then + FetchedListing::kUnreportedLife + 1ms));
  CHECK(fetched.is_older_than(then + 11s, 10s));
  CHECK_FALSE(fetched.is_older_than(then + 10s, 10s));
}

TEST_CASE("the far half is told of enough bytes at a time, and of none after the end") {
  FetchedListing fetched;
  fetched.add(kListedAt, some_entries(4, FetchedListing::kToldBytes / 2));
  const auto take = [&] { (void)fetched.take(FetchedListing::kToldBytes / 2, false); };
  take();
  CHECK_FALSE(fetched.poll_taken());
  take();
  CHECK(fetched.poll_taken() == FetchedListing::kToldBytes);
  CHECK_FALSE(fetched.poll_taken());
  take(), take();
  fetched.end(kListedAt, Status::no_more_files);
  CHECK_FALSE(fetched.poll_taken());
}

TEST_CASE("a listing that is fetched again has nothing of the previous one") {
  FetchedListing fetched;
  fetched.add(kListedAt, some_entries(3, FetchedListing::kToldBytes));
  (void)fetched.take(FetchedListing::kToldBytes, false);
  fetched.end(kListedAt, Status::no_more_files);
  fetched.restart();
  CHECK_FALSE(fetched.has_next());
  CHECK_FALSE(fetched.has_come());
  CHECK_FALSE(fetched.poll_taken());
  CHECK(fetched.bytes() == 0);
}
