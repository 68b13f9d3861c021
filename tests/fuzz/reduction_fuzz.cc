// SPDX-License-Identifier: Apache-2.0
// A twin is fed messages and blocks: what another twin made, the same with bits changed, and what nobody
// would make. It stays within its memory, gives out nothing that its checksum does not confirm, and as long
// as all was honest it gives back what went in.
#include <vector>

#include "cache/memory_store.h"
#include "codecs/reduction/block_decoder.h"
#include "codecs/reduction/block_encoder.h"
#include "codecs/reduction/deflated.h"
#include "codecs/reduction/deflated_streams.h"
#include "codecs/reduction/reduction.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"

namespace longhaul::fuzz::reduction_target {
using namespace longhaul::reduction;

namespace {

class Run {
 public:
  explicit Run(Bytes input) : in_(input) {}

  void run() {
    while (!in_.empty() && alive_) step();
  }

 private:
  void step() {
    switch (in_.below(10)) {
      case 0:
      case 1:
        return exchange();
      case 2:
      case 3:
      case 4:
        return honest_block();
      case 5:
        return invented_block();
      case 6:
        return invented_message();
      case 7: {
        honest_ = false;
        return take(in_.some(40));
      }
      case 8: {
        Buffer encoded;
        Bytes plain = text(in_.number() % 5000);
        if (auto header = target_.encode(in_.below(4), stages(), plain, encoded))
          require(header->plain_bytes == plain.size() && header->checksum == BlockChecksum().of(plain));
        return;
      }
      default:
        switch (in_.below(4)) {
          case 0:
            return target_.clear();
          case 1:
            return maker_.clear();
          case 2: {
            // A session never takes up an id again; here it begins anew.
            unsigned stream = in_.below(4);
            maker_.forget(stream);
            return target_.forget(stream);
          }
          default:
            return disks();
        }
    }
  }

  void disks() {
    cache::MemoryStore& store = in_.below(2) ? here_ : there_;
    switch (in_.below(8)) {
      case 0:
        return target_.on_quiet();
      case 1:
        return maker_.on_quiet();
      case 2:
        return target_.finish();
      case 3:
        return maker_.finish();
      case 4:
      case 5: {
        auto names = store.list();
        if (names.empty()) return;
        const SegmentName& name = names[in_.byte() % names.size()];
        return in_.below(2) ? store.damage(name) : store.drop(name);
      }
      case 6:
        maker_.set_line_rate(in_.number());
        return target_.set_line_rate(in_.number());
      default:
        here_.settle();
        there_.settle();
        while (target_.poll_ready()) {
        }
        for (Reduction* side : {&target_, &maker_})
          while (side->has_work()) side->work();
    }
  }

  void take(Bytes message) {
    // An error ends the session.
    alive_ = target_.on_message(message).has_value();
    while (target_.poll_ready()) {
    }
  }

  void exchange() {
    while (auto message = maker_.poll_message()) {
      if (!alive_) return;
      take(message->bytes());
    }
    while (auto message = target_.poll_message()) {
      bool taken = maker_.on_message(message->bytes()).has_value();
      require(taken || !honest_);
    }
  }

  void check(const Result<std::optional<Slice>>& got, const BlockHeader& header) {
    if (!got || !*got) return;
    require((*got)->size() == header.plain_bytes);
    require(BlockChecksum().of((*got)->bytes()) == header.checksum);
  }

