// SPDX-License-Identifier: Apache-2.0
// A twin's input to the two halves of the block codec, and to the decoder of error correction.
#include <zlib.h>

#include <cstdlib>
#include <random>
#include <string>

#include "codecs/reduction/block_decoder.h"
#include "codecs/reduction/block_encoder.h"
#include "codecs/reduction/deflated.h"
#include "codecs/zstd_stage.h"
#include "cost/cases.h"
#include "cost/counter.h"
#include "fec/window_decoder.h"

namespace longhaul::cost {
namespace {

using namespace longhaul::reduction;

constexpr std::uint64_t kRing = 64 << 20;

// Of what was sent; the plain bytes that come out count too, for credit pays for them.
class Decoder {
 public:
  Decoder() : decoder_(kRing) { (void)decoder_.on_hello({kVersion, 1, kRing}).has_value(); }

  void take(std::uint64_t stream, std::uint8_t codec, std::uint64_t offset, Bytes plain, Bytes encoded) {
    const BlockHeader header{codec, static_cast<std::uint32_t>(plain.size()), BlockChecksum().of(plain),
                             offset};
    constexpr std::uint64_t kHead = 20;
    paid_ += kHead + encoded.size() + plain.size();
    (void)decoder_.decode(stream, header, encoded).has_value();
  }
  void forget(std::uint64_t stream) { decoder_.forget(stream); }
  void say_all() {
    while (decoder_.poll_message()) {
    }
  }
  std::uint64_t paid() const { return paid_; }

