// SPDX-License-Identifier: Apache-2.0
// Resets of streams towards one side of a tunnel (CONNECT, RFC 8441). The data that precedes the reset may be
// all that the program needs (a WebSocket's Close frame), so it is sent first, as far as the windows allow.
// An ordinary reset overtakes the content, and a request that is not sent yet.
#pragma once
#include <utility>
#include <vector>

#include "proxy/modules/http/h2/session.h"

namespace longhaul::http::h2 {

class TunnelResets {
 public:
  explicit TunnelResets(Session& session) : session_(session) {}

  // `unsent`: the stream's content.
  enum class Of : std::uint8_t { request, tunnel };
  void reset(StreamId stream, std::uint32_t error, Of of, const Source& unsent) {
    if (of == Of::tunnel && unsent.bytes() > 0)
      waiting_.emplace_back(stream, error);
    else
      session_.reset(stream, error);
  }
  // As Session::drain(). `goes_on`: whether the stream is still open.
  template <class GoesOn>
  void drain(Buffer& out, std::size_t enough, GoesOn goes_on) {
    session_.drain(out, enough);
    // Less than enough: everything else that may be sent now was sent.
    if (out.size() >= enough || waiting_.empty()) return;
    for (const auto& [stream, error] : std::exchange(waiting_, {}))
      if (goes_on(stream)) session_.reset(stream, error);
    session_.drain(out, enough);
  }

 private:
  Session& session_;
  std::vector<std::pair<StreamId, std::uint32_t>> waiting_;
};

}  // namespace longhaul::http::h2
