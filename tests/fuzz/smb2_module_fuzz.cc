// SPDX-License-Identifier: Apache-2.0
// Both halves of the SMB module between a client and a server of SMB2 that say anything, in any order and cut
// anywhere, and now and then no SMB at all; or one half whose twin says anything. Whatever comes, they keep
// to the contract of modules/module.h; and as long as client and server send whole messages, whole messages
// come out.
#include <deque>
#include <memory>

#include "fuzz/choices.h"
#include "proxy/modules/smb/module.h"
#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;
using longhaul::fuzz::Choices;
using longhaul::fuzz::require;

namespace {

constexpr std::size_t kMostHeld = 64 << 20;

FileId some_file(Choices& choices) {
  const unsigned n = choices.below(6);
  return n == 5 ? kPreviousFile : FileId{n, 100 + n};
}

// What a half puts out, held to the contract.
class Watched {
 public:
  Watched(Side side) : module(side, 445, {}) {}

  SmbModule module;
  std::deque<modules::Output> to_twin;  // bytes, messages and ends, in order
  std::deque<Slice> to_lan;
  bool aborted = false, stream_ended = false, lan_ended = false;
  bool steps_aside = false, passes_to_lan = false;  // to the stream, to the LAN
  bool twin_steps_aside = false;
  bool lan_input_ended = false, stream_input_ended = false;

  void collect() {
    std::size_t held = 0;
    bool holds_rest = false;  // of what it held when it stepped aside
    while (auto output = module.poll_output()) {
      if (auto* lan = std::get_if<modules::ToLan>(&*output)) {
        require(!lan_ended && !passes_to_lan);
        held += lan->bytes.size();
        to_lan.push_back(std::move(lan->bytes));
      } else if (std::holds_alternative<modules::EndLan>(*output)) {
        require(!lan_ended && !passes_to_lan);
        lan_ended = true;
      } else if (std::holds_alternative<modules::Abort>(*output)) {
        aborted = true;
      } else if (auto* aside = std::get_if<modules::StepAside>(&*output)) {
        if (aside->way == modules::Way::to_lan) {
          require(twin_steps_aside && !passes_to_lan && !lan_ended);
          passes_to_lan = true;
        } else {
          require(!steps_aside && !stream_ended);
          steps_aside = holds_rest = true;
          to_twin.push_back(*output);
        }
      } else {
        const auto* message = std::get_if<modules::ToTwin>(&*output);
        if (message && stream_ended) continue;  // dropped
        require(!stream_ended);
        // Behind stepping aside, nothing but what was held.
        require(!steps_aside || (holds_rest && std::holds_alternative<modules::ToStream>(*output)));
        if (message)
          require(!message->message.empty() && message->message.size() <= modules::kMaxTwinMessage);
        if (std::holds_alternative<modules::EndStream>(*output)) stream_ended = true;
        to_twin.push_back(std::move(*output));
      }
      require(held <= kMostHeld);
    }
  }
};

class Fuzzed {
 public:
  explicit Fuzzed(Choices& choices) : choices_(choices) {}

  void run() {
    hostile_twin_ = choices_.below(8) == 7;
    surroundings();
    if (choices_.below(8) != 7) begin();
    while (!choices_.empty() && !near_.aborted && !far_.aborted) step();
    // At the end everything is delivered and both ends close.
    for (int i = 0; i < 100'000 && deliver(); ++i) {
    }
    end(near_), end(far_);
    for (int i = 0; i < 100'000 && deliver(); ++i) {
    }
    if (garbage_ || hostile_twin_ || near_.aborted || far_.aborted) return;
    require(client_.held_bytes() == 0 && server_.held_bytes() == 0);
  }

 private:
  void step() {
    switch (choices_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return client_sends();
      case 5:
      case 6:
      case 7:
        return server_sends();
      case 8:
        now_ += std::chrono::milliseconds(choices_.byte() * 20);
        for (Watched* side : {&near_, &far_}) {
          if (done(*side)) continue;
          side->module.on_timeout(now_);
          side->collect();
        }
        return;
      case 9:
        return surroundings();
      case 10:
        return odd();
      default:
        (void)deliver();
    }
  }

  void begin() {
    Header header = request_header(Command::negotiate, next_++, {.session = 0, .tree = 0});
    from_lan(near_, build_message(header, negotiate_request_body().bytes));
    deliver_all();
    static constexpr Dialect dialects[] = {Dialect::smb_2_0_2, Dialect::smb_2_1, Dialect::smb_3_1_1};
    answer(negotiate_answer_body(dialects[choices_.below(3)]), 30);
    header = request_header(Command::session_setup, next_++, {.session = 0, .tree = 0});
    from_lan(near_, build_message(header, session_setup_request_body().bytes));
    deliver_all();
    answer(session_setup_answer_body(), 100);
    from_lan(near_, build_message(request_header(Command::tree_connect, next_++),
                                  tree_connect_request_body().bytes));
    deliver_all();
    answer(tree_connect_answer_body(), 200);
  }

