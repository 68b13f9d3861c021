// SPDX-License-Identifier: Apache-2.0
// Both halves of the SMB module between a client that a test leads and the model server, in memory: bytes and
// messages wait in queues until the test moves them, in any order and cut anywhere, so that a seed replays
// every interleaving.
#pragma once
#include <functional>
#include <random>
#include <stdexcept>

#include "proxy/modules/smb/module.h"
#include "tests/proxy/modules/kit/watched.h"
#include "tests/proxy/modules/smb/as_told.h"
#include "tests/proxy/modules/smb/smb2/model_server.h"

namespace longhaul::smb::smb2::test {

// Built on the kit's halves (kit/watched.h), which hold each half to the contract of every module.
class Pair {
 public:
  explicit Pair(unsigned seed, Surroundings surroundings = usual(), const Site& site = {})
      : random(seed),
        near_(std::make_unique<SmbModule>(Side::near, modules::Ends{.server_port = 445}, site)) {
    near.on_surroundings(now, as_told(surroundings));
    far.on_surroundings(now, as_told(surroundings));
  }
  static Surroundings usual() {
    Surroundings surroundings;
    surroundings.line_bytes_per_second = 6'100'000;
    surroundings.round_trip = std::chrono::milliseconds(100);
    surroundings.stream_room = 1 << 24;
    surroundings.features.metadata_relaxed = true;  // this server cannot watch
    surroundings.features.write_behind_cached = true;
    return surroundings;
  }

  std::mt19937 random;
  TimePoint now{};
  ModelServer server;
  bool cut_bytes = false;
  bool reset = false;
  bool client_sees_end = false, server_sees_end = false;

  // The client's side.
  void send(Slice frame) { from_client_.push_back(std::move(frame)); }
  void close() { client_closes_ = true; }
  std::function<void(const Message&)> on_frame = [](const Message&) {};

  // One thing that can happen, chosen at random. False: nothing can.
  bool step() {
    std::vector<std::function<void()>> choices;
    if (!from_client_.empty()) choices.push_back([&] { near_.from_lan(now, taken(from_client_)); });
    if (from_client_.empty() && client_closes_ && !near_.lan_input_ended)
      choices.push_back([&] { near_.end(now); });
    if (!near_.to_twin.empty()) choices.push_back([&] { cross(near_, far_); });
    if (!far_.to_lan.empty()) choices.push_back([&] { server.receive(taken(far_.to_lan)); });
    if (server.has_work())
      choices.push_back([&] {
        std::size_t n = random() % server.waiting();
        server.serve(server.may_overtake(n) ? n : 0);
      });
    if (!server.out.empty())
      choices.push_back([&] {
        Slice frame = server.out.front();
        server.out.pop_front();
        from_server_.push_back(std::move(frame));
      });
    if (!from_server_.empty()) choices.push_back([&] { far_.from_lan(now, taken(from_server_)); });
    if (!far_.to_twin.empty()) choices.push_back([&] { cross(far_, near_); });
    if (!near_.to_lan.empty()) choices.push_back([&] { receive(taken(near_.to_lan)); });
    if (choices.empty()) return false;
    choices[random() % choices.size()]();
    collect();
    if (breaks_have_come()) server.settle_all();
    return true;
  }
  void run() {
    for (int i = 0; i < 1'000'000 && !reset && step(); ++i) {
    }
  }
  // Time passes, and what follows from that happens.
  void pass(std::chrono::milliseconds time) {
    now += time;
    near.on_timeout(now);
    far.on_timeout(now);
    collect();
    run();
  }
  // Every break that the server has told so far has come to the near half.
  bool breaks_have_come() const { return server.out.empty() && from_server_.empty() && far_.to_twin.empty(); }

