// SPDX-License-Identifier: Apache-2.0
// Decodes Content-Encoding: gzip for parsing. The output is bounded, because a server can send a
// decompression bomb.
#pragma once
#include <memory>
#include <string>

#include "codecs/bytes.h"

namespace longhaul::http {

class Gunzip {
 public:
  explicit Gunzip(std::size_t most_bytes);
  ~Gunzip();
  Gunzip(Gunzip&&) noexcept;
  Gunzip& operator=(Gunzip&&) noexcept;

  // The decoded bytes; fewer or none after an error, after the end or after `most_bytes`.
  std::string take(Bytes bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::size_t room_;
};

}  // namespace longhaul::http
