// SPDX-License-Identifier: Apache-2.0
// A block codec that makes nothing smaller, and checks how the session uses it: blocks in order, none after a
// stream was forgotten, no asking before a block is named. Its decoder says "not yet" as often as a test
// wants and goes on when its twin answered, as one would whose history lacks something.
#pragma once
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "codecs/block_codec.h"
#include "codecs/byte_reader.h"
#include "proxy/link/types.h"

namespace longhaul::link::simulation {

class ToyCodec final : public BlockCodec {
 public:
  struct Options {
    double waits = 0;   // share of blocks whose decoding waits for an answer of the twin
    double gone = 0;    // share of those whose answer is that it cannot be
    double passes = 0;  // share of blocks that go plain because they are not worth it
    std::uint64_t seed = 1;
  };
  ToyCodec() : ToyCodec(Options()) {}
  explicit ToyCodec(const Options& options) : options_(options), random_(options.seed) {}

  std::optional<BlockHeader> encode(std::uint64_t stream, const ReductionStages& stages, Bytes plain,
                                    Buffer& out) override {
    if (forgotten_.contains(stream)) broken = "encoded after it was forgotten";
    if (stopped.contains(stream)) broken = "encoded after it was stopped";
    if (plain.empty() || plain.size() > kMaxBlockPlainBytes) broken = "a block of no size";
    sizes.push_back(plain.size());
    last_stages = stages;
    if (chance(options_.passes)) return std::nullopt;
    ByteWriter(out).varint(sent_[stream]++);
    for (std::byte b : plain) out.push_back(~b);
    return BlockHeader{.codec = 7,
                       .plain_bytes = static_cast<std::uint32_t>(plain.size()),
                       .checksum = BlockChecksum().of(plain),
                       .ring_offset = ++last_number_};
  }

  Result<std::optional<Slice>> decode(std::uint64_t stream, const BlockHeader& header,
                                      Bytes encoded) override {
    if (forgotten_.contains(stream)) broken = "decoded after it was forgotten";
    const std::uint64_t number = header.ring_offset;
    if (auto waits = waiting_.find(number); waits != waiting_.end()) {
      const bool gone = waits->second.gone;
      if (!waits->second.named) broken = "asked again before it was named";
      waiting_.erase(waits);
      if (gone) return LinkError::malformed_record;
    } else if (hold_back || chance(options_.waits)) {
      for (const auto& [other, waiting] : waiting_)
        if (waiting.stream == stream) broken = "a second block of a stream that waits";
      waiting_[number] = {stream};
      urgent_.push_back("need " + std::to_string(number));
      return std::nullopt;
    }
    ByteReader in(encoded);
    auto order = in.varint();
    if (!order || *order != taken_[stream]++) broken = "blocks out of order";
    Buffer plain;
    for (std::byte b : in.rest()) plain.push_back(~b);
    if (spoil) plain[0] ^= std::byte{1};
    if (BlockChecksum().of(plain) != header.checksum) return LinkError::malformed_record;
    ++held_;
    return std::optional(Slice::copy_of(plain));
  }

  std::optional<std::uint64_t> poll_ready() override {
    while (!ready_.empty()) {
      auto waiting = waiting_.find(ready_.front());
      ready_.pop_front();
      if (waiting == waiting_.end() || std::exchange(waiting->second.named, true)) continue;
      return waiting->second.stream;
    }
    return std::nullopt;
  }

  void forget(std::uint64_t stream) override {
    if (!forgotten_.insert(stream).second) broken = "forgotten twice";
    std::erase_if(waiting_, [&](const auto& entry) { return entry.second.stream == stream; });
  }

  void stop_encoding(std::uint64_t stream) override {
    if (forgotten_.contains(stream)) broken = "stopped after it was forgotten";
    stopped.insert(stream);
  }

  Result<void> on_message(Bytes message) override {
    const std::string text(as_text(message));
    const std::string word = text.substr(0, text.find(' ')), rest = text.substr(text.find(' ') + 1);
    ++heard[word];
    if (word == "breach") return LinkError::malformed_record;
    if (word == "held") held_by_twin += std::stoull(rest);
    if (word == "need")
      (silent ? kept_back_ : urgent_).push_back((chance(options_.gone) ? "gone " : "here ") + rest);
    if (word == "here" || word == "gone") {
      auto waiting = waiting_.find(std::stoull(rest));
      if (waiting == waiting_.end()) return {};
      waiting->second.gone = word == "gone";
      ready_.push_back(waiting->first);
    }
    return {};
  }
  bool has_message() const override { return !urgent_.empty(); }
  std::optional<Slice> poll_message() override {
    std::string text;
    if (!urgent_.empty()) {
      text = std::move(urgent_.front());
      urgent_.pop_front();
    } else if (held_ > 0) {
      text = "held " + std::to_string(std::exchange(held_, 0));
    } else {
      return std::nullopt;
    }
    return Slice::copy_of(as_bytes(text));
  }
  void set_line_rate(std::uint64_t bytes_per_second) override { line_rate = bytes_per_second; }

  void say(std::string text) { urgent_.push_back(std::move(text)); }
  // Answers what was asked while it was silent.
  void answer() {
    silent = false;
    for (std::string& text : std::exchange(kept_back_, {})) urgent_.push_back(std::move(text));
  }
  std::size_t waiting() const { return waiting_.size(); }
  const std::set<std::uint64_t>& forgotten() const { return forgotten_; }

  std::string broken;      // what the session did and must not do
  bool hold_back = false;  // every block waits
  bool silent = false;     // what the twin needs is not answered
  bool spoil = false;
  std::set<std::uint64_t> stopped;
  std::vector<std::size_t> sizes;  // of the blocks, plain
  ReductionStages last_stages;
  std::map<std::string, int> heard;  // messages of the twin
  std::uint64_t held_by_twin = 0;
  std::uint64_t line_rate = 0;

 private:
  struct Waiting {
    std::uint64_t stream;
    bool named = false, gone = false;
  };
  bool chance(double share) { return share > 0 && static_cast<double>(random_() % 1'000'000) < share * 1e6; }

  Options options_;
  std::mt19937_64 random_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::uint64_t> sent_, taken_;  // blocks, by stream
  std::set<std::uint64_t> forgotten_;
  std::map<std::uint64_t, Waiting> waiting_;  // by number
  std::deque<std::uint64_t> ready_;
  std::deque<std::string> urgent_, kept_back_;
  std::uint64_t held_ = 0;
};

}  // namespace longhaul::link::simulation
