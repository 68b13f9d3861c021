// SPDX-License-Identifier: Apache-2.0
// See tally.h.
#include "tools/ttcp/tally.h"

#include "tools/ttcp/plan.h"

namespace longhaul::ttcp {

std::string_view name_of(Ending ending) {
  switch (ending) {
    case Ending::none:
      return "none";
    case Ending::all_received:
      return "all received";
    case Ending::mark:
      return "mark";
    case Ending::silence:
      return "silence";
  }
  return "";
}

void Tally::on_datagram(Bytes datagram, TimePoint now) {
  const auto label = parse_label(datagram);
  if (!label || label->test != config_.test) {
    ++foreign_;
    return;
  }
  last_sign_ = now;
  if (label->number == kStartMark) {
    if (!began_) began_ = now;
  } else if (label->number == kEndMark) {
    end_mark_ = true;
  } else if (datagram.size() != config_.payload_bytes || label->number >= kMostPackets) {
    ++foreign_;
  } else {
    on_packet(label->number, now);
  }
}

void Tally::on_packet(std::uint64_t number, TimePoint now) {
  if (!began_) began_ = now;
  if (number >= seen_.size()) {
    // Numbers are bounded by kMostPackets, so this is 12.5 MB at most.
    if (number >= seen_.capacity()) seen_.reserve(std::min<std::size_t>(kMostPackets, 2 * number + 1024));
    seen_.resize(number + 1);
  } else if (seen_[number]) {
    ++duplicates_;
    return;
  } else {
    ++out_of_order_;
  }
  seen_[number] = true;
  ++received_;
  last_packet_ = now;
}

void Tally::on_sent(std::uint64_t packets, TimePoint now) {
  sent_ = packets;
  last_sign_ = now;
}

Ending Tally::ending(TimePoint now) const {
  if (!sent_) return Ending::none;
  if (received_ >= *sent_) return Ending::all_received;
  if (end_mark_) return Ending::mark;
  return now >= *last_sign_ + config_.silence ? Ending::silence : Ending::none;
}

std::optional<TimePoint> Tally::deadline() const {
  if (!sent_) return std::nullopt;
  return *last_sign_ + config_.silence;
}

Duration Tally::elapsed() const {
  return began_ && last_packet_ && *last_packet_ > *began_ ? *last_packet_ - *began_ : Duration{0};
}

}  // namespace longhaul::ttcp