  // To the first request that waits at the server.
  void answer(const Body& body, std::uint16_t credits) {
    if (at_server_.empty()) return;
    Header header = answer_to(at_server_.front(), Status::success);
    at_server_.pop_front();
    header.session_id = kSession;
    header.tree_id = kTree;
    header.credits = credits;
    from_lan(far_, build_message(header, body.bytes));
    deliver_all();
  }

  void surroundings() {
    modules::Surroundings told;
    const unsigned which = choices_.byte();
    told.line_bytes_per_second = which & 1 ? 6'100'000 : which & 2 ? 100 : 0;
    told.round_trip = which & 4 ? std::chrono::milliseconds(100) : std::chrono::milliseconds(0);
    told.stream_room = which & 8 ? 0 : 1 << 20;
    told.features.smb_read_ahead = !(which & 0x70) || which & 0x10;
    told.features.smb_write_behind = !(which & 0x70) || which & 0x20;
    told.features.smb_metadata = !(which & 0x70) || which & 0x40;
    for (Watched* side : {&near_, &far_}) {
      if (done(*side)) continue;
      side->module.on_surroundings(now_, told);
      side->collect();
    }
  }

  // ---- the client

  std::pair<Command, Body> some_request() {
    const FileId file = some_file(choices_);
    switch (choices_.below(16)) {
      case 0:
      case 1:
      case 2:
        return {Command::read,
                read_request_body(file, choices_.number() % (1ull << 60), choices_.below(40) * 1000u)};
      case 3:
      case 4:
        return {Command::write, write_request_body(file, choices_.byte() * 100u, as_text(choices_.some(40)),
                                                   choices_.below(16) == 15)};
      case 5:
        return {Command::close, close_request_body(file)};
      case 6:
        return {Command::flush, flush_request_body(file)};
      case 7:
        return {Command::lock, lock_request_body(file)};
      case 8:
        return {Command::query_info,
                query_info_request_body(file, static_cast<std::uint8_t>(choices_.below(40)))};
      case 9:
        return {Command::set_info,
                set_info_request_body(file, static_cast<std::uint8_t>(choices_.below(40)))};
      case 10:
        return {Command::query_directory, query_directory_body(file)};
      case 11:
        return {Command::ioctl,
                ioctl_request_body(choices_.below(2) ? fsctl::copychunk : fsctl::pipe_peek, file)};
      case 12:
        return {Command::oplock_break, Body([&](auto& out) {
                  out.u16(24), out.u8(static_cast<std::uint8_t>(choices_.below(2))), out.zeros(5),
                      put(out, file);
                })};
      case 13: {
        static constexpr Command commands[] = {Command::echo, Command::cancel, Command::tree_disconnect,
                                               Command::logoff};
        return {commands[choices_.below(4)], empty_body()};
      }
      default:
        return {Command::create, create_body()};
    }
  }
  Body query_directory_body(const FileId& file) {
    return Body([&](auto& out) {
      out.u16(33), out.u8(file_info::id_both_directory), out.u8(choices_.below(2) ? 1 : 0), out.u32(0);
      put(out, file), out.u16(kHeaderBytes + 32), out.u16(2), out.u32(choices_.byte() * 300u), out.u16('*');
    });
  }
  Body create_body() {
    static constexpr OplockLevel levels[] = {OplockLevel::none, OplockLevel::none, OplockLevel::level_ii,
                                             OplockLevel::exclusive, OplockLevel::batch};
    static constexpr std::string_view names[] = {"a", "b", "A", "folder\\a", "a:stream", ""};
    const std::string name = utf16(names[choices_.below(6)]);
    CreateRequest create{.oplock = levels[choices_.below(5)],
                         .desired_access = choices_.below(4)   ? 0x12019fu
                                           : choices_.below(2) ? 0x80u
                                                               : 0x120089u,
                         .share_access = 7,
                         .disposition = static_cast<Disposition>(choices_.below(8) ? 1 : choices_.below(7)),
                         .options = choices_.below(8) ? 0u : 1u << choices_.below(14),
                         .name = as_bytes(name)};
    const std::string zeros(40, '\0');
    if (choices_.below(8) == 7)
      create.contexts.push_back({as_bytes(create_context::durable), as_bytes(zeros).first(16)});
    const Slice frame = build_create_request({}, create);
    return Body([&](auto& out) { out.bytes(frame.bytes().subspan(kFrameHeadBytes + kHeaderBytes)); });
  }

