// SPDX-License-Identifier: Apache-2.0
// Both SMB2 halves in memory between a client (requester.h) that waits for each answer and a model of a
// server (storing_server.h). What is to hold is said by the tests.
#pragma once
#include "proxy/modules/smb/crossing.h"
#include "proxy/modules/smb/smb2/far.h"
#include "proxy/modules/smb/smb2/near.h"
#include "proxy/modules/smb/smb2/requester.h"
#include "proxy/modules/smb/smb2/storing_server.h"

namespace longhaul::smb::smb2::model {

// The server's address, as the far half knows it: 10.0.0.1.
inline constexpr modules::Address kServerAddress = [] {
  modules::Address address{};
  address[10] = address[11] = std::byte{0xFF};
  address[12] = std::byte{10}, address[15] = std::byte{1};
  return address;
}();

// Client, halves and server. Everything that can happen next does so in an order that the seed decides.
class World : public Requester {
 public:
  explicit World(std::uint32_t seed, std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(),
                 std::shared_ptr<Channels> channels = std::make_shared<Channels>(),
                 const LostWrites::Ends& ends = {},
                 std::shared_ptr<LostWrites> lost_at_far = std::make_shared<LostWrites>())
      : server(seed * 7 + 1),
        random_(seed),
        near_(near_out_, account, std::move(lost), std::move(channels), ends),
        far_(far_out_, std::move(lost_at_far), ends) {
    surroundings.line_bytes_per_second = 1'000'000;
    surroundings.round_trip = std::chrono::milliseconds(100);
    surroundings.stream_room = 16 << 20;
    surroundings.features.metadata_relaxed = true;  // this server cannot watch
    surroundings.features.write_behind_cached = true;
    server.believed_done = [this](MessageId id) { return answers.contains(id); };
    near_.on_surroundings(now, surroundings);
    far_.on_surroundings(now, surroundings);
  }

  Server server;
  std::shared_ptr<AheadAccount> account = std::make_shared<AheadAccount>();  // of the near half's site
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  std::uint64_t client = 1;  // a part of its GUID
  std::string security;      // of its SESSION_SETUP
  std::uint32_t client_capabilities = capabilities::large_mtu;
  bool aborted = false;
  bool client_reset = false;
  bool server_reset = false;
  const modules::Counters& near_counters() const { return near_.counters(); }
  const modules::Counters& far_counters() const { return std::as_const(far_).counters(); }
  Near& near() { return near_; }
  Far& far() { return far_; }
  std::function<void()> at_each_step = [] {};
  bool server_idle = false;  // does nothing while true
  bool link_cut = false;     // nothing crosses between the halves while true
  bool client_acknowledges = true;   // what is sent to the client's host is known to have arrived there
  // What goes first where something can: any, or what comes down to the near half last, or first; or that
  // does not go at all.
  enum class Order : std::uint8_t { any, down_last, down_first, down_held } order = Order::any;
  void line(std::uint64_t bytes_per_second) {
    surroundings.line_bytes_per_second = bytes_per_second;
    tell_features();
  }
  void round_trip(modules::Duration time) {
    surroundings.round_trip = time;
    tell_features();
  }
  // What both halves are told of each other from now on.
  void tell(const link::Contact& contact) {
    surroundings.contact = contact;
    near_.on_surroundings(now, surroundings);
    far_.on_surroundings(now, surroundings);
    drain();
  }

  void switch_metadata(bool on) {
    surroundings.features.metadata = on;
    tell_features();
  }
  void switch_relaxed(bool on) {
    surroundings.features.metadata_relaxed = on;
    tell_features();
  }
  // Promises for clients that cache files themselves, too: as they are here unless a test says otherwise.
  void switch_write_behind_cached(bool on) {
    surroundings.features.write_behind_cached = on;
    tell_features();
  }
  void tell_features() {
    near_.on_surroundings(now, surroundings);
    far_.on_surroundings(now, surroundings);
    drain();
  }

  // Something happens; false: nothing is left to happen.
  bool step() {
    if (aborted) return false;
    std::vector<int> can;
    if (!up_.empty() && !link_cut) can.push_back(0);
    if (!down_.empty() && !link_cut && order != Order::down_held) can.push_back(1);
    if (server.busy() && !server_idle) can.push_back(2);
    if (server.has_output()) can.push_back(3);
    if (can.empty()) return false;
    if (order == Order::down_first && !down_.empty() && !link_cut) can = {1};
    if (order == Order::down_last && can.size() > 1) std::erase(can, 1);
    now += std::chrono::milliseconds(1);
    switch (can[random_() % can.size()]) {
      case 0:
        while (up_.deliver(far_, now, frame_of)) {
        }
        break;
      case 1:
        while (down_.deliver(near_, now, frame_of)) {
        }
        break;
      case 2:
        server.step();
        break;
      default:
        for (const Frame& frame : frames_of(from_server_, server.take_output()))
          far_.frame_from_lan(now, frame);
    }
    drain();
    at_each_step();
    return true;
  }
  void settle() {
    while (step()) {
    }
  }

