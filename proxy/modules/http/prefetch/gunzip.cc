// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/gunzip.h"

#include <zlib.h>

#include <array>
#include <new>

namespace longhaul::http {

struct Gunzip::State {
  State() {
    constexpr int kGzip = 16;
    if (inflateInit2(&stream, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  z_stream stream{};
};

Gunzip::Gunzip(std::size_t most_bytes) : state_(std::make_unique<State>()), room_(most_bytes) {}
Gunzip::~Gunzip() = default;
Gunzip::Gunzip(Gunzip&&) noexcept = default;
Gunzip& Gunzip::operator=(Gunzip&&) noexcept = default;

std::string Gunzip::take(Bytes bytes) {
  std::string plain;
  if (!state_) return plain;
  z_stream& stream = state_->stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));  // zlib does not write there
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::array<char, 16 * 1024> piece;
  for (;;) {
    const std::size_t most = std::min(piece.size(), room_);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(most);
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t got = most - stream.avail_out;
    plain.append(piece.data(), got);
    room_ -= got;
    if (result != Z_OK || room_ == 0) {
      // Z_BUF_ERROR: all input is used.
      if (result != Z_BUF_ERROR || room_ == 0) state_.reset();
      return plain;
    }
    if (stream.avail_in == 0 && stream.avail_out > 0) return plain;
  }
}

}  // namespace longhaul::http
