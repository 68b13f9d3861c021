// SPDX-License-Identifier: Apache-2.0
// Both halves for SMB1 with a client on one side and a server on the other, all in memory. The two ways
// between the halves hold what was sent until the test lets it come, so that anything can cross anything.
#pragma once
#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <random>

#include "proxy/modules/smb/crossing.h"
#include "proxy/modules/smb/smb1/far.h"
#include "proxy/modules/smb/smb1/near.h"
#include "proxy/modules/smb/smb1/server.h"

namespace longhaul::smb::smb1::testing {

inline constexpr std::uint8_t kClose = 0x04;
inline constexpr std::uint32_t kStatusDiskFull = 0xC000007F;

class Pair {
 public:
  Outputs near_out, far_out;
  Near near;
  Far far;
  Server server;
  smb::testing::Crossing up, down;  // between the halves
  std::deque<Slice> at_client;      // answers that the client has not looked at
  bool aborted = false;
  bool client_ended = false, server_ended = false;  // what the halves said to them
  bool server_waits = false;                        // its answers are held back
  bool client_acknowledges = true;                  // what is sent to its host is known to have arrived there
  TimePoint now{};

  explicit Pair(std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(), unsigned client = 1,
                std::shared_ptr<LostWrites> lost_at_far = std::make_shared<LostWrites>(),
                std::uint16_t max_mpx = 50)
      : near(near_out, std::make_shared<AheadAccount>(), std::move(lost), {.client = {std::byte(client)}}),
        far(far_out, std::move(lost_at_far), {.client = {std::byte(client)}}) {
    line(1'000'000);
    server.max_mpx = max_mpx;
    for (Slice frame : {negotiate(), session_setup(), tree_connect()}) {
      client_sends(frame);
      run();
      REQUIRE(at_client.size() == 1);
      at_client.clear();
    }
  }

  void line(std::uint64_t bytes_per_second) {
    Surroundings surroundings;
    surroundings.line_bytes_per_second = bytes_per_second;
    surroundings.round_trip = std::chrono::milliseconds(100);
    surroundings.features.metadata_relaxed = true;  // this server cannot watch
    surroundings.features.write_behind_cached = true;
    near.on_surroundings(now, surroundings);
    far.on_surroundings(now, surroundings);
  }

  void client_sends(const Slice& frame) {
    near.frame_from_lan(now, cut(frame, near.bare_from_lan()));
    drain();
  }

  // One thing that was put out comes where it goes to. False: there is none.
  bool move_up() {
    if (up.empty()) return false;
    up.deliver(far, now, [this](const Slice& bytes) { return cut(bytes, far.bare_from_stream()); });
    drain();
    return true;
  }
  bool move_down() {
    if (down.empty()) return false;
    down.deliver(near, now, [this](const Slice& bytes) { return cut(bytes, near.bare_from_stream()); });
    drain();
    return true;
  }
  bool server_answers() {
    if (server.out.empty() || server_waits) return false;
    const Slice frame = std::move(server.out.front());
    server.out.pop_front();
    far.frame_from_lan(now, cut(frame, far.bare_from_lan()));
    drain();
    return true;
  }
  // What follows from that is not moved.
  void pass(modules::Duration time) {
    now += time;
    near.on_timeout(now);
    far.on_timeout(now);
    drain();
  }
  // Until nothing moves.
  void run() {
    run_while([] { return true; });
  }
  // Or until then.
  template <class Condition>
  void run_while(Condition holds) {
    while (holds() && (move_up() || server_answers() || move_down())) {
    }
  }
  void run_random(std::mt19937& random, int steps) {
    for (int i = 0; i < steps; ++i) {
      switch (random() % 3) {
        case 0:
          move_up();
          break;
        case 1:
          move_down();
          break;
        default:
          server_answers();
      }
    }
  }

  std::optional<Slice> answer() {
    if (at_client.empty()) return std::nullopt;
    Slice first = std::move(at_client.front());
    at_client.pop_front();
    return first;
  }
  // The answer to what was just sent; nothing else may come.
  Slice only_answer() {
    run();
    REQUIRE(at_client.size() == 1);
    return *answer();
  }
  Slice ask(const Slice& frame) {
    client_sends(frame);
    return only_answer();
  }
  // Without anything crossing the line.
  std::optional<Slice> ask_here(const Slice& frame) {
    client_sends(frame);
    return answer();
  }

 private:
  // As the module does; what was put out is one whole frame.
  static Frame cut(const Slice& bytes, Bare bare) {
    FrameSplitter splitter(Framing::direct_tcp);
    splitter.push(bytes);
    auto frame = splitter.next(bare);
    REQUIRE(frame.has_value());
    REQUIRE(frame->has_value());
    REQUIRE((*frame)->bytes.size() == bytes.size());
    return **frame;
  }
  void drain() {
    if (client_acknowledges) near.arrived(near.awaited());
    const auto abort = [this] { aborted = true; };
    up.take(
        near_out, [this](const Slice& bytes) { at_client.push_back(bytes); }, [this] { client_ended = true; },
        abort);
    down.take(
        far_out, [this](const Slice& bytes) { to_server(bytes); }, [this] { server_ended = true; }, abort);
  }
  void to_server(const Slice& bytes) {
    to_server_.push(bytes);
    while (auto frame = to_server_.next(server.expects_data() ? Bare::expected : Bare::unexpected).value())
      server.expects_data() ? server.receive_data(frame->message()) : server.receive(frame->message());
  }

  FrameSplitter to_server_{Framing::direct_tcp};
};

// ---- what answers say

inline Message parsed(const Slice& frame) { return *parse_message(frame.bytes().subspan(4)); }
inline std::uint32_t status_of(const Slice& frame) { return parsed(frame).header.status; }
inline std::uint16_t mid_of(const Slice& frame) { return parsed(frame).header.mid; }
inline std::uint16_t fid_of(const Slice& frame) {
  const Message message = parsed(frame);
  return parse_nt_create_reply(message.first())->fid;
}
inline std::string data_of(const Slice& frame) {
  const Message message = parsed(frame);
  return std::string(as_text(parse_read_reply(message, message.first())->data));
}

inline std::string some_bytes(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace longhaul::smb::smb1::testing
