// SPDX-License-Identifier: Apache-2.0
// Which stream sends next: interactive streams before bulk, fair by turns within a class. Control frames
// precede both and are not scheduled here.
#pragma once
#include <array>
#include <deque>
#include <optional>

#include "proxy/link/types.h"

namespace longhaul::link {

enum class StreamClass : std::uint8_t { interactive, bulk };

class Scheduler {
 public:
  // The stream waits for its turn; the caller ensures that it waits only once.
  void add(StreamId stream, StreamClass stream_class) {
    turns_[static_cast<std::size_t>(stream_class)].push_back(stream);
  }

  // The same, before those that wait already in its class.
  void add_first(StreamId stream, StreamClass stream_class) {
    turns_[static_cast<std::size_t>(stream_class)].push_front(stream);
  }

  std::optional<StreamId> take() {
    for (auto& turns : turns_) {
      if (turns.empty()) continue;
      StreamId stream = turns.front();
      turns.pop_front();
      return stream;
    }
    return std::nullopt;
  }

  std::optional<StreamId> next() const {
    for (const auto& turns : turns_)
      if (!turns.empty()) return turns.front();
    return std::nullopt;
  }
  // For those who take bulk streams alone: the bulk stream that stands at this place of the queue.
  std::optional<StreamId> bulk_at(std::size_t place) const {
    return place < turns_[1].size() ? std::optional(turns_[1][place]) : std::nullopt;
  }
  void take_bulk(std::size_t place) {
    turns_[1].erase(turns_[1].begin() + static_cast<std::ptrdiff_t>(place));
  }
  bool interactive_next() const { return !turns_[0].empty(); }
  bool empty() const { return turns_[0].empty() && turns_[1].empty(); }

 private:
  std::array<std::deque<StreamId>, 2> turns_;
};

// Distinguishes interactive from bulk by what a stream sent recently: a short burst stays interactive, a
// transfer becomes bulk after its first few packets and interactive again after a pause.
class TrafficMeter {
 public:
  StreamClass classify(std::size_t backlog_bytes, TimePoint now) const {
    return recent(now) + static_cast<double>(backlog_bytes) <= kInteractiveBytes ? StreamClass::interactive
                                                                                 : StreamClass::bulk;
  }
  void on_sent(std::size_t bytes, TimePoint now) {
    recent_ = recent(now) + static_cast<double>(bytes);
    at_ = now;
  }

 private:
  static constexpr double kInteractiveBytes = 32 * 1024;
  // Sent bytes fade linearly within a second.
  double recent(TimePoint now) const {
    double age = std::chrono::duration<double>(now - at_).count();
    return age >= 1 ? 0 : recent_ * (1 - age);
  }

  double recent_ = 0;
  TimePoint at_{};
};

}  // namespace longhaul::link
