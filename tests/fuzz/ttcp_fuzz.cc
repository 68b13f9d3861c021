// SPDX-License-Identifier: Apache-2.0
// Any input of longhaul-ttcp from outside: a control connection's stream, cut anywhere, gives messages within
// their bounds or an error; datagrams are counted within the number sent. The first byte chooses.
#include <cmath>

#include "fuzz/target.h"
#include "tests/fuzz/choices.h"
#include "tools/measuring/messages.h"
#include "tools/ttcp/fragments.h"
#include "tools/ttcp/messages.h"
#include "tools/ttcp/tally.h"

namespace longhaul::fuzz::ttcp_target {
using namespace longhaul::ttcp;
using longhaul::fuzz::Choices;

namespace {

void read_message(const boost::json::object& message) {
  try {
    const Announcement announcement = to_announcement(message);
    require(announcement.payload_bytes >= kLeastPacketBytes &&
            announcement.payload_bytes <= kMostDatagramBytes);
    require(to_announcement(to_message(announcement)).test == announcement.test);
  } catch (const Trouble&) {
  }
  try {
    const Receipt receipt = to_receipt(message);
    require(std::isfinite(receipt.seconds) && receipt.seconds >= 0);
    Row row;
    row.test = {Kind::udp, 1, 32, 0, 1};
    row.packets_sent = 1;
    row.bytes_received = receipt.payload_bytes;
    row.seconds = receipt.seconds;
    for (const double value : line_of(row).values) require(!std::isnan(value));
  } catch (const Trouble& trouble) {
    for (const char each : fit_to_print(trouble.what())) require(static_cast<unsigned char>(each) >= 0x20);
  }
  (void)say_of(message);
}

void read_stream(Choices& choices) {
  measuring::MessageReader reader{kLongestMessage};
  while (!choices.empty()) {
    reader.feed(choices.some(200));
    for (;;) {
      const auto message = reader.next();
      if (!message) return;
      if (!*message) break;
      read_message(**message);
    }
  }
}

void count(Choices& choices) {
  TimePoint now{};
  Tally tally{
      {choices.byte(), kLeastPacketBytes + choices.below(64), std::chrono::milliseconds{choices.byte()}}};
  std::uint64_t datagrams = 0;
  while (!choices.empty()) {
    now += std::chrono::milliseconds{choices.byte()};
    switch (choices.below(4)) {
      case 0:
        tally.on_sent(choices.number(), now);
        break;
      case 1:
        tally.on_datagram(choices.some(100), now);
        ++datagrams;
        break;
      default: {
        std::vector<std::byte> datagram(kLabelBytes + choices.below(80));
        // Numbers in the millions are right, and would only make this slow.
        const std::uint64_t number = choices.below(2) == 0 ? choices.below(200) : kEndMark - choices.below(3);
        write_label({choices.byte(), number},
                    std::span<std::byte, kLabelBytes>{datagram.data(), kLabelBytes});
        tally.on_datagram(datagram, now);
        ++datagrams;
      }
    }
    require(tally.received() + tally.duplicates() + tally.foreign() <= datagrams);
    require(tally.elapsed() >= Duration{0});
    if (const auto deadline = tally.deadline()) require(tally.ending(*deadline) != Ending::none);
  }
}

}  // namespace

FUZZ_TARGET(ttcp) {
  Choices choices{{reinterpret_cast<const std::byte*>(data), size}};
  switch (choices.below(3)) {
    case 0:
      read_stream(choices);
      break;
    case 1:
      count(choices);
      break;
    default: {
      const std::string text(reinterpret_cast<const char*>(data), size);
      (void)parse_fragments(text, text);
    }
  }
  return 0;
}

}  // namespace longhaul::fuzz::ttcp_target
