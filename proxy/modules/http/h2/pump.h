// SPDX-License-Identifier: Apache-2.0
// Makes the frames of both connections of a half, and passes them to its outputs, while there is room.
// Content becomes frames only then, so that a client that does not read uses memory only within its windows
// and those towards the server, whatever the size of the stored object.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/http/h2/streams.h"
#include "proxy/modules/module.h"

namespace longhaul::http::h2 {

class Pump {
 public:
  enum class Client : std::uint8_t { at_lan, at_stream };  // the server is on the other side
  Pump(std::deque<modules::Output>& out, Client client) : out_(out), client_(client) {}

  void on_room(const modules::Room& room) {
    if (room.lan) of(Client::at_lan).room = kRoom;
    if (room.stream) of(Client::at_stream).room = kRoom;
  }

  // Returns true if both connections are closed and nothing is left to send.
  bool run(Streams& streams) {
    Side &client = of(client_), &server = of(client_ == Client::at_lan ? Client::at_stream : Client::at_lan);
    for (bool moved = true; std::exchange(moved, false);) {
      Buffer down, up;
      if (client.room > 0 && !client.is_ended) streams.to_client(down, std::min(client.room, kPiece));
      if (server.room > 0 && !server.is_ended) streams.to_server(up, std::min(server.room, kPiece));
      moved = !down.empty() || !up.empty();
      put(client, down);
      put(server, up);
      if (!moved) streams.review();
    }
    if (client.room == 0 || !streams.is_over()) return false;
    streams.client_ended();
    Buffer last;
    streams.to_server(last, kPiece);
    if (!server.is_ended) put(server, last);
    return true;
  }

  void end_lan() {
    if (!std::exchange(of(Client::at_lan).is_ended, true)) out_.push_back(modules::EndLan{});
  }
  void end_stream() {
    if (!std::exchange(of(Client::at_stream).is_ended, true)) out_.push_back(modules::EndStream{});
  }
  bool has_ended_lan() const { return sides_[0].is_ended; }
  bool has_ended_stream() const { return sides_[1].is_ended; }

 private:
  static constexpr std::size_t kRoom = 128 * 1024, kPiece = 64 * 1024;
  static constexpr std::size_t kLeastContent = 4096;  // as in ToServer
  struct Side {
    std::size_t room = kRoom;
    bool is_ended = false;
  };
  Side& of(Client place) { return sides_[static_cast<std::size_t>(place)]; }
  void put(Side& side, const Buffer& bytes) {
    if (bytes.empty()) return;
    side.room -= std::min(side.room, bytes.size());
    if (&side == &of(Client::at_lan))
      out_.push_back(modules::ToLan{Slice::copy_of(bytes)});
    else
      out_.push_back(modules::ToStream{.bytes = Slice::copy_of(bytes),
                                       .is_content = bytes.size() >= kLeastContent && has_no_headers(bytes)});
  }

  std::deque<modules::Output>& out_;
  Client client_;
  std::array<Side, 2> sides_;
};

}  // namespace longhaul::http::h2
