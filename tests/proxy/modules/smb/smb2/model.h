// SPDX-License-Identifier: Apache-2.0
// Both SMB2 halves in memory between a client that waits for each answer and a model of a server that does
// what it is asked at any later time, in any order. What is to hold is said by the tests.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/far.h"
#include "proxy/modules/smb/smb2/near.h"

namespace longhaul::smb::smb2::model {

inline constexpr SessionId kSession = 0x1234;
inline constexpr TreeId kTree = 7;

inline Slice message_of(const Header& header, const std::function<void(LittleEndianWriter&)>& body) {
  Buffer bytes;
  LittleEndianWriter writer(bytes);
  body(writer);
  return build_message(header, bytes);
}
inline void put(LittleEndianWriter& writer, const FileId& file) {
  writer.u64(file.persistent_part);
  writer.u64(file.volatile_part);
}
inline std::string utf16(std::string_view ascii) {
  std::string wide;
  for (char c : ascii) wide += c, wide += '\0';
  return wide;
}

// One user's share. A request is done and answered when step() picks it.
class Server {
 public:
  explicit Server(std::uint32_t seed) : random_(seed) {}

  std::map<std::string, std::string> files;
  std::uint64_t available_bytes = 1ull << 40;
  int fail_write = -1;  // the n-th WRITE that is done fails, and all after it
  Status failure = Status::disk_full;
  bool oplocks = true;
  std::uint32_t times_asked_for_room = 0;
  std::vector<std::string> listing;  // names, for QUERY_DIRECTORY
  std::map<Command, int> done;
  std::function<bool(MessageId)> believed_done = [](MessageId) { return true; };
  std::uint64_t early_breaks = 0;  // acknowledgements that came while writes were not done

  void receive(const Slice& bytes) {
    splitter_.push(bytes);
    for (;;) {
      auto frame = splitter_.next();
      REQUIRE(frame.has_value());
      if (!*frame) return;
      auto message = parse_message(**frame);
      REQUIRE(message.has_value());
      REQUIRE(message->single());
      const Header& header = message->header();
      if (header.command == Command::cancel) continue;
      for (std::uint64_t id = header.message_id; id < header.message_id + header.charge(); ++id) {
        REQUIRE(id < window_);
        REQUIRE(used_.insert(id).second);
      }
      pending_.push_back(*message);
    }
  }
  bool busy() const { return !pending_.empty(); }
  bool has_output() const { return !out_.empty(); }
  Slice take_output() {
    Slice first = out_.front();
    out_.pop_front();
    return first;
  }

  // Does one of the requests. The first ones are never done out of order: no client pipelines those.
  void step() {
    std::size_t which = random_() % pending_.size();
    if (pending_.front().header().command < Command::create) which = 0;
    const Message message = pending_[which];
    came_before_ = which;
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
    if (message.header().command == Command::write && random_() % 8 == 0) interim(message.header());
    perform(message);
  }

  // Somebody else wants the file: true if there was an oplock to break.
  bool take_oplock(OplockLevel to) {
    for (auto& [id, open] : opens_) {
      if (open.oplock != OplockLevel::batch) continue;
      open.oplock = to;
      open.breaking = true;
      Header header{
          .command = Command::oplock_break, .flags = header_flags::response, .message_id = kUnsolicited};
      out_.push_back(message_of(header, [&](LittleEndianWriter& w) {
        w.u16(24);
        w.u8(static_cast<std::uint8_t>(to));
        w.zeros(5);
        put(w, {id, id});
      }));
      return true;
    }
    return false;
  }
  bool breaking() const {
    for (const auto& [id, open] : opens_)
      if (open.breaking) return true;
    return false;
  }

 private:
  struct Open {
    std::string name;
    OplockLevel oplock = OplockLevel::none;
    bool breaking = false;
    std::size_t listed = 0;
  };

  std::uint16_t grant(const Header& request) {
    const std::uint64_t room = used_.size() + 512 > window_ ? used_.size() + 512 - window_ : 0;
    const auto granted = static_cast<std::uint16_t>(
        std::min<std::uint64_t>(std::max<std::uint16_t>(request.credits, 1), room));
    window_ += granted;
    return granted;
  }
  Header head(const Header& request, Status status) {
    Header header = answer_to(request, status);
    header.credits = grant(request);
    return header;
  }
  void interim(const Header& request) {
    Header header = answer_to(request, Status::pending);
    header.flags |= header_flags::async;
    header.async_id = request.message_id;
    header.credits = grant(request);
    out_.push_back(build_error_response(header));
    async_.insert(request.message_id);
  }
  void fail(const Header& request, Status status) {
    out_.push_back(build_error_response(head(request, status)));
  }
  Open* open(const FileId& file) {
    auto found = opens_.find(file.volatile_part);
    return found == opens_.end() ? nullptr : &found->second;
  }
  // Writes that came before the request that is being done, and of which the client believes that they are
  // done.
  bool writes_pending(const FileId& file) const {
    for (std::size_t i = 0; i < came_before_; ++i) {
      const Message& message = pending_[i];
      if (message.header().command != Command::write) continue;
      if (parse_write_request(message.first().bytes)->file == file &&
          believed_done(message.header().message_id)) {
        return true;
      }
    }
    return false;
  }