 private:
  // Now and then a part only.
  std::size_t piece(std::size_t whole) {
    return cut_bytes && whole > 1 && random() % 4 == 0 ? 1 + random() % (whole - 1) : whole;
  }
  Slice taken(std::deque<Slice>& from) {
    Slice& first = from.front();
    const std::size_t size = piece(first.size());
    Slice part = first.sub(0, size);
    if (size < first.size()) {
      first = first.from(size);
    } else {
      from.pop_front();
    }
    return part;
  }
  void cross(kit::Watched& from, kit::Watched& to) {
    const auto* raw = std::get_if<modules::ToStream>(&from.to_twin.front());
    kit::deliver(from, to, now, raw ? piece(raw->bytes.size()) : ~std::size_t{0});
  }
  void collect() {
    near_.collect();
    far_.collect();
    reset = reset || near_.aborted || far_.aborted;
    client_sees_end = near_.lan_ended;
    server_sees_end = far_.lan_ended;
  }
  void receive(Slice bytes) {
    splitter_.push(std::move(bytes));
    while (auto frame = splitter_.next().value()) on_frame(parse_message(*frame).value());
  }

  kit::Watched near_;
  kit::Watched far_{std::make_unique<SmbModule>(Side::far, modules::Ends{.server_port = 445}, Site{})};
  std::deque<Slice> from_client_, from_server_;
  FrameSplitter splitter_{Framing::direct_tcp};
  bool client_closes_ = false;

 public:
  modules::Module& near = near_.module;
  modules::Module& far = far_.module;
};

// Keeps to what it was granted, knows what it asked, and checks what it is told.
class Client {
 public:
  explicit Client(Pair& pair) : pair_(pair) {
    pair.on_frame = [this](const Message& message) { receive(message); };
  }

  struct Answer {
    Status status = Status::pending;
    Message message;
  };
  std::map<MessageId, Answer> answers;
  std::vector<std::string> violations;
  std::vector<OplockBreak> breaks;
  std::function<void(MessageId, const Message&)> on_answer = [](MessageId, const Message&) {};

  std::size_t credits() const { return credits_; }
  MessageId ask(Command command, const Body& body, std::uint16_t charge = 1, SessionId session = kSession) {
    Header header = request_header(command, next_, {.session = session, .charge = charge});
    header.credits = static_cast<std::uint16_t>(charge + 2);
    return send(build_message(header, body.bytes), charge);
  }
  MessageId open(std::string_view name, OplockLevel oplock = OplockLevel::none,
                 std::uint32_t access = access::read_data | access::write_data) {
    CreateRequest create;
    create.oplock = oplock;
    create.desired_access = access;
    return open(name, create);
  }
  MessageId open(std::string_view name, const CreateRequest& create) {
    Message request = create_request(next_, name, create);
    EditedFrame edited(request.frame.bytes);
    edited.set_credits(4);
    return send(std::move(edited).whole(), 1);
  }
  void begin() {
    ask(Command::negotiate, negotiate_request_body(), 1, 0), pair_.run();
    ask(Command::session_setup, session_setup_request_body(), 1, 0), pair_.run();
    ask(Command::tree_connect, tree_connect_request_body()), pair_.run();
  }
  // Runs until it is answered.
  const Message& wait(MessageId id) {
    for (int i = 0; i < 1'000'000 && !answers.contains(id) && !pair_.reset && pair_.step(); ++i) {
    }
    if (!answers.contains(id)) throw std::logic_error("no answer");
    return answers.at(id).message;
  }
  FileId opened(MessageId id) { return parse_create_response(wait(id).first().bytes).value().file; }

 private:
  MessageId send(Slice frame, std::uint16_t charge) {
    MessageId id = next_;
    if (credits_ < charge) violations.push_back("no credits left");
    credits_ -= charge;
    next_ += charge;
    asked_.insert(id);
    pair_.send(std::move(frame));
    return id;
  }
  void receive(const Message& message) {
    const Header& header = message.header();
    if (header.is_unsolicited()) {
      breaks.push_back(std::get<OplockBreak>(parse_break(message.first().bytes).value()));
      return;
    }
    credits_ += header.credits;
    if (header.is_interim()) return;
    if (asked_.erase(header.message_id) == 0)
      violations.push_back("an answer that was not asked: " + describe(message.frame));
    answers.insert_or_assign(header.message_id, Answer{header.status, message});
    on_answer(header.message_id, message);
  }

  Pair& pair_;
  MessageId next_{};
  std::size_t credits_ = 1;
  std::set<MessageId> asked_;
};

}  // namespace longhaul::smb::smb2::test
