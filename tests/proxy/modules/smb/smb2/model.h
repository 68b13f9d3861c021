// SPDX-License-Identifier: Apache-2.0
// Both SMB2 halves in memory between a client that waits for each answer and a model of a server
// (storing_server.h). What is to hold is said by the tests.
#pragma once
#include "proxy/modules/smb/crossing.h"
#include "proxy/modules/smb/smb2/far.h"
#include "proxy/modules/smb/smb2/near.h"
#include "proxy/modules/smb/smb2/storing_server.h"
#include "tests/proxy/modules/smb/smb2/ids.h"

namespace longhaul::smb::smb2::model {

// The server's address, as the far half knows it: 10.0.0.1.
inline constexpr modules::Address kServerAddress = [] {
  modules::Address address{};
  address[10] = address[11] = std::byte{0xFF};
  address[12] = std::byte{10}, address[15] = std::byte{1};
  return address;
}();

inline constexpr auto kNone = OplockLevel::none, kBatch = OplockLevel::batch;

// Client, halves and server. Everything that can happen next does so in an order that the seed decides.
class World {
 public:
  explicit World(std::uint32_t seed, std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>(),
                 std::shared_ptr<Channels> channels = std::make_shared<Channels>(),
                 const LostWrites::Ends& ends = {},
                 std::shared_ptr<LostWrites> lost_at_far = std::make_shared<LostWrites>())
      : server(seed * 7 + 1),
        random_(seed),
        near_(near_out_, std::make_shared<AheadAccount>(), std::move(lost), std::move(channels), ends),
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
  std::uint32_t request_flags = 0;   // of the headers of requests
  // What goes first where something can: any, or what comes down to the near half last, or first.
  enum class Order : std::uint8_t { any, down_last, down_first } order = Order::any;
  std::int64_t credits = 1;  // of the client: what it was granted and has not used
  void line(std::uint64_t bytes_per_second) {
    surroundings.line_bytes_per_second = bytes_per_second;
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
    if (!down_.empty() && !link_cut) can.push_back(1);
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

  // Sends a request; its answer is in answers[id] some steps later.
  MessageId send(Header header, const std::function<void(LittleEndianWriter&)>& body) {
    header.message_id = next_id_;
    next_id_ += header.charge();
    credits -= header.charge();
    header.credits = static_cast<std::uint16_t>(header.charge() + 4);
    header.flags |= request_flags;
    if (header.command > Command::session_setup) header.session_id = kSession;
    if (header.command > Command::tree_disconnect) header.tree_id = kTree;
    near_.frame_from_lan(now, Frame{FrameKind::smb2, message_of(header, body)});
    drain();
    return header.message_id;
  }
  // Authenticates the session again, or binds this connection to the session of another.
  MessageId send_session_setup(bool binds = false) {
    Header header{.credit_charge = 1, .command = Command::session_setup};
    header.session_id = kSession;
    return send(header, [binds](LittleEndianWriter& w) {
      w.u16(25), w.u8(binds), w.u8(1), w.u32(0), w.u32(0), w.u16(88), w.u16(0), w.u64(0);
    });
  }
  void send_cancel(MessageId of) {
    Header header{.command = Command::cancel, .message_id = of};
    header.session_id = kSession;
    near_.frame_from_lan(
        now, Frame{FrameKind::smb2, message_of(header, [](LittleEndianWriter& w) { w.u16(4), w.u16(0); })});
    drain();
  }
  MessageId send_query_interfaces() {
    return send({.credit_charge = 1, .command = Command::ioctl}, [](LittleEndianWriter& w) {
      w.u16(57), w.u16(0), w.u32(fsctl::query_network_interface_info), w.u64(~0ull), w.u64(~0ull), w.u32(120);
      w.u32(0), w.u32(0), w.u32(120), w.u32(0), w.u32(4096), w.u32(1), w.u32(0), w.u8(0);
    });
  }
  // Opens a directory and lists its beginning in one frame, as Linux does: the ids of both.
  std::pair<MessageId, MessageId> send_create_and_list(std::string_view name, std::uint32_t bytes) {
    const std::string pattern = utf16("*");
    return send_create_and(
        name, {.access = access::read_data, .options = create_options::directory_file},
        Command::query_directory, [&](LittleEndianWriter& w) {
          w.u16(33), w.u8(file_info::names), w.u8(0), w.u32(0), w.u64(~0ull), w.u64(~0ull), w.u16(96);
          w.u16(static_cast<std::uint16_t>(pattern.size())), w.u32(bytes), w.bytes(as_bytes(pattern));
        });
  }
  // Makes a new file and writes its beginning in one frame.
  std::pair<MessageId, MessageId> send_create_and_write(std::string_view name, std::string_view data) {
    return send_create_and(
        name, {.oplock = kBatch, .disposition = Disposition::overwrite_if}, Command::write,
        [&](LittleEndianWriter& w) {
          w.u16(49), w.u16(0x70), w.u32(static_cast<std::uint32_t>(data.size())), w.u64(0), w.u64(~0ull);
          w.u64(~0ull), w.u32(0), w.u32(0), w.u16(0), w.u16(0), w.u32(0), w.bytes(as_bytes(data));
        });
  }
  // Opens a file and asks about it, or renames it, in one frame.
  std::pair<MessageId, MessageId> send_create_and_query(std::string_view name) {
    return send_create_and(name, {}, Command::query_info, [](LittleEndianWriter& w) {
      w.u16(41), w.u8(1), w.u8(file_info::standard), w.u32(4096), w.zeros(16), w.u64(~0ull), w.u64(~0ull),
          w.u8(0);
    });
  }
  std::pair<MessageId, MessageId> send_create_and_rename(std::string_view name, bool closes = false) {
    const auto rename = [](LittleEndianWriter& w) {
      w.u16(33), w.u8(1), w.u8(file_info::rename), w.u32(24), w.u16(96), w.u16(0), w.u32(0), w.u64(~0ull);
      w.u64(~0ull), w.zeros(16), w.u32(2), w.u16('y'), w.u16(0);
    };
    return send_create_and(name, {.access = 0x10080}, Command::set_info, rename, closes);
  }
  // The answer, or nothing when the connection is reset or the world stands still.
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
  MessageId send_create(std::string_view name, Disposition disposition, OplockLevel oplock,
                        std::uint32_t options = 0, std::uint32_t access = 0x1F01FF) {
    const std::string wide = utf16(name);
    return send({.credit_charge = 1, .command = Command::create}, [&](LittleEndianWriter& w) {
      w.u16(57), w.u8(0), w.u8(static_cast<std::uint8_t>(oplock)), w.u32(2), w.u64(0), w.u64(0);
      w.u32(access), w.u32(0x80), w.u32(7), w.u32(static_cast<std::uint32_t>(disposition)), w.u32(options);
      w.u16(120), w.u16(static_cast<std::uint16_t>(wide.size())), w.u32(0), w.u32(0), w.bytes(as_bytes(wide));
    });
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
  MessageId send_write(const FileId& file, std::uint64_t offset, std::string_view data,
                       std::uint32_t flags = 0) {
    Header header{.credit_charge = charge_for(static_cast<std::uint32_t>(data.size())),
                  .command = Command::write};
    return send(header, [&](LittleEndianWriter& w) {
      w.u16(49), w.u16(0x70), w.u32(static_cast<std::uint32_t>(data.size())), w.u64(offset);
      put(w, file);
      w.u32(0), w.u32(0), w.u16(0), w.u16(0), w.u32(flags), w.bytes(as_bytes(data));
    });
  }
  MessageId send_flush(const FileId& file) {
    return send({.credit_charge = 1, .command = Command::flush}, [&](LittleEndianWriter& w) {
      w.u16(24), w.u16(0), w.u32(0);
      put(w, file);
    });
  }
  MessageId send_close(const FileId& file) {
    return send({.credit_charge = 1, .command = Command::close}, [&](LittleEndianWriter& w) {
      w.u16(24), w.u16(0), w.u32(0);
      put(w, file);
    });
  }
  MessageId send_read(const FileId& file, std::uint64_t offset, std::uint32_t length) {
    return send({.credit_charge = charge_for(length), .command = Command::read}, [&](LittleEndianWriter& w) {
      w.u16(49), w.u8(0x50), w.u8(0), w.u32(length), w.u64(offset);
      put(w, file);
      w.u32(0), w.u32(0), w.u32(0), w.u16(0), w.u16(0), w.u8(0);
    });
  }
  MessageId send_query_info(const FileId& file, std::uint8_t info_class) {
    return send({.credit_charge = 1, .command = Command::query_info}, [&](LittleEndianWriter& w) {
      w.u16(41), w.u8(1), w.u8(info_class), w.u32(4096), w.u16(0), w.u16(0), w.u32(0), w.u32(0), w.u32(0);
      put(w, file);
      w.u8(0);
    });
  }
  MessageId send_query_directory(const FileId& file, std::uint8_t flags, std::uint32_t bytes,
                                 std::uint8_t info_class = file_info::names) {
    const std::string pattern = utf16("*");
    return send({.credit_charge = 1, .command = Command::query_directory}, [&](LittleEndianWriter& w) {
      w.u16(33), w.u8(info_class), w.u8(flags), w.u32(0);
      put(w, file);
      w.u16(96), w.u16(static_cast<std::uint16_t>(pattern.size())), w.u32(bytes), w.bytes(as_bytes(pattern));
    });
  }
  MessageId send_rename(const FileId& file) {
    return send({.credit_charge = 1, .command = Command::set_info}, [&](LittleEndianWriter& w) {
      w.u16(33), w.u8(1), w.u8(file_info::rename), w.u32(24), w.u16(96), w.u16(0), w.u32(0);
      put(w, file);
      w.zeros(16), w.u32(2), w.u16('y'), w.u16(0);
    });
  }
  MessageId send_set_info(const FileId& file, std::uint8_t info_class, const Buffer& information) {
    return send({.credit_charge = 1, .command = Command::set_info}, [&](LittleEndianWriter& w) {
      w.u16(33), w.u8(1), w.u8(info_class), w.u32(static_cast<std::uint32_t>(information.size()));
      w.u16(96), w.u16(0), w.u32(0);
      put(w, file);
      w.bytes(information);
    });
  }
  MessageId send_end_of_file(const FileId& file, std::uint64_t end) {
    Buffer information;
    LittleEndianWriter(information).u64(end);
    return send_set_info(file, file_info::end_of_file, information);
  }
  MessageId send_times(const FileId& file, std::int64_t written = 5, std::uint32_t attributes = 0) {
    Buffer information;
    LittleEndianWriter w(information);
    w.u64(0), w.u64(0), w.u64(static_cast<std::uint64_t>(written)), w.u64(0), w.u32(attributes), w.u32(0);
    return send_set_info(file, file_info::basic, information);
  }
  // Time passes without anything being sent or done.
  void pass(modules::Duration time) {
    now += time;
    near_.on_timeout(now);
    far_.on_timeout(now);
    drain();
  }
  MessageId acknowledge(const FileId& file, OplockLevel level) {
    return send({.credit_charge = 1, .command = Command::oplock_break}, [&](LittleEndianWriter& w) {
      w.u16(24), w.u8(static_cast<std::uint8_t>(level)), w.zeros(5);
      put(w, file);
    });
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
  struct How {
    OplockLevel oplock = kNone;
    std::uint32_t access = 0x1F01FF;
    Disposition disposition = Disposition::open;
    std::uint32_t options = 0;
  };
  std::pair<MessageId, MessageId> send_create_and(std::string_view name, const How& how, Command command,
                                                  const std::function<void(LittleEndianWriter&)>& second,
                                                  bool closes = false) {
    const std::string wide = utf16(name);
    Header head{.credit_charge = 1,
                .command = Command::create,
                .credits = 5,
                .message_id = test::take_next(next_id_)};
    head.session_id = kSession, head.tree_id = kTree;
    Buffer frame, body;
    LittleEndianWriter w(body);
    w.u16(57), w.u8(0), w.u8(static_cast<std::uint8_t>(how.oplock)), w.u32(2), w.u64(0), w.u64(0);
    w.u32(how.access), w.u32(0x80), w.u32(7), w.u32(static_cast<std::uint32_t>(how.disposition));
    w.u32(how.options), w.u16(120), w.u16(static_cast<std::uint16_t>(wide.size()));
    w.u32(0), w.u32(0), w.bytes(as_bytes(wide));
    while ((kHeaderBytes + body.size()) % 8 != 0) w.u8(0);
    head.next_command = static_cast<std::uint32_t>(kHeaderBytes + body.size());
    write_header(head, frame);
    append(frame, body);
    Header next{
        .credit_charge = 1, .command = command, .credits = 5, .message_id = test::take_next(next_id_)};
    next.flags = header_flags::related;
    next.session_id = kSession, next.tree_id = kTree;
    body.clear();
    second(w);
    if (closes) {
      while ((kHeaderBytes + body.size()) % 8 != 0) w.u8(0);
      next.next_command = static_cast<std::uint32_t>(kHeaderBytes + body.size());
    }
    write_header(next, frame);
    append(frame, body);
    if (closes) {
      Header last = next;
      last.command = Command::close, last.message_id = test::take_next(next_id_), last.next_command = 0;
      body.clear();
      w.u16(24), w.u16(0), w.u32(0), w.u64(~0ull), w.u64(~0ull);
      write_header(last, frame);
      append(frame, body);
    }
    std::byte front[kFrameHeadBytes];
    write_frame_head(frame.size(), front);
    near_.frame_from_lan(now, Frame{FrameKind::smb2, Slice::joined(front, frame)});
    drain();
    return {head.message_id, next.message_id};
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
  MessageId next_id_{};
};

inline bool promises_add_up(World& world) { return world.near().writes().audit().adds_up(); }

}  // namespace longhaul::smb::smb2::model
