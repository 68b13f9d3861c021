// SPDX-License-Identifier: Apache-2.0
// Valid workloads, their transport by a console, the bytes themselves, and the figures of the results.
#include "tools/txn/workload.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "codecs/byte_writer.h"
#include "tools/measuring/trouble.h"
#include "tools/txn/content.h"
#include "tools/txn/protocol.h"
#include "tools/txn/results.h"

using namespace longhaul;
using namespace longhaul::txn;

TEST_CASE("every row of every preset is valid, and is sent over the control connection unchanged", "[txn]") {
  for (const Preset& preset : presets())
    for (const Row& row : preset.rows) {
      INFO(preset.name << ": " << short_name(row));
      CHECK_NOTHROW(check(row.workload));
      const auto json = to_json(row.workload);
      CHECK(to_json(workload_of(json)) == json);
    }
  CHECK_THROWS_WITH(preset_of("x"), Catch::Contains("known presets: tcp-udp, file-size, send-buffer"));
}

TEST_CASE("an impossible workload is refused with its bounds", "[txn]") {
  const auto refused = [](Protocol protocol, auto change) {
    Workload workload = standard(Script::eft_short, protocol);
    change(workload);
    try {
      check(workload);
    } catch (const measuring::Trouble& trouble) {
      return std::string(trouble.what());
    }
    return std::string("taken");
  };
  using Catch::Contains;
  CHECK_THAT(refused(Protocol::tcp, [](Workload& w) { w.file_bytes = 15; }), Contains("file size is 15"));
  CHECK_THAT(refused(Protocol::udp, [](Workload& w) { w.file_bytes = 0; }), Contains("file size is 0"));
  CHECK_THAT(refused(Protocol::tcp, [](Workload& w) { w.window_bytes = 4; }), Contains("between 1460 and"));
  CHECK_THAT(refused(Protocol::tcp, [](Workload& w) { w.mtu = 100; }), Contains("between 576 and 65535"));
  CHECK_THAT(refused(Protocol::udp, [](Workload& w) { w.send_buffer = 65'508; }),
             Contains("between 31 and 65487"));
  CHECK_THAT(refused(Protocol::udp, [](Workload& w) { w.window_bytes = 1u << 29; }),
             Contains("datagrams in a window"));
  CHECK_THROWS_WITH(script_of("ftp"), Contains("EFT-SHORT, EFT-LONG and FILETRANSF-LONG"));
  CHECK(script_of("eft-long") == Script::eft_long);
  auto json = to_json(standard(Script::eft_short, Protocol::udp));
  json["send_buffer"] = 5;
  CHECK_THROWS_AS(workload_of(json), measuring::Trouble);
  json["send_buffer"] = "5";
  CHECK_THROWS_AS(workload_of(json), measuring::Trouble);
}

TEST_CASE("packets fill the MTU after their headers", "[txn]") {
  Workload workload = standard(Script::filetransf_long, Protocol::udp);
  CHECK(datagram_bytes(workload, Family::ipv4) == 8'863);
  workload.mtu = 1500;
  CHECK(datagram_bytes(workload, Family::ipv4) == 1'472);
  CHECK(datagram_bytes(workload, Family::ipv6) == 1'452);
  CHECK(segment_bytes(workload, Family::ipv4) == 1'460);
}

TEST_CASE("content does not depend on how it is split, and differs between transactions", "[txn]") {
  const ByteSource source{7, 1, Direction::request};
  Buffer whole(1000);
  source.fill(0, whole);
  for (std::size_t begin = 0; begin < 20; ++begin)
    for (std::size_t size = 0; size < 30; ++size) {
      Buffer part(size);
      source.fill(begin, part);
      REQUIRE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
      REQUIRE(source.matches(begin, part));
    }
  whole[999] ^= std::byte{1};
  CHECK_FALSE(source.matches(0, whole));
  CHECK(source.matches(0, Bytes(whole).first(999)));
  const auto first_bytes = Bytes(whole).first(16);
  CHECK_FALSE(ByteSource(7, 2, Direction::request).matches(0, first_bytes));
  CHECK_FALSE(ByteSource(8, 1, Direction::request).matches(0, first_bytes));
  CHECK_FALSE(ByteSource(7, 1, Direction::response).matches(0, first_bytes));
}

TEST_CASE("the figures of a row cover all its pairs", "[txn]") {
  Workload workload = standard(Script::eft_long, Protocol::tcp);
  Measured fast{{1'000'000, 3'000'000}, 2, 4'000'000, {}};
  Measured slow{{10'000'000}, 1, 10'000'000, {}};
  const Figures figures = figures_of({{"a", "b", fast}, {"c", "d", slow}}, workload);
  CHECK(figures.transactions == 3);
  CHECK(figures.response_ms.median == Approx(3));
  CHECK(figures.seconds == Approx(0.01));
  CHECK(figures.megabits_per_second == Approx(3 * 100 * 8 / 0.01 / 1e6));
  std::ostringstream csv;
  print_csv({{{workload, 2}, {{"a", "b", fast}, {"c", "d", slow}}}}, csv);
  CHECK_THAT(csv.str(), Catch::Contains("EFT-LONG,tcp,2,100,32767,0,0,blocking,3,0.010000,"));
}

TEST_CASE("a report arrives as it was sent, and an invalid one is Trouble", "[txn]") {
  const Measured measured{{1, 2, 3}, 3, 6, {7, 8, 9}};
  auto message = report_of(measured, true);
  const Report report = parse_report(message);
  CHECK(report.ended);
  CHECK(report.measured.response_ns == measured.response_ns);
  CHECK(report.measured.counts.negatives == 9);
  message["times"] = {-1};
  CHECK_THROWS_AS(parse_report(message), measuring::Trouble);
  message.erase("times");
  CHECK_THROWS_AS(parse_report(message), measuring::Trouble);
}
