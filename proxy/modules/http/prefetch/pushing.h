// SPDX-License-Identifier: Apache-2.0
// Sends prefetched objects from the far half: messages among its outputs, with the content after them or in
// them.
#pragma once
#include <algorithm>
#include <deque>

#include "proxy/modules/http/prefetch/fetching.h"
#include "proxy/modules/http/prefetch/messages.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Pushing {
 public:
  // `out` must outlive it. Content in the stream is deduplicated and compressed; in messages, the stream may
  // be another module's.
  enum class Content : std::uint8_t { in_stream, in_messages };
  Pushing(std::deque<modules::Output>& out, Content content) : out_(out), content_(content) {}

  void tell(const Message& message) {
    // An announcement has the headers of the page's request.
    if (!is_over_)
      out_.push_back(modules::ToTwin{.message = twin::encode(message),
                                     .is_isolated = std::holds_alternative<Announced>(message)});
  }
  void piece(std::uint64_t number, Bytes bytes, bool is_last) {
    do {
      const Bytes part = bytes.first(std::min<std::size_t>(bytes.size(), Piece::kMostBytes));
      bytes = bytes.subspan(part.size());
      if (content_ == Content::in_messages) {
        tell(WholePiece{.number = number, .is_last = is_last && bytes.empty(), .content = Slice::copy_of(part)});
        continue;
      }
      tell(Piece{.number = number, .bytes = static_cast<std::uint32_t>(part.size()), .is_last = is_last && bytes.empty()});
      if (!is_over_ && !part.empty()) out_.push_back(modules::ToStream{Slice::copy_of(part)});
    } while (!bytes.empty());
  }
  void dropped(std::uint64_t number) { tell(Dropped{.number = number}); }
  void dropped(Fetching& fetching) {
    for (const std::uint64_t number : fetching.take_dropped()) dropped(number);
  }
  // No more messages: the stream passes unchanged from here on, or has ended.
  void end() { is_over_ = true; }

 private:
  std::deque<modules::Output>& out_;
  Content content_;
  bool is_over_ = false;
};

}  // namespace longhaul::http
