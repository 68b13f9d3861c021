// SPDX-License-Identifier: Apache-2.0
// Counts the datagrams of one test and knows when it is over, whatever was lost: pure, times come from
// outside. Leaves sockets to receive.h.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/ttcp/datagram.h"

namespace longhaul::ttcp {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

enum class Ending { none, all_received, mark, silence };
std::string_view name_of(Ending ending);

struct TallyConfig {
  std::uint32_t test = 0;
  std::uint32_t payload_bytes = 0;
  Duration silence = std::chrono::seconds{2};  // after the sender has said that it is done
};

class Tally {
 public:
  explicit Tally(const TallyConfig& config) : config_(config) {}

  void on_datagram(Bytes datagram, TimePoint now);
  void on_sent(std::uint64_t packets, TimePoint now);  // over the control connection; nothing is lost there

  // Over only once the sender has said so: a mark that overtook its data ends nothing.
  Ending ending(TimePoint now) const;
  std::optional<TimePoint> deadline() const;  // when ending() may change without a datagram

  std::uint64_t received() const { return received_; }  // each packet once
  std::uint64_t duplicates() const { return duplicates_; }
  std::uint64_t out_of_order() const { return out_of_order_; }  // came after one with a higher number
  std::uint64_t foreign() const { return foreign_; }            // of another test, another size, or unknown
  // From the start mark, or the first packet if it was lost, to the last packet.
  Duration elapsed() const;

 private:
  void on_packet(std::uint64_t number, TimePoint now);

  TallyConfig config_;
  std::vector<bool> seen_;  // by number, grown as they come
  std::uint64_t received_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t out_of_order_ = 0;
  std::uint64_t foreign_ = 0;
  bool end_mark_ = false;
  std::optional<std::uint64_t> sent_;
  std::optional<TimePoint> began_;
  std::optional<TimePoint> last_packet_;
  std::optional<TimePoint> last_sign_;  // of life: a datagram of this test, or the word that it is sent
};

}  // namespace longhaul::ttcp
