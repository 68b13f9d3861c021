// SPDX-License-Identifier: Apache-2.0
// Two twins joined by a session that works like the real one as far as they can tell: streams in order each,
// in any order among each other, messages in order, everything as late as chance will have it. What comes out
// is compared at once with what went in.
#pragma once
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

#include "cache/memory_store.h"
#include "codecs/reduction/block_decoder.h"
#include "codecs/reduction/block_encoder.h"
#include "codecs/reduction/reduction.h"

namespace longhaul::reduction {

inline Options ring_of(std::size_t mebibytes, std::uint64_t epoch = 1) {
  return {.ring_bytes = mebibytes << 20, .peer_ring_bytes = mebibytes << 20, .epoch = epoch};
}

// Bytes with repeats of all kinds: near and far, exact and edited, and some that never repeat.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed) : random_(seed) {}

  std::string some(std::size_t bytes) {
    std::string made;
    while (made.size() < bytes) {
      std::size_t kind = random_() % 8;
      if (kind < 3 && memory_.size() > 1000) {
        std::size_t from = random_() % (memory_.size() - 500), size = random_() % 20'000;
        made += memory_.substr(from, size);
        if (kind == 0 && !made.empty()) made[random_() % made.size()] ^= 1;
      } else if (kind < 6) {
        for (std::size_t words = random_() % 400; words > 0; --words) made += word();
      } else {
        made += noise(random_() % 3000);
      }
    }
    made.resize(bytes);
    if (memory_.size() < (4u << 20)) memory_ += made;
    return made;
  }

  std::string noise(std::size_t bytes) {
    std::string made(bytes, '\0');
    for (char& c : made) c = static_cast<char>(random_());
    return made;
  }

  std::string text(std::size_t bytes) {
    std::string made;
    while (made.size() < bytes) made += word();
    made.resize(bytes);
    return made;
  }

 private:
  const std::string& word() { return words_[random_() % words_.size()]; }

  static std::vector<std::string> some_words() {
    std::mt19937 random(5);
    std::vector<std::string> words(700);
    for (std::string& word : words) {
      word.resize(2 + random() % 9);
      for (char& c : word) c = static_cast<char>('a' + random() % 26);
      word += ' ';
    }
    return words;
  }

  const std::vector<std::string> words_ = some_words();
  std::mt19937_64 random_;
  std::string memory_;
};

class Twins {
 public:
  explicit Twins(std::uint64_t seed, const Options& options = ring_of(16))
      : random(seed), sides_{Reduction(options), Reduction(options)} {}
  // With a disk on each side; the caller keeps the stores.
  Twins(std::uint64_t seed, std::uint64_t epoch, cache::MemoryStore& here, cache::MemoryStore& there,
        std::size_t mebibytes = 16)
      : random(seed),
        sides_{Reduction(on_disk(mebibytes, epoch, here, 1, 2)),
               Reduction(on_disk(mebibytes, epoch + 1, there, 2, 1))},
        stores_{&here, &there} {}

  // The same between any two sites.
  Twins(std::uint64_t seed, const Options& here, const Options& there)
      : random(seed),
        sides_{Reduction(here), Reduction(there)},
        stores_{static_cast<cache::MemoryStore*>(here.store), static_cast<cache::MemoryStore*>(there.store)} {
  }

  Reduction& side(int i) { return sides_[i]; }

  // One block from side `from`; what does not become a block goes as it is.
  void write(int from, std::uint64_t stream, std::string_view plain, const ReductionStages& stages = {}) {
    if (over_.contains(stream)) return;
    Way& way = ways_[from];
    Buffer encoded;
    auto header = sides_[from].encode(stream, stages, as_bytes(plain), encoded);
    way.wire_bytes += header ? encoded.size() + 20 : plain.size() + 4;
    way.plain_bytes += plain.size();
    Pipe& pipe = way.pipes[stream];
    pipe.expected.push_back(std::string(plain));
    pipe.records.push_back({header, header ? Slice::copy_of(encoded) : Slice::copy_of(as_bytes(plain))});
    last = header;
  }