  void perform(const Message& message) {
    const Header& request = message.header();
    const Bytes bytes = message.first().bytes;
    ++done[request.command];
    switch (request.command) {
      case Command::negotiate:
        out_.push_back(message_of(head(request, Status::success), [](LittleEndianWriter& w) {
          w.u16(65), w.u16(1), w.u16(0x0210), w.u16(0), w.zeros(16), w.u32(capabilities::large_mtu);
          w.u32(1 << 20), w.u32(1 << 20), w.u32(1 << 20), w.u64(0), w.u64(0), w.u16(128), w.u16(0), w.u32(0);
        }));
        return;
      case Command::session_setup: {
        Header header = head(request, Status::success);
        header.session_id = kSession;
        out_.push_back(
            message_of(header, [](LittleEndianWriter& w) { w.u16(9), w.u16(0), w.u16(72), w.u16(0); }));
        return;
      }
      case Command::tree_connect: {
        Header header = head(request, Status::success);
        header.tree_id = kTree;
        out_.push_back(message_of(header, [](LittleEndianWriter& w) {
          w.u16(16), w.u8(1), w.u8(0), w.u32(0), w.u32(0), w.u32(0x1F01FF);
        }));
        return;
      }
      case Command::create: {
        auto create = parse_create_request(bytes);
        REQUIRE(create.has_value());
        std::string name;
        for (std::size_t i = 0; i < create->name.size(); i += 2) name += static_cast<char>(create->name[i]);
        const bool directory = create->options & create_options::directory_file;
        if (!directory && create->disposition == Disposition::open && !files.contains(name)) {
          return fail(request, Status::object_name_not_found);
        }
        if (create->disposition == Disposition::overwrite_if) files[name].clear();
        const std::uint64_t id = next_file_++;
        Open& open = opens_[id];
        open.name = name;
        const bool alone = std::count_if(opens_.begin(), opens_.end(),
                                         [&](const auto& each) { return each.second.name == name; }) == 1;
        if (oplocks && alone && !directory && create->oplock == OplockLevel::batch)
          open.oplock = OplockLevel::batch;
        const std::uint64_t size = directory ? 0 : files[name].size();
        out_.push_back(message_of(head(request, Status::success), [&](LittleEndianWriter& w) {
          w.u16(89), w.u8(static_cast<std::uint8_t>(open.oplock)), w.u8(0), w.u32(1), w.zeros(32);
          w.u64(size), w.u64(size), w.u32(directory ? 0x10 : 0x80), w.u32(0);
          put(w, {id, id});
          w.u32(0), w.u32(0);
        }));
        return;
      }
      case Command::write: {
        auto write = parse_write_request(bytes);
        REQUIRE(write.has_value());
        if (!open(write->file)) return fail(request, Status::file_closed);
        if (fail_write >= 0 && writes_++ >= fail_write) return fail(request, failure);
        std::string& file = files[open(write->file)->name];
        const std::size_t end = write->offset + write->data.size();
        if (file.size() < end) file.resize(end);
        file.replace(write->offset, write->data.size(), as_text(write->data));
        out_.push_back(build_write_response(head(request, Status::success),
                                            static_cast<std::uint32_t>(write->data.size())));
        return;
      }
      case Command::read: {
        auto read = parse_read_request(bytes);
        REQUIRE(read.has_value());
        if (!open(read->file)) return fail(request, Status::file_closed);
        const std::string& file = files[open(read->file)->name];
        if (read->offset >= file.size()) return fail(request, Status::end_of_file);
        out_.push_back(
            build_read_response(head(request, Status::success),
                                as_bytes(std::string_view(file).substr(read->offset, read->length))));
        return;
      }
      case Command::flush: {
        auto flush = parse_flush_request(bytes);
        REQUIRE(flush.has_value());
        if (!open(flush->file)) return fail(request, Status::file_closed);
        out_.push_back(build_empty_response(head(request, Status::success)));
        return;
      }
      case Command::close: {
        auto close = parse_close_request(bytes);
        REQUIRE(close.has_value());
        if (!opens_.erase(close->file.volatile_part)) return fail(request, Status::file_closed);
        out_.push_back(build_close_response(head(request, Status::success), {}));
        return;
      }
      case Command::query_info: {
        auto query = parse_query_info_request(bytes);
        REQUIRE(query.has_value());
        if (!open(query->file)) return fail(request, Status::file_closed);
        Buffer answer;
        LittleEndianWriter w(answer);
        if (query->type == InfoType::file_system) {
          ++times_asked_for_room;
          w.u64(available_bytes), w.u64(available_bytes), w.u64(available_bytes), w.u32(1), w.u32(1);
        } else {
          const std::string& file = files[open(query->file)->name];
          w.u64(file.size()), w.u64(file.size()), w.u32(1), w.u8(0), w.u8(0), w.u16(0);
        }
        out_.push_back(build_buffer_response(head(request, Status::success), answer));
        return;
      }
      case Command::query_directory: {
        auto query = parse_query_directory_request(bytes);
        REQUIRE(query.has_value());
        Open* directory = open(query->file);
        if (!directory) return fail(request, Status::file_closed);
        if (query->flags & query_directory_flags::restart_scans) directory->listed = 0;
        if (directory->listed >= listing.size()) {
          return fail(request, directory->listed ? Status::no_more_files : Status::no_such_file);
        }
        Buffer answer;
        std::size_t last = 0;
        for (int i = 0; i < 10 && directory->listed < listing.size(); ++i) {
          answer.insert(answer.end(), (8 - answer.size() % 8) % 8, std::byte{0});
          if (i) store_le(answer.data() + last, static_cast<std::uint32_t>(answer.size() - last));
          last = answer.size();
          const std::string name = utf16(listing[directory->listed++]);
          LittleEndianWriter w(answer);
          w.u32(0), w.u32(0), w.u32(static_cast<std::uint32_t>(name.size())),
              w.bytes(as_bytes(name));  // names
        }
        out_.push_back(build_buffer_response(head(request, Status::success), answer));
        return;
      }
      case Command::oplock_break: {
        auto parsed = parse_break(bytes);
        REQUIRE(parsed.has_value());
        const auto& oplock = std::get<OplockBreak>(*parsed);
        early_breaks += writes_pending(oplock.file);
        if (Open* broken = open(oplock.file)) broken->breaking = false;
        out_.push_back(message_of(head(request, Status::success), [&](LittleEndianWriter& w) {
          w.u16(24), w.u8(static_cast<std::uint8_t>(oplock.level)), w.zeros(5);
          put(w, oplock.file);
        }));
        return;
      }
      default:
        out_.push_back(build_empty_response(head(request, Status::success)));
    }
  }

