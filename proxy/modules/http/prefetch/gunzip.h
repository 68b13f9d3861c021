// SPDX-License-Identifier: Apache-2.0
// Decodes Content-Encoding: gzip to look at what is inside. Bounded: a server may make a lot of nothing.
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

  // What can be decoded of it; less or nothing once it is wrong, has ended or is more than `most_bytes`.
  std::string take(Bytes bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::size_t room_;
};

}  // namespace longhaul::http