  // Both directions end, in the middle of whatever is under way: each side hears of it when chance wills.
  void reset(std::uint64_t stream) {
    if (!over_.insert(stream).second) return;
    int first = static_cast<int>(random() % 2);
    sides_[first].forget(stream);
    ways_[1 - first].pipes.erase(stream);
    dying_.push_back(stream);
  }
  // A stream that has delivered all it had is forgotten by both.
  void close(std::uint64_t stream) {
    if (!over_.insert(stream).second) return;
    for (int i : {0, 1}) sides_[i].forget(stream), ways_[i].pipes.erase(stream);
  }

  void hold(int from, std::uint64_t stream) { ways_[from].pipes[stream].held = true; }
  void release(int from, std::uint64_t stream) { ways_[from].pipes[stream].held = false; }
  // The side takes what comes and throws it away, as one does whose reader is gone.
  void discard(int from, std::uint64_t stream) { ways_[from].pipes[stream].discarded = true; }
  void hold_messages(int from, bool held) { ways_[from].messages_held = held; }

  // Something arrives somewhere; false if nothing can.
  bool step() {
    bury_some();
    for (int i : {0, 1}) {
      if (stores_[i] && random() % 4 == 0) poll_store(i);
      if (sides_[i].has_work() && random() % 4 == 0) sides_[i].work();
    }
    for (int i : {0, 1}) {
      // Only some ask for a packet of their own; the others go with what else is sent.
      if (sides_[i].has_message() || random() % 4 == 0) poll(i);
    }
    struct Choice {
      int from;
      std::uint64_t stream;
      bool message;
    };
    std::vector<Choice> choices;
    for (int from : {0, 1}) {
      if (!ways_[from].messages.empty() && !ways_[from].messages_held) choices.push_back({from, 0, true});
      for (auto& [stream, pipe] : ways_[from].pipes)
        if (!pipe.records.empty() && !pipe.waiting && !pipe.held) choices.push_back({from, stream, false});
    }
    if (choices.empty()) return false;
    Choice choice = choices[random() % choices.size()];
    if (choice.message) {
      deliver_message(choice.from);
    } else {
      deliver(choice.from, choice.stream);
    }
    return true;
  }

  void settle() {
    for (bool moved = true; moved;) {
      while (step()) {
      }
      moved = false;
      for (int i : {0, 1}) moved |= poll(i) && !ways_[i].messages_held;
      for (int i : {0, 1}) {
        while (stores_[i] && poll_store(i)) moved = true;
        if (sides_[i].has_work()) sides_[i].work(), moved = true;
      }
      if (!dying_.empty()) moved = true;
    }
    for (int from : {0, 1})
      for (auto& [stream, pipe] : ways_[from].pipes) {
        INFO("stream " << stream);
        if (!pipe.held) CHECK(pipe.records.empty());
      }
  }

  // Seconds pass in silence, in which the answers come: one ends what this side sends, and the next what the
  // other was told of then.
  void rest() {
    settle();
    for (int seconds = 0; seconds < 2; ++seconds) {
      for (int i : {0, 1}) sides_[i].on_quiet();
      settle();
    }
  }

  // The first Welcomes, before which there is no history.
  void meet() {
    settle();
    REQUIRE(side(0).counters().encoder.ring_bytes > 0);
    REQUIRE(side(1).counters().encoder.ring_bytes > 0);
  }

  std::uint64_t wire_bytes(int from) const { return ways_[from].wire_bytes; }
  std::uint64_t plain_bytes(int from) const { return ways_[from].plain_bytes; }
  std::uint64_t delivered_bytes(int from) const { return ways_[from].delivered_bytes; }
  std::size_t failed_streams() const { return failed_; }
  bool over(std::uint64_t stream) const { return over_.contains(stream); }

