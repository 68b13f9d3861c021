// SPDX-License-Identifier: Apache-2.0
// A decoder is fed sources and repairs, some that our encoder made and some that are nothing but bytes, in an
// order that the input chooses. It stays within its limits, and as long as all was honest it restores only
// what was sent.
#include <optional>
#include <vector>

#include "fec/window_decoder.h"
#include "fec/window_encoder.h"
#include "fuzz/target.h"

namespace longhaul::fuzz::fec_target {
using namespace longhaul::fec;

namespace {

// What a packet costs its sender besides what is in it: IP, UDP, header, tag.
constexpr std::uint64_t kPacketBytes = 28 + 11 + 16;

class Input {
 public:
  Input(const unsigned char* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  unsigned byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::uint64_t number(unsigned bytes) {
    std::uint64_t n = 0;
    for (unsigned i = 0; i < bytes; ++i) n = n << 8 | byte();
    return n;
  }
  Bytes bytes(std::size_t most) {
    const std::size_t n = std::min(most, size_);
    const Bytes taken = std::as_bytes(std::span(data_, n));
    data_ += n;
    size_ -= n;
    return taken;
  }

 private:
  const unsigned char* data_;
  std::size_t size_;
};

std::vector<std::byte> payload_of(SymbolId id) {
  std::vector<std::byte> payload(id * 37 % 150);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(id * 131 + i * i);
  return payload;
}

}  // namespace

FUZZ_TARGET(fec) {
  Input input(data, size);
  const std::size_t held = 1 + input.byte() % 192;
  WindowEncoder encoder({512});
  WindowDecoder decoder({256, held});
  struct Made {
    Repair head;
    std::vector<std::byte> coded;
  };
  std::vector<Made> made;
  bool honest = true;
  while (!input.empty()) {
    switch (input.byte() % 8) {
      case 0:
      case 1: {  // a symbol that arrives
        const auto payload = payload_of(encoder.next_id());
        paid_bytes += kPacketBytes + payload.size();
        decoder.on_source(encoder.add(payload), payload);
        break;
      }
      case 2:  // some that do not, yet
        for (unsigned n = input.byte() % 16; n > 0; --n) {
          paid_bytes += kPacketBytes;
          encoder.add(payload_of(encoder.next_id()));
        }
        break;
      case 3: {  // one that does now, perhaps again
        const SymbolId back = input.byte();
        if (back >= encoder.next_id()) break;
        const SymbolId id = encoder.next_id() - 1 - back;
        paid_bytes += kPacketBytes;
        decoder.on_source(id, payload_of(id));
        break;
      }
      case 4: {
        const unsigned symbols = input.byte();
        for (const Repair& r : encoder.repair_last(symbols, 1 + input.byte() % 3)) {
          made.push_back({r, {r.coded.begin(), r.coded.end()}});
          paid_bytes += kPacketBytes + r.coded.size();
        }
        if (made.size() > 64) made.erase(made.begin(), made.begin() + 32);
        break;
      }
      case 5: {
        if (made.empty()) break;
        const Made& m = made[input.byte() % made.size()];
        paid_bytes += kPacketBytes + m.coded.size();
        decoder.on_repair({m.head.window, m.head.key, m.coded});
        break;
      }
      case 6: {  // anything at all
        honest = false;
        const bool near = input.byte() % 4 != 0;
        const SymbolId first = near ? encoder.next_id() + input.byte() - 128 : input.number(8);
        const auto count = static_cast<std::uint32_t>(input.number(1 + input.byte() % 2));
        const auto key = static_cast<std::uint32_t>(input.byte());
        paid_bytes += kPacketBytes;
        decoder.on_repair({{first, count}, key, input.bytes(input.byte())});
        break;
      }
      default: {
        honest = false;
        const SymbolId id = input.byte() % 4 ? encoder.next_id() + input.byte() - 128 : input.number(8);
        paid_bytes += kPacketBytes;
        decoder.on_source(id, input.bytes(input.byte()));
      }
    }
    while (const auto restored = decoder.poll_restored()) {
      require(restored->payload.size() <= kMaxPayload);
      if (!honest) continue;
      const auto payload = payload_of(restored->id);
      require(std::equal(restored->payload.begin(), restored->payload.end(), payload.begin(), payload.end()));
    }
    const auto& c = decoder.counters();
    require(c.repairs == c.recovered + c.wasted + c.late + c.malformed + decoder.held_repairs());
    require(decoder.held_repairs() <= held);
    if (honest) require(c.malformed == 0);
  }
  return 0;
}

}  // namespace longhaul::fuzz::fec_target
