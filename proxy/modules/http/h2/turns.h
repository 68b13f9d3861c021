// SPDX-License-Identifier: Apache-2.0
// Selects which tunnels (WebSockets and other streams of CONNECT) precede the responses on a connection. The
// library sends streams of equal urgency one after the other, so a message could wait for the end of a
// download. A tunnel is sent first, and alternates with the responses once it has sent much without a pause.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace longhaul::http::h2 {

class Turns {
 public:
  static constexpr std::size_t kTurnBytes = 64 * 1024;
  using Stream = std::int32_t;
  struct Change {
    Stream stream;
    bool is_first;
  };

  // Tunnels start with precedence.
  void add(Stream tunnel) {
    if (tunnels_.try_emplace(tunnel).second) changes_.push_back({tunnel, true});
  }
  void remove(Stream stream) { tunnels_.erase(stream); }

  // `pauses`: the stream has nothing more to send now.
  void on_sent(Stream stream, std::size_t bytes, bool pauses) {
    if (tunnels_.empty()) return;
    const auto found = tunnels_.find(stream);
    if (found == tunnels_.end()) {
      others_bytes_ += bytes;
      if (others_bytes_ < kTurnBytes) return;
      others_bytes_ = 0;
      for (auto& [number, tunnel] : tunnels_) begin_turn(number, tunnel);
    } else if (pauses) {
      begin_turn(stream, found->second);
    } else if (Tunnel& tunnel = found->second; (tunnel.bytes += bytes) >= kTurnBytes && tunnel.is_first) {
      tunnel.is_first = false;
      changes_.push_back({stream, false});
    }
  }

  // The changes since the last call, in order; a stream may have been closed meanwhile.
  std::vector<Change> poll_changes() { return std::exchange(changes_, {}); }

 private:
  struct Tunnel {
    std::size_t bytes = 0;  // in this turn
    bool is_first = true;
  };
  void begin_turn(Stream stream, Tunnel& tunnel) {
    tunnel.bytes = 0;
    if (!std::exchange(tunnel.is_first, true)) changes_.push_back({stream, true});
  }

  std::map<Stream, Tunnel> tunnels_;
  std::size_t others_bytes_ = 0;  // sent by responses in their turn
  std::vector<Change> changes_;
};

}  // namespace longhaul::http::h2
