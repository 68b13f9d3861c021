// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/to_server.h"

#include <algorithm>
#include <utility>

namespace longhaul::http {

void ToServer::put(Bytes bytes, bool is_content) {
  const std::size_t has = std::min(skipped_, bytes.size());
  skipped_ -= has;
  if (has < bytes.size())
    out_.push_back(modules::ToStream{.bytes = Slice::copy_of(bytes.subspan(has)), .is_content = is_content});
}

void ToServer::step_aside(modules::Reason reason, Bytes rest) {
  stepped_aside_ = true;
  out_.push_back(modules::StepAside{modules::Way::to_stream, reason});
  pass(rest);
}

void ToServer::end() {
  if (!std::exchange(ended_, true)) out_.push_back(modules::EndStream{});
}

}  // namespace longhaul::http
