// SPDX-License-Identifier: Apache-2.0
// Tests that secrets are removed from texts and that what helps is kept.
#include "proxy/cli/scrub.h"

#include <catch2/catch.hpp>

#include "tests/proxy/cli/typed.h"

using longhaul::cli::has;
using longhaul::cli::Scrubber;

namespace {

const std::string kKey(64, 'a');
const std::string kPem = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAwEHBG0wawIBAQQg\n-----END PRIVATE KEY-----\n";

}  // namespace

TEST_CASE("known secrets are removed wherever they are, each line of a PEM file by itself") {
  Scrubber scrubber;
  scrubber.know(kPem);
  scrubber.know("short");
  const auto text = scrubber.scrub("x MIGHAgEAMBMGByqGSM49 y AwEHBG0wawIBAQQg, short\n");
  CHECK(text == "x (removed) y (removed), short\n");
  scrubber.know("user:" + std::string(32, 'c') + "\n");
  CHECK(scrubber.scrub("hash " + std::string(32, 'c') + ".") == "hash (removed).");
}

TEST_CASE("what looks like a key is removed, a fingerprint is not") {
  const Scrubber scrubber;
  CHECK(scrubber.scrub("a " + kKey + " b") == "a (removed) b");
  CHECK(scrubber.scrub("a " + kKey + kKey + " b") == "a (removed) b");
  CHECK(scrubber.scrub("sha256:" + kKey) == "sha256:" + kKey);
  CHECK(scrubber.scrub("sha256:" + kKey + "a") == "sha256:(removed)");
  CHECK_FALSE(has(scrubber.scrub("before\n" + kPem + "after\n"), "MIGH"));
  CHECK(has(scrubber.scrub("before\n" + kPem + "after\n"), "after"));
  CHECK_FALSE(has(scrubber.scrub("-----BEGIN EC PRIVATE KEY-----\nMIGHA"), "MIGHA"));
  CHECK(has(scrubber.scrub("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), "MIIB"));
  CHECK(scrubber.scrub("password=hunter2 user=u") == "password=(removed) user=u");
  CHECK(scrubber.scrub("{\"token\": \"hunter2\", \"a\": 1}") == "{\"token\": (removed), \"a\": 1}");
  CHECK(scrubber.scrub("PSK = hunter2\nx") == "PSK = (removed)\nx");
  CHECK(scrubber.scrub("Authorization: Bearer hunter2, x\nafter") == "Authorization: (removed)\nafter");
  CHECK(scrubber.scrub("token_file = \"control.token\"") == "token_file = \"control.token\"");
  CHECK(scrubber.scrub("the token of the API") == "the token of the API");
}

TEST_CASE("a configuration keeps its keys and loses its comments") {
  const Scrubber scrubber;
  CHECK(scrubber.scrub_toml("site = \"a#b\" # hunter2\n# hunter3\nprivate_key = \"branch.key\"") ==
        "site = \"a#b\" \n\nprivate_key = \"branch.key\"\n");
  CHECK(scrubber.scrub_toml("name = \"a\\\"#b\" # c") == "name = \"a\\\"#b\" \n");
}
