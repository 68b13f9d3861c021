// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/promise_policy.h"

#include <catch2/catch.hpp>

namespace longhaul::smb {
namespace {

struct OpenOfPolicy {
  bool on_behalf = true, unpromised = false;
};

}  // namespace

TEST_CASE("promises are declined to clients that cache or hide errors, and each file is counted once") {
  modules::Counters counters;
  PromisePolicy policy;
  OpenOfPolicy ours, theirs{.on_behalf = false};
  CHECK(policy.allows(ours, {}, counters));
  CHECK(policy.reason() == reasons::optimised);
  CHECK_FALSE(policy.allows(theirs, {}, counters));
  CHECK_FALSE(policy.allows(theirs, {}, counters));
  CHECK(policy.reason() == reasons::smb_client_caches);
  CHECK(counters.unpromised_files == 1);
  CHECK(policy.allows(theirs, {.write_behind_cached = true}, counters));
  policy.client_hides_resets();
  CHECK(policy.allows(ours, {.write_behind_cached = true}, counters));
  CHECK_FALSE(policy.allows(ours, {}, counters));
  CHECK(policy.reason() == reasons::smb_hides_errors);
  policy.client_hides_errors();
  CHECK_FALSE(policy.allows(ours, {.write_behind_cached = true}, counters));
  CHECK(policy.reason() == reasons::smb_hides_errors);
  CHECK(counters.unpromised_files == 2);
}

}  // namespace longhaul::smb