  // The answer to this request, or nothing when the connection is reset or the world stands still.
  std::optional<Message> wait(MessageId id) {
    while (!answers.contains(id)) {
      if (!step()) return std::nullopt;
    }
    return answers.at(id);
  }
  std::map<MessageId, Message> answers;
  std::vector<Message> unsolicited;

  bool connect() {
    auto done = [&](Command command) {
      return wait(send({.credit_charge = 1, .command = command},
                       [&](LittleEndianWriter& w) {
                         if (command == Command::negotiate) {
                           w.u16(36), w.u16(1), w.u16(1), w.u16(0), w.u32(client_capabilities);
                           w.u64(1), w.u64(client), w.u64(0), w.u16(server.dialect);
                         } else if (command == Command::session_setup) {
                           w.u16(25), w.u8(0), w.u8(1), w.u32(0), w.u32(0), w.u16(88);
                           w.u16(static_cast<std::uint16_t>(security.size())), w.u64(0),
                               w.bytes(as_bytes(security));
                         } else {
                           w.u16(9), w.u16(0), w.u16(72), w.u16(2), w.u16('x');
                         }
                       }))
          .has_value();
    };
    return done(Command::negotiate) && done(Command::session_setup) && done(Command::tree_connect);
  }
  std::optional<FileId> opened(MessageId create) {
    auto answer = wait(create);
    if (!answer || answer->header().status != Status::success) return std::nullopt;
    return parse_create_response(answer->first().bytes)->file;
  }
  std::optional<FileId> create(std::string_view name, Disposition disposition, OplockLevel oplock,
                               std::uint32_t options = 0, std::uint32_t access = 0x1F01FF) {
    return opened(send_create(name, disposition, oplock, options, access));
  }
  // Time passes without anything being sent or done.
  void pass(modules::Duration time) {
    now += time;
    near_.on_timeout(now);
    far_.on_timeout(now);
    drain();
  }
  Status status(MessageId id) {
    auto answer = wait(id);
    return answer ? answer->header().status : Status::pipe_disconnected;
  }

  // The server's end of the connection, or the client's.
  void server_ends() {
    far_.lan_ended(now, modules::Ending::closed);
    drain();
  }
  void client_ends(modules::Ending how = modules::Ending::closed) {
    near_.lan_ended(now, how);
    drain();
  }

 private:
  void put_out(const Slice& frame) override {
    near_.frame_from_lan(now, Frame{FrameKind::smb2, frame});
    drain();
  }
  void drain() {
    if (client_acknowledges) near_.arrived(near_.awaited());
    const auto end = [this] { ended = true; };
    const auto abort = [this] { aborted = true; };
    up_.take(
        near_out_, [this](const Slice& bytes) { to_client(bytes); }, end, abort);
    down_.take(
        far_out_,
        [this](const Slice& bytes) {
          if (!aborted) server.receive(bytes);
        },
        end, abort);
  }
  void to_client(const Slice& bytes) {
    if (aborted) return;
    for (const Frame& frame : frames_of(to_client_, bytes)) {
      auto message = parse_message(frame);
      REQUIRE(message.has_value());
      const Header& header = message->header();
      for (const Element& element : message->elements) credits += element.header.credits;
      if (header.is_unsolicited()) {
        unsolicited.push_back(*message);
      } else if (!header.is_interim()) {
        REQUIRE(!answers.contains(header.message_id));
        answers.emplace(header.message_id, *message);
      }
    }
  }
  static Frame frame_of(const Slice& bytes) { return {FrameKind::smb2, bytes}; }
  static std::vector<Frame> frames_of(FrameSplitter& splitter, const Slice& bytes) {
    splitter.push(bytes);
    std::vector<Frame> frames;
    for (;;) {
      auto next = splitter.next();
      REQUIRE(next.has_value());
      if (!*next) return frames;
      frames.push_back(**next);
    }
  }

 public:
  bool ended = false;  // cleanly, towards the client or the server

 private:
  Surroundings surroundings;
  std::mt19937 random_;
  Outputs near_out_, far_out_;
  Near near_;
  Far far_;
  smb::testing::Crossing up_, down_;
  FrameSplitter to_client_{Framing::direct_tcp}, from_server_{Framing::direct_tcp};
};

inline bool promises_add_up(World& world) { return world.near().writes().audit().adds_up(); }

}  // namespace longhaul::smb::smb2::model
