// SPDX-License-Identifier: Apache-2.0
// Selects the stream that sends next: interactive streams before bulk ones, round robin within a class.
// Control frames precede both and are not scheduled here. With several lines to the peer, the streams of each
// policy can use a different carrier.
#pragma once
#include <array>
#include <deque>
#include <optional>
#include <utility>

#include "proxy/config/path_policy.h"
#include "proxy/link/types.h"

namespace longhaul::link {

enum class StreamClass : std::uint8_t { interactive, bulk };

// The policies whose streams a carrier serves.
class Lanes {
 public:
  static constexpr Lanes all() { return Lanes((1u << config::kPathPolicies) - 1); }
  constexpr Lanes() = default;

  constexpr void add(config::PathPolicy policy) { bits_ |= 1u << static_cast<unsigned>(policy); }
  constexpr bool holds(std::size_t policy) const { return bits_ >> policy & 1; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  constexpr explicit Lanes(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

// Streams of all policies wait in one order; a carrier that serves only some policies skips the streams of
// others.
class Scheduler {
 public:
  // Appends the stream; the caller ensures that it is queued only once.
  void add(StreamId stream, StreamClass stream_class, config::PathPolicy policy = config::PathPolicy::sum) {
    queue(stream_class, policy).push_back({++last_, stream});
  }

  // The same, but ahead of those that wait already in its class.
  void add_first(StreamId stream, StreamClass stream_class,
                 config::PathPolicy policy = config::PathPolicy::sum) {
    queue(stream_class, policy).push_front({--first_, stream});
  }

  std::optional<StreamId> take(Lanes lanes = Lanes::all()) {
    Queue* const queue = find(lanes);
    if (!queue) return std::nullopt;
    const StreamId stream = queue->front().stream;
    queue->pop_front();
    return stream;
  }

  std::optional<StreamId> next(Lanes lanes = Lanes::all()) const {
    const Queue* const queue = find(lanes);
    return queue ? std::optional(queue->front().stream) : std::nullopt;
  }
  // For carriers that serve only bulk streams of the policy `sum`: the stream at this position of the queue.
  std::optional<StreamId> bulk_at(std::size_t place) const {
    const Queue& queue = bulk_to_share();
    return place < queue.size() ? std::optional(queue[place].stream) : std::nullopt;
  }
  void take_bulk(std::size_t place) {
    Queue& queue = queues_[static_cast<std::size_t>(StreamClass::bulk)][kShared];
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(place));
  }
  bool interactive_next(Lanes lanes = Lanes::all()) const {
    return oldest(queues_[static_cast<std::size_t>(StreamClass::interactive)], lanes) != nullptr;
  }
  bool empty(Lanes lanes = Lanes::all()) const { return find(lanes) == nullptr; }

 private:
  struct Waiting {
    std::int64_t since;
    StreamId stream;
  };
  using Queue = std::deque<Waiting>;
  using Queues = std::array<Queue, config::kPathPolicies>;
  static constexpr std::size_t kShared = static_cast<std::size_t>(config::PathPolicy::sum);

  Queue& queue(StreamClass stream_class, config::PathPolicy policy) {
    return queues_[static_cast<std::size_t>(stream_class)][static_cast<std::size_t>(policy)];
  }
  const Queue& bulk_to_share() const { return queues_[static_cast<std::size_t>(StreamClass::bulk)][kShared]; }
  // The queue whose first stream has waited longest.
  static const Queue* oldest(const Queues& queues, Lanes lanes) {
    const Queue* found = nullptr;
    for (std::size_t policy = 0; policy < queues.size(); ++policy) {
      const Queue& queue = queues[policy];
      if (!lanes.holds(policy) || queue.empty()) continue;
      if (!found || queue.front().since < found->front().since) found = &queue;
    }
    return found;
  }
  const Queue* find(Lanes lanes) const {
    for (const Queues& queues : queues_)
      if (const Queue* found = oldest(queues, lanes)) return found;
    return nullptr;
  }
  Queue* find(Lanes lanes) { return const_cast<Queue*>(std::as_const(*this).find(lanes)); }

  std::array<Queues, 2> queues_;  // by class
  std::int64_t first_ = 0, last_ = 0;
};

// Distinguishes interactive from bulk by what a stream sent recently: a short burst stays interactive; a
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
  // Sent bytes, fading linearly within a second.
  double recent(TimePoint now) const {
    double age = std::chrono::duration<double>(now - at_).count();
    return age >= 1 ? 0 : recent_ * (1 - age);
  }

  double recent_ = 0;
  TimePoint at_{};
};

}  // namespace longhaul::link
