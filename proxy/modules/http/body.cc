// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/body.h"

#include <algorithm>
#include <utility>

namespace longhaul::http {

void Content::add(Bytes bytes) {
  constexpr std::size_t kPiece = 32 * 1024;
  size_ += bytes.size();
  append(tail_, bytes);
  if (tail_.size() < kPiece) return;
  pieces_.push_back(Slice::copy_of(tail_));
  tail_.clear();
}

std::vector<Slice> Content::take() {
  if (!tail_.empty()) pieces_.push_back(Slice::copy_of(tail_));
  tail_ = {};
  size_ = 0;
  return std::exchange(pieces_, {});
}

Body::Body(Framing framing) : left_(framing.length) {
  switch (framing.kind) {
    case Framing::Kind::none:
      return;
    case Framing::Kind::length:
      state_ = State::length;
      return;
    case Framing::Kind::chunked:
      state_ = State::size_line;
      return;
    case Framing::Kind::until_close:
      state_ = State::rest;
      return;
  }
}

std::optional<std::size_t> Body::take(Bytes bytes, Content* content) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::done) {
    if (state_ == State::rest) {
      if (content) content->add(bytes.subspan(at));
      return bytes.size();
    }
    if (state_ == State::length || state_ == State::chunk) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
      if (content) content->add(bytes.subspan(at, part));
      at += part;
      left_ -= part;
      if (left_ == 0) state_ = state_ == State::length ? State::done : State::chunk_end;
      continue;
    }
    const char c = std::to_integer<char>(bytes[at++]);
    if (c != '\n') {
      // A CR must precede an LF and is not allowed elsewhere.
      if (line_.size() == kMostLine || (!line_.empty() && line_.back() == '\r') || (c < ' ' && c != '\r' && c != '\t'))
        return std::nullopt;
      line_ += c;
      continue;
    }
    if (line_.empty() || line_.back() != '\r') return std::nullopt;
    line_.pop_back();
    if (!line_done()) return std::nullopt;
    line_.clear();
  }
  return at;
}

bool Body::line_done() {
  if (state_ == State::chunk_end) {
    state_ = State::size_line;
    return line_.empty();
  }
  if (state_ == State::trailers) {
    if (line_.empty()) {
      state_ = State::done;
      return true;
    }
    has_trailers_ = true;
    trailer_bytes_ += line_.size() + 2;
    return trailer_bytes_ <= kMostTrailerBytes;
  }
  // A size in hexadecimal digits; an extension may follow after a semicolon.
  const std::string_view digits = std::string_view(line_).substr(0, std::min(line_.find(';'), line_.size()));
  if (digits.empty() || digits.size() > 15) return false;
  left_ = 0;
  for (const char c : digits) {
    const char l = lower({&c, 1})[0];
    const bool is_letter = l >= 'a' && l <= 'f';
    if (!is_letter && (l < '0' || l > '9')) return false;
    left_ = left_ * 16 + static_cast<std::uint64_t>(is_letter ? l - 'a' + 10 : l - '0');
  }
  state_ = left_ == 0 ? State::trailers : State::chunk;
  return true;
}

}  // namespace longhaul::http
