// SPDX-License-Identifier: Apache-2.0
// What happens if a value is wrong is in mistakes_test.cc.
#include "proxy/config/daemon_tables.h"

#include <catch2/catch.hpp>

#include "texts.h"

using namespace longhaul::config;

TEST_CASE("a file without the daemon's tables has their defaults") {
  const Config config = read_text(test::after_head(""), "dir/a.toml");
  CHECK(config.limits == Limits{});
  CHECK(config.process == Process{});
  CHECK(config.log == Log{});
}

TEST_CASE("keys that are absent keep their defaults, and each of the others is read") {
  const Config config = read_text(test::after_head(R"(
[limits]
flows = 100
flows_per_source = 20
memory = "64MiB"
[process]
user = "accelerator"
unknown_calls = "kill"
writable = ["/var/lib/tokens", "/srv/keys"]
[log]
level = "debug"
syslog = "udp:127.0.0.1:514"
)"),
                                  "dir/a.toml");
  const Limits& limits = config.limits;
  CHECK(limits.flows == 100);
  CHECK(limits.flows_of_one_source() == 20);
  CHECK(limits.new_flows_per_source == Limits{}.new_flows_per_source);
  CHECK(limits.handshakes == Limits{}.handshakes);
  CHECK(limits.memory_bytes == 64u << 20);
  const Process& process = config.process;
  CHECK(process.user == "accelerator");
  CHECK(process.sandbox);
  CHECK(process.kills_unknown_calls);
  CHECK(process.writable == std::vector<std::filesystem::path>{"/var/lib/tokens", "/srv/keys"});
  const Log& log = config.log;
  CHECK(log.level == "debug");
  CHECK_FALSE(log.json);
  CHECK(log.syslog);
}
