// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/send_stream.h"

#include <algorithm>

namespace longhaul::link {

std::optional<StreamRange> SendStream::next(std::size_t limit) const {
  if (limit == 0) return std::nullopt;
  if (!lost_.empty()) {
    const StreamRange first = StreamRange::of(lost_.front());
    return StreamRange{first.begin, std::min(first.end, first.begin + limit)};
  }
  if (next_unsent_ == end_offset()) return std::nullopt;
  return StreamRange{next_unsent_, std::min(end_offset(), next_unsent_ + limit)};
}

void SendStream::on_sent(StreamRange range, CarrierId carrier) {
  lost_.remove(range.numbers());
  next_unsent_ = std::max(next_unsent_, range.end);
  // Nearly always the newest run continues, or a part of it is sent again.
  if (!in_flight_.empty()) {
    Sent& last = in_flight_.back();
    if (last.carrier == carrier && last.range.begin <= range.begin && range.begin <= last.range.end) {
      last.range.end = std::max(last.range.end, range.end);
      return;
    }
    // New bytes, on a carrier other than the previous ones: several carriers take turns.
    if (last.range.end <= range.begin) {
      in_flight_.push_back({range, carrier});
      return;
    }
  }
  std::vector<Sent> runs;
  runs.reserve(in_flight_.size() + 2);
  auto add = [&](StreamRange part, CarrierId on) {
    if (part.empty()) return;
    if (!runs.empty() && runs.back().carrier == on && runs.back().range.end == part.begin) {
      runs.back().range.end = part.end;
    } else {
      runs.push_back({part, on});
    }
  };
  bool placed = false;
  for (const Sent& sent : in_flight_) {
    add({sent.range.begin, std::min(sent.range.end, range.begin)}, sent.carrier);
    if (!placed && sent.range.end > range.begin) {
      add(range, carrier);
      placed = true;
    }
    add({std::max(sent.range.begin, range.end), sent.range.end}, sent.carrier);
  }
  if (!placed) add(range, carrier);
  in_flight_ = std::move(runs);
}

std::size_t SendStream::on_acknowledged(StreamOffset offset) {
  if (offset <= acknowledged() || offset > next_unsent_) return 0;
  std::size_t freed = static_cast<std::size_t>(offset - acknowledged());
  kept_.drop_until(offset.number());
  lost_.remove({0, offset.number()});
  std::erase_if(in_flight_, [&](const Sent& sent) { return sent.range.end <= offset; });
  for (Sent& sent : in_flight_) sent.range.begin = std::max(sent.range.begin, offset);
  return freed;
}

template <class IsLost>
void SendStream::send_again(const IsLost& is_lost) {
  std::erase_if(in_flight_, [&](const Sent& sent) {
    if (!is_lost(sent.carrier)) return false;
    lost_.add(sent.range.numbers());
    return true;
  });
}

void SendStream::on_carrier_lost(CarrierId carrier) {
  send_again([&](CarrierId each) { return each == carrier; });
}

void SendStream::on_carriers_left(std::span<const CarrierId> carriers) {
  send_again([&](CarrierId each) { return std::ranges::find(carriers, each) == carriers.end(); });
}

void SendStream::on_lost(StreamRange range, CarrierId carrier) {
  for (const Sent& sent : in_flight_) {
    if (sent.carrier != carrier) continue;
    const StreamRange lost{std::max(range.begin, sent.range.begin), std::min(range.end, sent.range.end)};
    lost_.add(lost.numbers());
  }
}

void SendStream::repeat_last_byte() {
  if (kept_.empty() || next_unsent_ < end_offset()) return;
  lost_.add({kept_.end_offset() - 1, kept_.end_offset()});
}

std::size_t SendStream::clear() {
  std::size_t freed = kept_.size();
  kept_.drop_until(kept_.end_offset());
  next_unsent_ = end_offset();
  in_flight_.clear();
  lost_ = {};
  return freed;
}

}  // namespace longhaul::link