 private:
  BlockDecoder decoder_;
  std::uint64_t paid_ = 0;
};

std::uint64_t blocks_that_leave_gaps(std::size_t size) {
  Decoder decoder;
  for (std::size_t i = size; i > 0; --i)
    decoder.take(1, kInRing, kRingStart + 3 * i, as_bytes("x"), as_bytes("x"));
  decoder.say_all();
  return decoder.paid();
}

std::uint64_t blocks_that_cannot_be_restored(std::size_t size) {
  Decoder decoder;
  for (std::size_t i = 1; i <= size; ++i) {
    decoder.take(i, kInRing, kRingStart + 2 * i, as_bytes("x"), as_bytes("y"));
    decoder.forget(i);
  }
  decoder.say_all();
  return decoder.paid();
}

struct Opened {
  Buffer deflated, encoded;
};

// Two letters in no order; farther back than zlib looks they come again, so that zstd makes 5 KB of them.
Opened slow_to_close() {
  const Uncounted making;
  std::mt19937 random(1);
  std::string part(40'000, 'a'), plain;
  for (char& c : part) c = random() % 2 ? 'b' : 'a';
  while (plain.size() < 240'000) plain += part;
  Opened made{Buffer(kMaxBlockPlainBytes), {}};
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  stream.next_in = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.deflated.data());
  stream.avail_out = static_cast<uInt>(made.deflated.size());
  deflate(&stream, Z_FINISH);
  made.deflated.resize(stream.total_out);
  deflateEnd(&stream);
  Buffer map, content;
  ByteWriter writer(map);
  writer.varint(0), writer.varint(plain.size()), writer.varint(made.deflated.size()), writer.u8(9);
  ByteWriter(content).sized(map);
  append(content, as_bytes(plain));
  ByteWriter(made.encoded).varint(content.size());
  if (!zstd_compress({.level = 19}, {}, content, made.encoded, content.size())) std::abort();
  return made;
}

std::uint64_t streams_that_zlib_closes_slowly(std::size_t size) {
  const Opened opened = slow_to_close();
  Decoder decoder;
  for (std::size_t i = 1; i <= size; ++i)
    decoder.take(i, kInRing | kZstd | kOpened, kRingStart * i, opened.deflated, opened.encoded);
  return decoder.paid();
}

// An encoder with so many blocks without an answer, of so many streams.
class Encoder {
 public:
  Encoder(std::size_t blocks, std::size_t streams) : encoder_(kRing, 1) {
    (void)encoder_.poll_message();
    (void)encoder_.on_welcome({kVersion, kRing, 0}).has_value();
    const std::string plain(64, 'x');
    Buffer out;
    for (std::size_t i = 0; i < blocks; ++i) {
      out.clear();
      auto header = encoder_.encode(i % streams, {}, as_bytes(plain), out);
      if (i == 0 && header) first_ = header->ring_offset;
    }
    // An echo of the peer's own bytes: those it paid for.
    paid_ = blocks * plain.size();
  }

  void held(Interval range) {
    constexpr std::uint64_t kMessage = 10;
    paid_ += kMessage;
    (void)encoder_.on_held({{range}}).has_value();
  }
  void forget(std::uint64_t stream) {
    constexpr std::uint64_t kReset = 6;
    paid_ += kReset;
    encoder_.forget(stream);
  }
  std::uint64_t block(std::uint64_t number) const { return first_ + 64 * number; }
  std::uint64_t paid() const { return paid_; }

 private:
  BlockEncoder encoder_;
  std::uint64_t first_ = kRingStart, paid_ = 0;
};

std::uint64_t streams_that_end_between_others(std::size_t size) {
  Encoder encoder(size, size / 8);
  for (std::size_t i = 1; i < size / 8; ++i) encoder.forget(i);
  return encoder.paid();
}

std::uint64_t every_other_block_is_held(std::size_t size) {
  Encoder encoder(size, 1);
  for (std::size_t i = size - 1; i > 1; i -= 2) encoder.held({encoder.block(i - 1), encoder.block(i)});
  return encoder.paid();
}

// What a repair or a symbol takes on the wire besides its bytes: IP, UDP, a packet's header and tag, the frame.
constexpr std::uint64_t kFecPacket = 28 + 11 + 16 + 12;

// Equations as large as a packet, as many as are held, and then the smallest repairs over the largest window.
std::uint64_t small_repairs_beside_large_ones(std::size_t size) {
  fec::WindowDecoder decoder;
  const std::vector<std::byte> large(1400, std::byte{7}), small(fec::kLengthBytes, std::byte{7});
  std::uint64_t paid = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const Bytes coded = i % 1024 < 64 ? Bytes(large) : Bytes(small);
    decoder.on_repair({.window = {i / 1024 * 512 + i % 32, fec::kMaxWindow},
                       .key = static_cast<std::uint32_t>(i % fec::kKeys),
                       .coded = coded});
    while (decoder.poll_restored()) {
    }
    paid += kFecPacket + coded.size();
  }
  return paid;
}

// Symbols that come late, each of which stands in all held equations.
std::uint64_t symbols_that_come_behind_their_repairs(std::size_t size) {
  fec::WindowDecoder decoder;
  const std::vector<std::byte> coded(1400, std::byte{7}), tiny(1, std::byte{7});
  std::uint64_t paid = 0;
  for (std::uint64_t first = 0; first < size; first += fec::kMaxWindow) {
    for (std::uint32_t key = 0; key < fec::kKeys; ++key) {
      decoder.on_repair({.window = {first, fec::kMaxWindow}, .key = key, .coded = coded});
      paid += kFecPacket + coded.size();
    }
    for (std::uint64_t id = first; id < first + fec::kMaxWindow; ++id) {
      (void)decoder.on_source(id, tiny);
      while (decoder.poll_restored()) {
      }
      paid += kFecPacket + tiny.size();
    }
  }
  return paid;
}

}  // namespace

// A codec's bound: codecs/README.md; that of error correction: fec/README.md.
const std::vector<Case>& codec_cases() {
  static const std::vector<Case> cases = {
      {"codec: blocks that leave gaps in the history", 200, 100'000, blocks_that_leave_gaps},
      {"codec: blocks that cannot be restored, of streams that end", 200, 50'000,
       blocks_that_cannot_be_restored},
      {"codec: streams of deflate that zlib closes slowly", 400, 20, streams_that_zlib_closes_slowly},
      {"codec: streams that end between others", 400, 60'000, streams_that_end_between_others},
      {"codec: every other block is held", 400, 20'000, every_other_block_is_held},
      {"fec: small repairs beside large ones", 200, 50'000, small_repairs_beside_large_ones},
      {"fec: symbols that come behind their repairs", 200, 50'000, symbols_that_come_behind_their_repairs},
  };
  return cases;
}

}  // namespace longhaul::cost