  void client_sends() {
    const unsigned elements = choices_.below(8) == 7 ? 1 + choices_.below(3) : 1;
    Buffer message;
    for (unsigned i = 0; i < elements; ++i) {
      auto [command, body] = some_request();
      Of of{.charge = static_cast<std::uint16_t>(choices_.below(16) == 15 ? 1 + choices_.below(4) : 1)};
      if (i > 0) of.flags |= header_flags::related;
      if (choices_.below(64) == 63) {
        of.flags |= header_flags::is_signed;
        may_be_reset_ = true;  // where its id is one that was used ahead
      }
      MessageId id = next_;
      if (command == Command::cancel) {
        id = next_ - std::min<MessageId>(next_, choices_.below(8));
      } else if (choices_.below(64) == 63) {
        id = choices_.number();
        may_be_reset_ = true;  // as a server would
      } else {
        next_ += of.charge;
      }
      Header header = request_header(command, id, of);
      header.credits = static_cast<std::uint16_t>(choices_.byte());
      const std::size_t bytes = kHeaderBytes + body.bytes.size(), padded = (bytes + 7) / 8 * 8;
      const bool last = i + 1 == elements;
      header.next_command = last ? 0 : static_cast<std::uint32_t>(padded);
      write_header(header, message);
      append(message, body.bytes);
      if (!last) message.resize(message.size() + padded - bytes, std::byte{0});
    }
    std::byte head[kFrameHeadBytes];
    write_frame_head(message.size(), head);
    from_lan(near_, Slice::joined(head, message));
  }

  // ---- the server

  void server_sends() {
    if (choices_.below(8) == 7) {
      static constexpr OplockLevel levels[] = {OplockLevel::none, OplockLevel::level_ii};
      return from_lan(far_, oplock_break(some_file(choices_), levels[choices_.below(2)]).frame.bytes);
    }
    if (at_server_.empty()) return;
    const std::size_t index = choices_.below(4) ? 0 : choices_.byte() % at_server_.size();
    const Header request = at_server_[index];
    const unsigned kind = choices_.below(8);
    if (kind == 7) {
      Header header = answer_to(request, Status::pending);
      header.flags |= header_flags::async;
      header.async_id = request.message_id;
      header.tree_id = 0;
      return from_lan(far_, build_message(header, error_body().bytes));
    }
    at_server_.erase(at_server_.begin() + static_cast<std::ptrdiff_t>(index));
    static constexpr Status errors[] = {Status::access_denied,           Status::end_of_file,
                                        Status::no_more_files,           Status::disk_full,
                                        Status::network_session_expired, Status::file_closed};
    Header header = answer_to(request, kind == 6 ? errors[choices_.below(6)] : Status::success);
    header.credits = static_cast<std::uint16_t>(choices_.byte());
    from_lan(far_, build_message(header, (kind == 6 ? error_body() : answer_body(request.command)).bytes));
  }
  Body answer_body(Command command) {
    switch (command) {
      case Command::negotiate:
        return negotiate_answer_body(Dialect::smb_2_1);
      case Command::session_setup:
        return session_setup_answer_body();
      case Command::tree_connect:
        return tree_connect_answer_body();
      case Command::create: {
        static constexpr OplockLevel levels[] = {OplockLevel::none, OplockLevel::level_ii,
                                                 OplockLevel::exclusive, OplockLevel::batch};
        Granted granted{.file = some_file(choices_), .oplock = levels[choices_.below(4)]};
        granted.end_of_file = choices_.number();
        if (choices_.below(4) == 3) granted.attributes = file_attributes::directory;
        return create_answer_body(granted);
      }
      case Command::close:
        return close_answer_body();
      case Command::read:
        return read_answer_body(as_text(choices_.some(200)));
      case Command::write:
        return write_answer_body(choices_.byte());
      case Command::query_info:
      case Command::query_directory:
      case Command::change_notify:
        return buffer_answer_body(choices_.below(4) ? listing() : std::string(as_text(choices_.some(120))));
      case Command::oplock_break:
        return Body([&](auto& out) { out.u16(24), out.zeros(6), put(out, some_file(choices_)); });
      default:
        return empty_body();
    }
  }
  // [MS-FSCC] 2.4.8: some entries.
  std::string listing() {
    std::string text;
    for (unsigned entries = 1 + choices_.below(4); entries > 0; --entries) {
      std::string entry(104, '\0');
      entry[60] = 2;
      entry += std::string("n\0", 2);
      if (entries > 1) {
        entry.resize(112, '\0');
        entry[0] = 112;
      }
      text += entry;
    }
    return text;
  }

  // ---- what is seldom

