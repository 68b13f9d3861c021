// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/to_client.h"

#include <algorithm>
#include <utility>

namespace longhaul::http {

void ToClient::pass(Slice bytes) {
  if (!ended_ && !bytes.empty()) out_.push_back(modules::ToLan{std::move(bytes)});
}

// Each head takes memory, even without content.
void ToClient::answer(Slice head) {
  answered_bytes_ += head.size() + 1024;
  pass(std::move(head));
}

void ToClient::answer(Slice head, const Stored& object, Part part) {
  answer(std::move(head));
  answered_bytes_ += part.size;
  for (const Slice& piece : object.content) {
    if (part.size == 0) return;
    const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(part.first, piece.size()));
    const auto sent = static_cast<std::size_t>(std::min<std::uint64_t>(part.size, piece.size() - skipped));
    pass(piece.sub(skipped, sent));
    part.first -= skipped;
    part.size -= sent;
  }
}

void ToClient::step_aside() {
  if (!ended_ && !std::exchange(stepped_aside_, true))
    out_.push_back(modules::StepAside{modules::Way::to_lan});
}

void ToClient::end() {
  if (!std::exchange(ended_, true)) out_.push_back(modules::EndLan{});
}

}  // namespace longhaul::http
