// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/host.h"

#include <catch2/catch.hpp>

using namespace longhaul::probe;

namespace {

HostSettings usual() {
  return {{"net.ipv4.tcp_window_scaling", "1"},
          {"net.ipv4.tcp_sack", "1"},
          {"net.ipv4.tcp_timestamps", "1"},
          {"net.ipv4.tcp_moderate_rcvbuf", "1"},
          {"net.ipv4.tcp_adv_win_scale", "1"},
          {"net.ipv4.tcp_rmem", "4096 131072 6291456"},
          {"net.ipv4.tcp_wmem", "4096 16384 4194304"},
          {"net.ipv4.tcp_no_metrics_save", "1"}};
}

const Finding* finding(const std::vector<Finding>& all, const std::string& setting) {
  for (const Finding& one : all)
    if (one.setting == setting) return &one;
  return nullptr;
}

constexpr Demand kLongLine{51.84e6, 0.1};  // 648,000 bytes

}  // namespace

TEST_CASE("a host with the kernel's default buffers suits an OC-1 line of 100 ms") {
  CHECK(all_right(judge_options(usual())));
  CHECK(all_right(judge_buffers(usual(), kLongLine)));
  CHECK(kLongLine.window_bytes() == 648'000);
}

TEST_CASE("a host limited to 64 KB is told which settings to change, and they suffice") {
  HostSettings settings = usual();
  settings["net.ipv4.tcp_rmem"] = "4096 65536 65536";
  settings["net.ipv4.tcp_wmem"] = "4096 16384 65536";
  for (const std::string name : {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}) {
    const auto before = judge_buffers(settings, kLongLine);
    const Finding* bad = finding(before, name);
    REQUIRE(bad);
    CHECK(bad->verdict == Verdict::change);
    CHECK(bad->command == "sysctl -w " + name + "='" + bad->needed + "'");
    settings[name] = bad->needed;
  }
  CHECK(all_right(judge_buffers(settings, kLongLine)));
  CHECK(windows_of(settings).receive >= kLongLine.window_bytes());
  CHECK(windows_of(settings).send >= kLongLine.window_bytes());
}

TEST_CASE("without window scaling no buffer helps, and a short path needs none") {
  HostSettings settings = usual();
  settings["net.ipv4.tcp_window_scaling"] = "0";
  CHECK(finding(judge_buffers(settings, kLongLine), "net.ipv4.tcp_window_scaling")->verdict ==
        Verdict::change);
  CHECK(windows_of(settings).receive == 65'535);
  CHECK(all_right(judge_buffers(settings, {1.544e6, 0.03})));
}

TEST_CASE("settings that the kernel does not show are not recommended for change") {
  const auto findings = judge_buffers({}, kLongLine);
  CHECK(all_right(findings));
  CHECK(finding(findings, "net.ipv4.tcp_rmem")->verdict == Verdict::note);
  CHECK(all_right(judge_buffers({{"net.ipv4.tcp_rmem", "nonsense"}}, kLongLine)));
}

TEST_CASE("a path that exceeds TCP's window leads to the advice to use several connections") {
  HostSettings settings = usual();
  settings["net.ipv4.tcp_rmem"] = settings["net.ipv4.tcp_wmem"] = "4096 131072 2147483647";
  CHECK(finding(judge_buffers(settings, {100e9, 0.2}), "(TCP itself)"));
}
