// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/changes.h"

#include <catch2/catch.hpp>

#include "tests/proxy/config/texts.h"

using namespace longhaul::config;
using test::after_head;
using test::kFingerprint;

namespace {

const std::string kPeer = "[[peer]]\nname = \"b\"\naddress = \"b:1\"\n" + kFingerprint;

Changes between(const std::string& before, const std::string& after) {
  return changes(read_text(after_head(before), "a.toml"), read_text(after_head(after), "a.toml"));
}

using List = std::vector<std::string>;

}  // namespace

TEST_CASE("peers, rules, features, keys and some limits change while the daemon runs") {
  const auto live = [](const std::string& before, const std::string& after) {
    const Changes found = between(before, after);
    CHECK(found.fixed.empty());
    return found.live;
  };
  CHECK(live(kPeer, kPeer) == List{});
  CHECK(live(kPeer, "") == List{"[[peer]] b: removed"});
  CHECK(live("", kPeer) == List{"[[peer]] b: added"});
  CHECK(live(kPeer, kPeer + "rate = \"1mbit\"\nnetworks = [\"10.0.0.0/8\"]\n") ==
        List{"[[peer]] b: networks, rate"});
  CHECK(live(kPeer, "[[peer]]\nname = \"b\"\naddress = \"b:1\"\nfingerprint = [\"sha256:" + test::kHex +
                        "\", \"sha256:" + std::string(64, 'c') + "\"]\n") == List{"[[peer]] b: fingerprint"});
  CHECK(live("", "[[rule]]\nto_ports = [1]\n") == List{"[[rule]]"});
  CHECK(live("", "[features]\nfec = \"off\"\n") == List{"[features]"});
  CHECK(live("", "[link]\nallow = [\"10.0.0.0/8\"]\ntotal_rate = \"1gbit\"\n") ==
        List{"[link] allow", "[link] total_rate"});
  CHECK(live("", "[intercept]\nfail = \"closed\"\n") == List{"[intercept] fail"});
  CHECK(live("", "[limits]\nhandshakes = 7\nflows = 10\n") == List{"[limits] handshakes", "[limits] flows"});
}

TEST_CASE("settings that need a restart are named as in the file") {
  const auto fixed = [](const std::string& before, const std::string& after) {
    return between(before, after).fixed;
  };
  CHECK(fixed("", "[link]\nlisten = \"0.0.0.0:1\"\n") == List{"[link] listen"});
  CHECK(fixed("", "[limits]\nflows = 1000000\n") == List{"[limits] flows (more than before)"});
  CHECK(fixed("", "[limits]\nmemory = \"1GiB\"\n") == List{"[limits]"});
  CHECK(fixed("", "[intercept]\nsource = \"proxy\"\n") == List{"[intercept]"});
  CHECK(fixed("", "[socks]\nlisten = \"127.0.0.1:1\"\n") == List{"[socks]"});
  CHECK(fixed("", "[dictionary]\ndisk = 0\n[log]\njson = true\n") == List{"[dictionary]", "[log]"});
  CHECK(changes(read_text("site = \"a\"\n" + test::kIdentity, "a.toml"),
                read_text("site = \"b\"\nstate_dir = \"/x\"\n" + test::kIdentity, "a.toml"))
            .fixed == List{"site", "state_dir"});
}