  std::mt19937_64 random;
  std::optional<BlockHeader> last;
  bool resets_are_expected = false;

 private:
  struct Record {
    std::optional<BlockHeader> header;
    Slice bytes;
  };
  struct Pipe {
    std::deque<Record> records;
    std::deque<std::string> expected;
    bool waiting = false, held = false, discarded = false;
  };
  struct Way {  // from one side to the other
    std::map<std::uint64_t, Pipe> pipes;
    std::deque<Slice> messages;
    bool messages_held = false;
    std::uint64_t wire_bytes = 0, plain_bytes = 0, delivered_bytes = 0;
  };

  static Options on_disk(std::size_t mebibytes, std::uint64_t epoch, cache::MemoryStore& store, int own,
                         int other) {
    Options options = ring_of(mebibytes, epoch);
    options.store = &store;
    options.site.fill(std::byte(own));
    options.twin_site.fill(std::byte(other));
    return options;
  }

  // What the store has done may let streams go on.
  bool poll_store(int i) {
    bool any = stores_[i]->poll();
    wake(i);
    return any;
  }
  void wake(int i) {
    while (auto stream = sides_[i].poll_ready()) {
      auto pipe = ways_[1 - i].pipes.find(*stream);
      if (pipe != ways_[1 - i].pipes.end()) pipe->second.waiting = false;
    }
  }

  bool poll(int from) {
    bool any = false;
    while (auto message = sides_[from].poll_message()) {
      ways_[from].wire_bytes += message->size() + 4;
      ways_[from].messages.push_back(std::move(*message));
      any = true;
    }
    return any;
  }

  void deliver_message(int from) {
    Slice message = std::move(ways_[from].messages.front());
    ways_[from].messages.pop_front();
    auto taken = sides_[1 - from].on_message(message.bytes());
    REQUIRE(taken.has_value());
    wake(1 - from);
  }

  void deliver(int from, std::uint64_t stream) {
    Way& way = ways_[from];
    Pipe& pipe = way.pipes[stream];
    Record& record = pipe.records.front();
    if (record.header && !pipe.discarded) {
      auto plain = sides_[1 - from].decode(stream, *record.header, record.bytes.bytes());
      if (!plain) {
        CHECK(resets_are_expected);
        ++failed_;
        over_.insert(stream);
        for (int i : {0, 1}) sides_[i].forget(stream), ways_[i].pipes.erase(stream);
        return;
      }
      if (!*plain) {
        pipe.waiting = true;
        return;
      }
      // Not CHECK of the texts, which would print 64 KiB twice.
      bool right = as_text((*plain)->bytes()) == pipe.expected.front();
      REQUIRE(right);
    }
    way.delivered_bytes += pipe.expected.front().size();
    pipe.records.pop_front();
    pipe.expected.pop_front();
  }

  void bury_some() {
    while (!dying_.empty() && random() % 4 == 0) {
      std::uint64_t stream = dying_.front();
      dying_.pop_front();
      for (int i : {0, 1}) sides_[i].forget(stream), ways_[i].pipes.erase(stream);
    }
  }

  Reduction sides_[2];
  cache::MemoryStore* stores_[2] = {nullptr, nullptr};
  Way ways_[2];
  std::set<std::uint64_t> over_;
  std::deque<std::uint64_t> dying_;
  std::size_t failed_ = 0;
};

inline constexpr std::size_t kBlock = kMaxBlockPlainBytes;

// The text in blocks of full size; `from` 0, everything arrives before it returns.
inline void transfer(Twins& twins, std::uint64_t stream, std::string_view text, std::size_t block = kBlock) {
  for (std::size_t at = 0; at < text.size(); at += block) {
    twins.write(0, stream, text.substr(at, block));
    if (at / block % 8 == 7) twins.settle();
  }
  twins.settle();
}

}  // namespace longhaul::reduction
