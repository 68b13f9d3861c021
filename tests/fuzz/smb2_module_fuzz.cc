// SPDX-License-Identifier: Apache-2.0
// Both halves of the SMB module between a client and a server of SMB2 that say anything, in any order and cut
// anywhere, and now and then no SMB at all; or one half whose twin says anything. Whatever comes, they keep
// to the contract of modules/module.h; and as long as client and server send whole messages, whole messages
// come out.
#include <deque>
#include <set>

#include "fuzz/smb2_messages.h"
#include "fuzz/target.h"
#include "fuzz/watched_module.h"
#include "tests/proxy/modules/smb/as_told.h"

namespace longhaul::fuzz::smb2_module_target {

namespace {

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
    near_.end(now_), far_.end(now_);
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
          if (side->done()) continue;
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
    Header header = request_header(Command::negotiate, take_next(next_), {.session = 0, .tree = 0});
    from_lan(near_, build_message(header, negotiate_request_body().bytes));
    deliver_all();
    static constexpr Dialect dialects[] = {Dialect::smb_2_0_2, Dialect::smb_2_1, Dialect::smb_3_1_1};
    static constexpr std::uint32_t most[] = {1 << 20, 1 << 20, 1 << 20, 0, 1, 65'536, 17 << 20, 0xFFFF'FFFF};
    const Dialect dialect = dialects[choices_.below(3)];
    answer(negotiate_answer_body(dialect, capabilities::large_mtu, security_mode::signing_enabled,
                                 most[choices_.below(8)]),
           30);
    header = request_header(Command::session_setup, take_next(next_), {.session = 0, .tree = 0});
    from_lan(near_, build_message(header, session_setup_request_body().bytes));
    deliver_all();
    answer(session_setup_answer_body(), 100);
    from_lan(near_, build_message(request_header(Command::tree_connect, take_next(next_)),
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
    smb::Surroundings told;
    const unsigned which = choices_.byte();
    told.line_bytes_per_second = which & 1 ? 6'100'000 : which & 2 ? 100 : 0;
    told.round_trip = which & 4 ? std::chrono::milliseconds(100) : std::chrono::milliseconds(0);
    told.stream_room = which & 8 ? 0 : 1 << 20;
    told.features.read_ahead = !(which & 0x70) || which & 0x10;
    told.features.write_behind = !(which & 0x70) || which & 0x20;
    told.features.metadata_relaxed = which & 0x80;
    told.features.write_behind_cached = which & 0x80;
    told.features.metadata = !(which & 0x70) || which & 0x40;
    for (Watched* side : {&near_, &far_}) {
      if (side->done()) continue;
      side->module.on_surroundings(now_, as_told(told));
      side->collect();
    }
  }

  // ---- the client

  void client_sends() {
    const unsigned elements = choices_.below(8) == 7 ? 1 + choices_.below(3) : 1;
    Buffer message;
    for (unsigned i = 0; i < elements; ++i) {
      auto [command, body] = some_request(choices_);
      Of of{.charge = static_cast<std::uint16_t>(choices_.below(16) == 15 ? 1 + choices_.below(4) : 1)};
      if (i > 0) of.flags |= header_flags::related;
      // One that goes on with a listing of ours among others is reset (near_listings.cc).
      if (elements > 1 && command == Command::query_directory) may_be_reset_ = true;
      if (choices_.below(64) == 63) {
        of.flags |= header_flags::is_signed;
        may_be_reset_ = true;  // where its id is one that was used ahead
      }
      MessageId id = next_;
      if (command == Command::cancel) {
        id = next_ - std::min<std::uint64_t>(next_.number(), choices_.below(8));
      } else if (choices_.below(64) == 63) {
        id = MessageId{choices_.number()};
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
      // What nothing in the message refers to.
      if (last && choices_.below(64) == 63)
        message.resize(message.size() + some_size(choices_), std::byte{0});
      if (!last) message.resize(message.size() + padded - bytes, std::byte{0});
    }
    std::byte head[kFrameHeadBytes];
    write_frame_head(message.size(), head);
    const Slice request = Slice::joined(head, message);
    note_guess(request);
    from_lan(near_, request);
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
      header.async_id = request.message_id.number();
      header.tree_id = 0;
      return from_lan(far_, build_message(header, error_body().bytes));
    }
    at_server_.erase(at_server_.begin() + static_cast<std::ptrdiff_t>(index));
    static constexpr Status errors[] = {Status::access_denied,           Status::end_of_file,
                                        Status::no_more_files,           Status::disk_full,
                                        Status::network_session_expired, Status::file_closed};
    Header header = answer_to(request, kind == 6 ? errors[choices_.below(6)] : Status::success);
    // Then nothing may be changed any more, and a listing that was begun cannot be gone on with.
    if (header.status == Status::network_session_expired) may_be_reset_ = true;
    // The client may have been told already that the file is closed.
    if (kind == 6 && request.command == Command::close) may_be_reset_ = true;
    header.credits = static_cast<std::uint16_t>(choices_.byte());
    if (at_server_.empty()) header.credits = std::max<std::uint16_t>(header.credits, 1);  // 3.3.1.2
    const Slice answer =
        build_message(header, (kind == 6 ? error_body() : answer_body(choices_, request.command)).bytes);
    note_reuse(answer);
    from_lan(far_, answer);
  }

  // A file's number may be given again, which no server does: where writes to the open that had it were
  // promised nobody is left who could tell of them.
  void note_reuse(const Slice& answer) {
    const auto message = parse_message({FrameKind::smb2, answer});
    if (!message || message->header().command != Command::create) return;
    const auto created = parse_create_response(message->first().bytes);
    if (message->header().status == Status::success && created)
      number_unclear_ |= !given_.insert(number_of(created->file)).second;
  }

  // The same where a client closes a number that it was not told yet, and then writes to whoever is given it.
  void note_guess(const Slice& request) {
    const auto elements = parse_elements(request.bytes().subspan(kFrameHeadBytes));
    if (!elements) return;
    for (const Element& element : *elements) {
      if (element.header.command != Command::close) continue;
      const auto close = parse_close_request(element.bytes);
      number_unclear_ |= close && !told_.contains(number_of(close->file));
    }
  }
  void note_told(const Element& answer) {
    if (answer.header.command != Command::create) return;
    if (const auto created = parse_create_response(answer.bytes)) told_.insert(number_of(created->file));
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
        const unsigned kind = choices_.below(4);
        const Bytes bytes = kind < 2 ? choices_.some(80) : Bytes{};
        if (side.done() || side.passes_to_lan || side.stream_input_ended) return;
        if (kind >= 2) {
          const TwinMessage told = twin_message(choices_);
          const Slice said = encode(told);
          paid_bytes += said.size() + attached_bytes(told);
          side.module.from_twin(now_, said);
          if (const std::size_t attached = attached_bytes(told))
            side.module.from_stream(now_, Slice::copy_of(Buffer(attached)));
        } else if (!bytes.empty() && kind == 1) {
          side.module.from_twin(now_, Slice::copy_of(bytes));
        } else if (!bytes.empty()) {
          side.module.from_stream(now_, Slice::copy_of(bytes));
        }
        return side.collect();
      }
      case 3:
        if (choices_.below(8) == 7) (choices_.below(2) ? near_ : far_).end(now_);
        return;
      case 4: {  // gone
        Watched& side = choices_.below(2) ? near_ : far_;
        if (choices_.below(8) != 7 || side.done()) return;
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

  void from_lan(Watched& side, Slice bytes) {
    paid_bytes += bytes.size();
    while (!bytes.empty()) {
      const std::size_t taken = choices_.below(8) == 7 ? 1 + choices_.byte() % bytes.size() : bytes.size();
      side.from_lan(now_, bytes.sub(0, taken));
      bytes = bytes.from(taken);
    }
  }

  void deliver_all() {
    for (int i = 0; i < 10'000 && deliver(); ++i) {
    }
  }

  // One thing that is on its way. False: nothing is.
  bool deliver() {
    // Of a promise that failed before, and of which no answer could tell yet, a reset tells.
    const bool failed = near_.module.counters().promises_failed > 0;
    bool any = kit::deliver(near_, far_, now_);
    any |= kit::deliver(far_, near_, now_);
    // With honest ends neither half has a reason to give up.
    const bool may_owe = failed || (number_unclear_ && near_.module.counters().promises_made > 0);
    if (!garbage_ && !hostile_twin_ && !may_be_reset_ && !may_owe && !near_.lan_input_ended &&
        !far_.lan_input_ended)
      require(!near_.aborted && !far_.aborted);
    any |= receive(near_, client_, nullptr);
    return receive(far_, server_, &at_server_) || any;
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
      for (const Element& element : *elements) {
        if (!requests) note_told(element);
        if (requests && element.header.command != Command::cancel) requests->push_back(element.header);
      }
    }
  }

  Choices& choices_;
  link::TimePoint now_{};
  Watched near_{Side::near}, far_{Side::far};
  FrameSplitter client_{Framing::direct_tcp}, server_{Framing::direct_tcp};  // what they receive
  std::deque<Header> at_server_;
  MessageId next_{};
  bool garbage_ = false, hostile_twin_ = false, may_be_reset_ = false;
  using Number = std::pair<std::uint64_t, std::uint64_t>;
  static Number number_of(const FileId& file) { return {file.persistent_part, file.volatile_part}; }
  std::set<Number> given_, told_;  // files, by CREATE: by the server, and to the client
  bool number_unclear_ = false;
};

}  // namespace

FUZZ_TARGET(smb2_module) {
  Choices choices(std::as_bytes(std::span(data, std::min<std::size_t>(size, 4'000))));
  Fuzzed(choices).run();
  return 0;
}

}  // namespace longhaul::fuzz::smb2_module_target
