// SPDX-License-Identifier: Apache-2.0
// The live streams of a session. They are found by id, and visited in rounds, a few in each turn of the loop,
// because there may be more than 100,000. The session decides what a visit does.
#pragma once
#include <array>
#include <memory>
#include <optional>

#include "codecs/keyed_hash.h"
#include "proxy/link/stream.h"

namespace longhaul::link {

class StreamTable {
 public:
  StreamTable() = default;
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  Stream* find(StreamId id) {
    if (recent_ && recent_->id() == id) return recent_;
    const auto found = entries_.find(id);
    if (found == entries_.end()) return nullptr;
    return recent_ = found->second.stream.get();
  }
  Stream& add(std::unique_ptr<Stream> stream);
  void erase(StreamId id);
  void clear();
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  // The purposes of rounds. Rounds may overlap: a visit then counts for each of them.
  enum class Round : std::uint8_t { carriers, memory, end };
  // Visits every stream that is live now, even if another round of this kind has just visited it. Streams
  // that are added meanwhile may be visited, too.
  void begin_round(Round round) { left_[static_cast<std::size_t>(round)] = entries_.size(); }
  void stop_rounds() { left_ = {}; }
  bool in_round(Round round) const { return left_[static_cast<std::size_t>(round)] > 0; }
  bool in_any_round() const;

  struct Visit {
    Stream& stream;
    std::array<bool, 3> rounds{};
    bool is_for(Round round) const { return rounds[static_cast<std::size_t>(round)]; }
  };
  // Returns nullopt if no round has a stream left to visit. The caller may erase the stream.
  std::optional<Visit> next_visit();

 private:
  // Entries form a ring: a round follows it while streams are added and removed.
  struct Entry {
    std::unique_ptr<Stream> stream;
    Entry *before = nullptr, *after = nullptr;
  };

  KeyedMap<StreamId, Entry> entries_;
  Entry* next_ = nullptr;     // the next to be visited; new entries are inserted before it, and so come last
  Stream* recent_ = nullptr;  // the next packet usually belongs to the same stream
  std::array<std::size_t, 3> left_{};
};

}  // namespace longhaul::link