  void honest_block() {
    Buffer encoded;
    Bytes plain = text(64 + in_.number() % 20'000);
    std::uint64_t stream = in_.below(4);
    auto header = maker_.encode(stream, stages(), plain, encoded);
    if (!header) return;
    unsigned changes = in_.below(4) == 0 ? in_.below(4) : 0;
    for (unsigned i = 0; i < changes && !encoded.empty(); ++i) {
      honest_ = false;
      encoded[in_.byte() * 7u % encoded.size()] ^= std::byte(in_.byte() | 1);
    }
    auto got = target_.decode(stream, *header, encoded);
    // It may wait for a disk, and then for what that did not have.
    for (int i = 0; i < 4 && alive_ && got && !*got; ++i) {
      here_.settle();
      if (target_.poll_ready() != stream) exchange();
      got = target_.decode(stream, *header, encoded);
    }
    check(got, *header);
    if (honest_ && alive_) require(got && *got && std::ranges::equal((*got)->bytes(), plain));
  }

  void invented_block() {
    honest_ = false;
    BlockHeader header;
    header.codec = static_cast<std::uint8_t>(in_.byte());
    header.plain_bytes = static_cast<std::uint32_t>(1 + in_.number() % kMaxBlockPlainBytes);
    paid_bytes += header.plain_bytes;
    header.ring_offset = in_.byte() % 2 ? kRingStart + in_.number() : in_.number();
    header.checksum = in_.number();
    Bytes encoded = in_.some(200);
    check(target_.decode(in_.below(4), header, encoded), header);
  }

  void invented_message() {
    honest_ = false;
    Buffer message;
    std::uint64_t offset = std::min(kMaxVarint - 1, (in_.byte() % 2 ? kRingStart : 0) + in_.number());
    switch (in_.below(9)) {
      case 0:
        write_message(Hello{in_.below(3), in_.number(), in_.number() % (32u << 20)}, message);
        break;
      case 1:
        write_message(Welcome{in_.below(3), in_.number(), in_.below(2) ? deflate_print() : in_.number()},
                      message);
        break;
      case 2:
        write_message(Held{{{offset, offset + 1 + in_.byte()}}}, message);
        break;
      case 3:
        write_message(Need{offset, static_cast<std::uint32_t>(in_.number()), Need::Reason::mismatch},
                      message);
        break;
      case 4:
        write_message(PlainBlock{offset, in_.some(100)}, message);
        break;
      case 5:
        write_message(Gone{offset}, message);
        break;
      case 6:
        write_message(Clear{}, message);
        break;
      case 7:
        write_message(Floor{offset}, message);
        break;
      default: {
        message.push_back(std::byte(9 + in_.below(8)));
        append(message, in_.some(60));
        break;
      }
    }
    take(message);
  }

  ReductionStages stages() {
    unsigned bits = in_.byte();
    return {.dedup_memory = bits % 8 != 1, .dedup_disk = bits % 16 < 12, .compression = bits % 8 != 2};
  }

  // Repeats itself, here and there.
  Bytes text(std::uint64_t size) {
    text_.clear();
    unsigned seed = in_.below(4);
    for (std::uint64_t i = 0; i < size; ++i) {
      std::uint64_t x = (i / 64 % 37 + seed) * 0x9e3779b97f4a7c15u + i % 64 * 0xbf58476d1ce4e5b9u;
      text_.push_back(std::byte(x >> 56));
    }
    paid_bytes += 2 * size;  // what is said, and what credit pays for
    for (unsigned i = in_.below(4); i > 0 && size; --i)
      text_[in_.number() % text_.size()] = std::byte(in_.byte());
    if (in_.below(8) == 7) {
      const std::string stream = gzipped(as_text(text_).substr(0, 4'000));
      text_.insert(text_.begin() + static_cast<std::ptrdiff_t>(text_.size() / 2), as_bytes(stream).begin(),
                   as_bytes(stream).end());
    }
    return text_;
  }

  static Options with(cache::MemoryStore& store, std::uint64_t number) {
    Options options{.ring_bytes = 16u << 20, .peer_ring_bytes = 16u << 20, .epoch = number, .store = &store};
    options.site.fill(std::byte(number));
    options.twin_site.fill(std::byte(3 - number));
    return options;
  }

  Choices in_;
  cache::MemoryStore here_{8u << 20}, there_{8u << 20};
  Reduction target_{with(here_, 1)};
  Reduction maker_{with(there_, 2)};
  bool honest_ = true, alive_ = true;
  Buffer text_;
};

}  // namespace

FUZZ_TARGET(reduction) {
  Run(std::as_bytes(std::span(data, size))).run();
  return 0;
}

}  // namespace longhaul::fuzz::reduction_target