  void odd() {
    switch (choices_.below(8)) {
      case 0: {  // no SMB
        const unsigned side = choices_.below(2);
        const Bytes bytes = choices_.some(100);
        if (bytes.empty() || choices_.below(4)) return;
        garbage_ = true;
        return from_lan(side ? near_ : far_, Slice::copy_of(bytes));
      }
      case 1:
      case 2: {  // a twin of another kind
        if (!hostile_twin_) return;
        Watched& side = choices_.below(2) ? near_ : far_;
        const Bytes bytes = choices_.some(80);
        if (done(side) || side.stream_input_ended) return;
        if (!bytes.empty() && choices_.below(4)) {
          side.module.from_twin(now_, Slice::copy_of(bytes));
        } else if (!bytes.empty()) {
          side.module.from_stream(now_, Slice::copy_of(bytes));
        }
        return side.collect();
      }
      case 3:
        if (choices_.below(8) == 7) end(choices_.below(2) ? near_ : far_);
        return;
      case 4: {  // gone
        Watched& side = choices_.below(2) ? near_ : far_;
        if (choices_.below(8) != 7 || done(side)) return;
        garbage_ = true;
        side.lan_input_ended = true;
        side.module.lan_ended(now_, modules::Ending::reset);
        return side.collect();
      }
      default:
        return;
    }
  }

  // ---- the world around

  static bool done(const Watched& side) { return side.aborted || (side.steps_aside && side.passes_to_lan); }

  void end(Watched& side) {
    if (done(side) || side.lan_input_ended) return;
    side.lan_input_ended = true;
    if (side.steps_aside) {
      side.to_twin.push_back(modules::EndStream{});
      return;
    }
    side.module.lan_ended(now_, modules::Ending::closed);
    side.collect();
  }

  void from_lan(Watched& side, Slice bytes) {
    if (side.aborted || side.lan_input_ended) return;
    while (!bytes.empty()) {
      const std::size_t taken = choices_.below(8) == 7 ? 1 + choices_.byte() % bytes.size() : bytes.size();
      if (side.steps_aside) {
        side.to_twin.push_back(modules::ToStream{bytes.sub(0, taken)});
      } else {
        side.module.from_lan(now_, bytes.sub(0, taken));
        side.collect();
      }
      bytes = bytes.from(taken);
    }
  }

  void deliver_all() {
    for (int i = 0; i < 10'000 && deliver(); ++i) {
    }
  }

  // One thing that is on its way. False: nothing is.
  bool deliver() {
    return deliver(near_, far_) | deliver(far_, near_) | receive(near_, client_, nullptr) |
           receive(far_, server_, &at_server_);
  }
  bool deliver(Watched& from, Watched& to) {
    if (from.to_twin.empty() || from.aborted || to.aborted) return false;
    modules::Output output = std::move(from.to_twin.front());
    from.to_twin.pop_front();
    if (auto* raw = std::get_if<modules::ToStream>(&output)) {
      if (to.passes_to_lan) {
        to.to_lan.push_back(raw->bytes);
      } else {
        to.module.from_stream(now_, raw->bytes);
      }
    } else if (auto* message = std::get_if<modules::ToTwin>(&output)) {
      if (!done(to)) to.module.from_twin(now_, message->message);
    } else if (std::holds_alternative<modules::StepAside>(output)) {
      to.twin_steps_aside = true;
      if (!done(to)) to.module.twin_stepped_aside(now_);
    } else if (!to.stream_input_ended) {
      to.stream_input_ended = true;
      if (!to.passes_to_lan) to.module.stream_ended(now_, modules::Ending::closed);
    }
    to.collect();
    // With honest ends nobody has a reason to give up.
    if (!garbage_ && !hostile_twin_ && !may_be_reset_ && !near_.lan_input_ended && !far_.lan_input_ended)
      require(!to.aborted);
    return true;
  }
  bool receive(Watched& from, FrameSplitter& splitter, std::deque<Header>* requests) {
    if (from.to_lan.empty()) return false;
    Slice bytes = std::move(from.to_lan.front());
    from.to_lan.pop_front();
    if (garbage_ || hostile_twin_) return true;
    splitter.push(std::move(bytes));
    while (true) {
      auto frame = splitter.next();
      require(frame.has_value());
      if (!*frame) return true;
      auto elements = parse_elements((*frame)->message());
      require(elements.has_value());
      if (requests)
        for (const Element& element : *elements)
          if (element.header.command != Command::cancel) requests->push_back(element.header);
    }
  }

  Choices& choices_;
  link::TimePoint now_{};
  Watched near_{Side::near}, far_{Side::far};
  FrameSplitter client_{Framing::direct_tcp}, server_{Framing::direct_tcp};  // what they receive
  std::deque<Header> at_server_;
  MessageId next_ = 0;
  bool garbage_ = false, hostile_twin_ = false, may_be_reset_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Choices choices(std::as_bytes(std::span(data, std::min<std::size_t>(size, 4'000))));
  Fuzzed(choices).run();
  return 0;
}