  std::mt19937 random_;
  FrameSplitter splitter_{Framing::direct_tcp};
  std::vector<Message> pending_;  // in the order in which they came
  std::size_t came_before_ = 0;   // of these, the one that is being done
  std::deque<Slice> out_;
  std::map<std::uint64_t, Open> opens_;
  std::set<std::uint64_t> used_;
  std::set<std::uint64_t> async_;
  std::uint64_t window_ = 1;
  std::uint64_t next_file_ = 100;
  int writes_ = 0;
};

// Client, halves and server. Everything that can happen next does so in an order that the seed decides.
class World {
 public:
  explicit World(std::uint32_t seed)
      : server(seed * 7 + 1),
        random_(seed),
        near_(near_out_, std::make_shared<AheadAccount>()),
        far_(far_out_) {
    modules::Surroundings surroundings;
    surroundings.line_bytes_per_second = 1'000'000;
    surroundings.round_trip = std::chrono::milliseconds(100);
    surroundings.stream_room = 16 << 20;
    server.believed_done = [this](MessageId id) { return answers.contains(id); };
    near_.on_surroundings(now, surroundings);
    far_.on_surroundings(now, surroundings);
  }

  Server server;
  TimePoint now = TimePoint{} + std::chrono::hours(1);
  bool aborted = false;
  bool client_reset = false;
  bool server_reset = false;
  const modules::Counters& near_counters() const { return near_.counters(); }
  Near& near() { return near_; }
  Far& far() { return far_; }
  std::function<void()> at_each_step = [] {};
  bool server_idle = false;  // does nothing while true

