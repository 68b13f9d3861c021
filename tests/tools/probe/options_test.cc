// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/options.h"

#include <catch2/catch.hpp>

#include "made_packets.h"
#include "tools/probe/far_end.h"
#include "tools/probe/rfc6349.h"

using namespace longhaul;
using namespace longhaul::probe;

namespace {

const TcpOptions kFull{1460, 7, true, Timestamps{1, 0}, {}};

TcpOptions without_scale() {
  TcpOptions options = kFull;
  options.window_scale.reset();
  return options;
}

}  // namespace

TEST_CASE("a missing option is located between the last hop that had it and the first that had not") {
  const auto changes = changes_between({{0, "this host", false, kFull},
                                        {1, "10.1.0.1", false, kFull},
                                        {3, "10.3.0.1", false, without_scale()}});
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].option == "window scale");
  CHECK(changes[0].after == "gone");
  CHECK(changes[0].between.find("10.1.0.1 (hop 1)") != std::string::npos);
  CHECK(changes[0].between.find("10.3.0.1 (hop 3)") != std::string::npos);
}

TEST_CASE("a short quotation blames no hop, and a changed MSS is reported as a change") {
  TcpOptions clamped = kFull;
  clamped.mss = 1400;
  const auto changes = changes_between(
      {{0, "this host", false, kFull}, {1, "10.1.0.1", false, {}, true}, {2, "10.2.0.1", false, clamped}});
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].option == "MSS");
  CHECK(changes[0].after == "1400");
}

TEST_CASE("the cause of an option missing in the answer is reported as far as it is known") {
  OptionsReport report;
  report.address = "10.3.0.2";
  report.answered = true;
  report.stations = {{0, "this host", false, kFull}};
  report.answer = without_scale();
  const auto said = [&](const char* words) {
    const auto remarks = judge_answer(report);
    return remarks.size() == 1 && remarks[0].find(words) != std::string::npos;
  };
  CHECK(said("an agent there shows which"));
  report.far_settings = HostSettings{{"net.ipv4.tcp_window_scaling", "0"}};
  CHECK(said("net.ipv4.tcp_window_scaling is 0"));
  report.far_settings = HostSettings{{"net.ipv4.tcp_window_scaling", "1"}};
  CHECK(said("the agent there could not observe what arrived"));
  report.port = 445;
  report.seen_at = 7612;
  CHECK(said("a device that inspects only port 445"));
  report.seen_at = 445;
  CHECK(said("so it is removed on the way back"));
  report.changes = {{"window scale", "7", "gone", ""}};
  CHECK(said("this host's offer did not arrive"));
}

TEST_CASE("a SYN saved by a kernel is parsed, and other text is refused") {
  const auto flow = made::flow_of(Family::v4, Kind::tcp);
  const auto syn = made::behind_ip(flow, IPPROTO_TCP, make_syn(flow, 5, kFull));
  CHECK(read_saved_syn(syn)->options == kFull);
  for (std::size_t size = 0; size < 40; ++size) CHECK_FALSE(read_saved_syn(Bytes(syn).first(size)));
  CHECK_FALSE(read_hex_syn("4500zz"));
  CHECK_FALSE(read_hex_syn(""));
}

TEST_CASE("the figures of RFC 6349 match its definitions") {
  Sent sent;
  sent.sent = 10'200'000;
  sent.again = 200'000;
  sent.mean_rtt_us = 32'000;
  sent.mss = 1448;
  sent.timestamps = true;
  Received received;
  received.bytes = 10'000'000;
  received.seconds = 12;
  const Figures figures = figures_of(10e6, 25'000, 20, sent, received);
  CHECK(figures.achievable_bits == Approx(10e6 * 1448 / 1500));
  CHECK(figures.ideal_seconds == Approx(8.287).epsilon(0.001));
  CHECK(figures.transfer_time_ratio == Approx(1.448).epsilon(0.001));
  CHECK(figures.efficiency == Approx(10. / 10.2));
  CHECK(figures.buffer_delay == Approx(0.28));
  CHECK(figures.window_bytes == Approx(31'250));
}
