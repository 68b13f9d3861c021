// SPDX-License-Identifier: Apache-2.0
// Moves frames between port, store and link, and measures how late they leave.
#include "tools/wan/direction.h"

#include <algorithm>

#include "tools/wan/clock.h"
#include "tools/wan/frame.h"

namespace longhaul::wan {
namespace {

constexpr std::size_t kTakeAtOnce = 256;
constexpr std::size_t kSendAtOnce = 32;
// 1 Gbit/s for a second, and two round trips of queue, with room to spare; a line without a rate could hold
// anything.
constexpr std::size_t kMemoryLimit = 1024u * 1024 * 1024;

double micros(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

}  // namespace

void FrameStore::put(std::span<const std::byte> frame) {
  if (free_.empty()) {
    frames_.emplace_back();
    free_.push_back(static_cast<PacketId>(frames_.size() - 1));
  }
  Frame& slot = frames_[free_.back()];
  free_.pop_back();
  slot.bytes = std::make_unique_for_overwrite<std::byte[]>(frame.size());
  slot.size = frame.size();
  std::copy(frame.begin(), frame.end(), slot.bytes.get());
  bytes_ += slot.size;
}

void FrameStore::forget(PacketId id) {
  bytes_ -= frames_[id].size;
  frames_[id] = {};
  free_.push_back(id);
}

bool Direction::take_in() {
  for (std::size_t taken = 0; taken < kTakeAtOnce; ++taken) {
    const auto arrival = in_.receive();
    if (!arrival) return false;
    if (arrival->frame.empty()) continue;
    if (frames_.bytes() + arrival->frame.size() > kMemoryLimit) {
      ++dropped_memory_;
      continue;
    }
    const PacketId id = frames_.next_id();
    if (link_.arrive(arrival->at, ip_bytes(arrival->frame), id, traits_of(arrival->frame)) == Fate::carried)
      frames_.put(arrival->frame);
  }
  return true;
}

bool Direction::send_due(TimePoint now) {
  due_.clear();
  batch_.clear();
  while (due_.size() < kSendAtOnce) {
    const auto departure = link_.poll(now);
    if (!departure) break;
    if (departure->copies == 0) {
      frames_.forget(departure->id);
      continue;
    }
    due_.push_back(*departure);
    if (departure->marked) mark_congestion(frames_.get(departure->id));
    if (departure->flipped_at && flip_payload_bit(frames_.get(departure->id), *departure->flipped_at))
      ++corrupted_;
    batch_.insert(batch_.end(), departure->copies, frames_.get(departure->id));
  }
  if (due_.empty()) return false;
  out_.send(batch_);
  const TimePoint sent = clock_now();  // after the call: the whole batch counts as late as its last frame
  for (const Departure& departure : due_) {
    lateness_.add(sent - departure.at);
    frames_.forget(departure.id);
  }
  return due_.size() == kSendAtOnce;
}

void Direction::change(TimePoint at, const LinkConfig& config) {
  // What came before the change is carried as before it; bounded, should packets come faster than they are
  // read.
  for (int piece = 0; piece < 32 && take_in();) ++piece;
  link_.change(at, config);
}

boost::json::object Direction::to_json(TimePoint now) {
  const LinkCounters& link = link_.counters();
  const PortCounters in = in_.counters();
  const PortCounters out = out_.counters();
  boost::json::object json;
  json["packets_in"] = link.packets_in;
  json["ip_bytes_in"] = link.bytes_in;
  json["ip_bytes_on_line"] = link.bytes_on_line;
  json["packets_out"] = link.packets_out;
  json["ip_bytes_out"] = link.bytes_out;
  json["lost"] = link.lost;
  if (link.lost_on_demand) json["lost_on_demand_ns"] = link.lost_on_demand->time_since_epoch().count();
  json["dropped_queue"] = link.dropped;
  json["dropped_early"] = link.dropped_early;
  json["marked"] = link.marked;
  json["policed"] = link.policed;
  json["cut"] = link.cut;
  json["duplicated"] = link.duplicated;
  json["reordered"] = link.reordered;
  json["corrupted"] = corrupted_;
  json["packets_inside"] = link_.packets_inside();
  json["queue_bytes"] = link_.queued_bytes(now);
  json["queue_peak_bytes"] = link.queue_peak_bytes;
  json["oversized"] = in.oversized;
  json["dropped_ring"] = in.ring_dropped;
  json["dropped_memory"] = dropped_memory_;
  json["checksums_finished"] = in.checksums_finished;
  json["send_failed"] = out.send_failed;
  json["lateness_us"] = {{"p50", micros(lateness_.quantile(0.5))},
                         {"p99", micros(lateness_.quantile(0.99))},
                         {"max", micros(lateness_.max())}};
  return json;
}

void Direction::reset_counters(TimePoint now) {
  link_.reset_counters(now);
  lateness_ = {};
  dropped_memory_ = 0;
  corrupted_ = 0;
}

}  // namespace longhaul::wan
