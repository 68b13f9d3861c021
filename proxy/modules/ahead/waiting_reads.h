// SPDX-License-Identifier: Apache-2.0
// The client's READs that wait at the near side for bytes that are being pushed. Each collects its own
// pieces: data dropped later does not affect it, and bytes of another stamp do not complete it. ahead_cache.h
// has the bytes that no READ waits for.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "codecs/keyed_hash.h"
#include "codecs/slice.h"
#include "proxy/modules/ahead/messages.h"
#include "proxy/modules/ahead/pieces.h"

namespace longhaul::ahead {

class WaitingReads {
 public:
  // [offset, end) of a file, with the parts that were available when the client sent it. At least one byte
  // before the end of the file is missing.
  struct Read {
    OpenKey open;
    Stamp stamp;
    std::uint64_t offset = 0, end = 0;
    std::map<std::uint64_t, Slice> pieces;  // disjoint, all within the range
    std::optional<std::uint64_t> end_of_file;
  };
  void add(MessageNumber number, Read read);

  // An Ahead message with its bytes: READs that it completes become ready.
  void pushed(const Ahead& ahead, const Slice& bytes);
  // A READ whose bytes have arrived.
  struct Ready {
    MessageNumber message{};
    OpenKey open;
    std::uint64_t offset = 0;
    ReadData data;
  };
  const std::deque<Ready>& ready() const { return ready_; }  // not polled yet
  std::optional<Ready> poll_ready();

  // The server's own response is under way: pushed bytes no longer complete this READ.
  void forwarded(MessageNumber number);
  // The READ no longer waits. Returns its range and stamp if it did wait.
  struct Answered {
    OpenKey open;
    Stamp stamp;
    std::uint64_t offset = 0;
  };
  std::optional<Answered> answered(MessageNumber number);

  bool contains(MessageNumber number) const { return waiting_.contains(number); }
  std::size_t size() const { return waiting_.size(); }
  std::uint64_t held_bytes() const { return held_bytes_; }  // collected for them

 private:
  struct Waiting {
    Read read;
    bool forwarded = false;
    std::uint64_t lacking = 0;  // missing bytes, up to the end of the file
    std::uint64_t held = 0;     // bytes of its pieces
  };
  void take(MessageNumber number, Waiting& waiting, const Ahead& ahead, const Slice& bytes);
  static void shorten(Waiting& waiting, std::uint64_t end_of_file);
  void stop_waiting(KeyedMap<MessageNumber, Waiting>::iterator waiting);

  KeyedMap<MessageNumber, Waiting> waiting_;
  std::unordered_map<OpenKey, std::set<MessageNumber>, OpenKeyHash> waiting_for_;
  std::deque<Ready> ready_;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace longhaul::ahead