  // Something happens; false: nothing is left to happen.
  bool step() {
    if (aborted) return false;
    std::vector<int> can;
    if (!up_.empty()) can.push_back(0);
    if (!down_.empty()) can.push_back(1);
    if (server.busy() && !server_idle) can.push_back(2);
    if (server.has_output()) can.push_back(3);
    if (can.empty()) return false;
    now += std::chrono::milliseconds(1);
    switch (can[random_() % can.size()]) {
      case 0:
        deliver(up_, far_);
        break;
      case 1:
        deliver(down_, near_);
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
    header.credits = static_cast<std::uint16_t>(header.charge() + 4);
    if (header.command > Command::session_setup) header.session_id = kSession;
    if (header.command > Command::tree_disconnect) header.tree_id = kTree;
    near_.frame_from_lan(now, Frame{FrameKind::smb2, message_of(header, body)});
    drain();
    return header.message_id;
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
                           w.u16(36), w.u16(1), w.u16(1), w.u16(0), w.u32(4), w.zeros(16), w.u64(0),
                               w.u16(0x0210);
                         } else if (command == Command::session_setup) {
                           w.u16(25), w.u8(0), w.u8(1), w.u32(0), w.u32(0), w.u16(88), w.u16(0), w.u64(0);
                         } else {
                           w.u16(9), w.u16(0), w.u16(72), w.u16(2), w.u16('x');
                         }
                       }))
          .has_value();
    };
    return done(Command::negotiate) && done(Command::session_setup) && done(Command::tree_connect);
  }
  std::optional<FileId> create(std::string_view name, Disposition disposition, OplockLevel oplock,
                               std::uint32_t options = 0, std::uint32_t access = 0x1F01FF) {
    const std::string wide = utf16(name);
    auto answer = wait(send({.credit_charge = 1, .command = Command::create}, [&](LittleEndianWriter& w) {
      w.u16(57), w.u8(0), w.u8(static_cast<std::uint8_t>(oplock)), w.u32(2), w.u64(0), w.u64(0);
      w.u32(access), w.u32(0x80), w.u32(7), w.u32(static_cast<std::uint32_t>(disposition)), w.u32(options);
      w.u16(120), w.u16(static_cast<std::uint16_t>(wide.size())), w.u32(0), w.u32(0), w.bytes(as_bytes(wide));
    }));
    if (!answer || answer->header().status != Status::success) return std::nullopt;
    return parse_create_response(answer->first().bytes)->file;
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
  void client_ends() {
    near_.lan_ended(now, modules::Ending::closed);
    drain();
  }

 private:
  struct FrameItem {
    Slice bytes;
  };
  struct TwinItem {
    TwinMessage message;
    Slice attached;
  };
  struct EndItem {};
  using Item = std::variant<FrameItem, TwinItem, EndItem>;

  void drain() {
    collect(near_out_, up_, [&](const Slice& bytes) {
      for (const Frame& frame : frames_of(to_client_, bytes)) {
        auto message = parse_message(frame);
        REQUIRE(message.has_value());
        const Header& header = message->header();
        if (header.is_unsolicited()) {
          unsolicited.push_back(*message);
        } else if (!header.is_interim()) {
          REQUIRE(!answers.contains(header.message_id));
          answers.emplace(header.message_id, *message);
        }
      }
    });
    collect(far_out_, down_, [&](const Slice& bytes) { server.receive(bytes); });
  }
  template <class ToLanThen>
  void collect(Outputs& out, std::deque<Item>& stream, ToLanThen&& to_lan) {
    while (auto output = out.poll()) {
      if (aborted) continue;
      if (auto* lan = std::get_if<modules::ToLan>(&*output)) {
        to_lan(lan->bytes);
      } else if (auto* twin = std::get_if<modules::ToTwin>(&*output)) {
        auto message = decode(twin->message.bytes());
        REQUIRE(message.has_value());
        Slice attached;
        if (const std::uint32_t bytes = attached_bytes(*message)) {
          auto next = out.poll();
          REQUIRE(next.has_value());
          attached = std::get<modules::ToStream>(*next).bytes;
          REQUIRE(attached.size() == bytes);
        }
        stream.push_back(TwinItem{std::move(*message), std::move(attached)});
      } else if (auto* frame = std::get_if<modules::ToStream>(&*output)) {
        stream.push_back(FrameItem{frame->bytes});
      } else if (std::holds_alternative<modules::EndStream>(*output)) {
        stream.push_back(EndItem{});
      } else if (std::holds_alternative<modules::Abort>(*output)) {
        aborted = true;
      } else if (std::holds_alternative<modules::EndLan>(*output)) {
        ended = true;
      }
    }
  }
  template <class Half>
  void deliver(std::deque<Item>& stream, Half& half) {
    Item item = std::move(stream.front());
    stream.pop_front();
    if (auto* frame = std::get_if<FrameItem>(&item)) {
      half.frame_from_stream(now, Frame{FrameKind::smb2, frame->bytes});
    } else if (auto* twin = std::get_if<TwinItem>(&item)) {
      half.from_twin(now, twin->message, twin->attached);
    } else {
      half.stream_ended(now, modules::Ending::closed);
    }
  }
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
  std::mt19937 random_;
  Outputs near_out_, far_out_;
  Near near_;
  Far far_;
  std::deque<Item> up_, down_;
  FrameSplitter to_client_{Framing::direct_tcp}, from_server_{Framing::direct_tcp};
  MessageId next_id_ = 0;
};

}  // namespace longhaul::smb::smb2::model
