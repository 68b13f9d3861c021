// SPDX-License-Identifier: Apache-2.0
// Streams of deflate as others make them, for tests of what opens them.
#pragma once
#include <zlib.h>

#include <string>
#include <string_view>

namespace longhaul::reduction {

struct Deflated {
  int level = 9;
  int window_bits = -15;  // as zlib takes it: negative raw, +16 with the head of gzip
  int memory = 8;
};

inline std::string deflated(std::string_view plain, const Deflated& how = {}) {
  z_stream stream{};
  if (deflateInit2(&stream, how.level, Z_DEFLATED, how.window_bits, how.memory, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string out(deflateBound(&stream, static_cast<uLong>(plain.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) out.clear();
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

inline std::string gzipped(std::string_view plain, int level = 9) {
  return deflated(plain, {.level = level, .window_bits = 15 + 16});
}

}  // namespace longhaul::reduction
