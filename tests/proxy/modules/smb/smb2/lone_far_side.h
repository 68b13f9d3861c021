// SPDX-License-Identifier: Apache-2.0
// A far half for tests of one of its parts: records what the part sends to the server, and behind which
// numbers the client's requests wait; the test answers.
#pragma once
#include <deque>
#include <set>

#include "proxy/modules/smb/smb2/parts.h"
#include "tests/proxy/modules/smb/crossing.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {

class LoneFarSide final : public FarSide, private OwnRequests {
 public:
  using Build = OwnRequests::Build;
  struct Sent {
    Message request;
    Reply reply;
    OpenReply open_reply;
    Begun begun;
  };

  LoneFarSide() { connect(connection_); }
  std::size_t free_ids = 64;
  std::deque<Sent> sent;
  std::set<std::uint64_t> held;  // numbers behind which requests wait
  std::size_t owed = 0;
  Surroundings line;

  // Answers the request that was sent first.
  void answer_first(TimePoint now, const Body& body, Status status = Status::success) {
    const Sent first = sent.front();
    sent.pop_front();
    const Header& header = first.request.header();
    const Message answered = test::answer(header.command, header.message_id, body, status);
    if (first.reply) first.reply(now, answered.frame, answered.first());
    if (first.open_reply) first.open_reply(now, answered, {});
  }
  // The server goes on with the last request later.
  void begin_last(TimePoint now) { sent.back().begun(now); }
  std::vector<TwinMessage> told() { return smb::testing::messages_in(out_); }

  Connection& connection() override { return connection_; }
  Outputs& out() override { return out_; }
  modules::Counters& counters() override { return counters_; }
  const Surroundings& surroundings() const override { return line; }
  OwnRequests& server() override { return *this; }
  bool inject(SessionId session, TreeId tree, std::uint16_t, const Build& build, Reply reply) override {
    return send_own(session, tree, build, {.reply = std::move(reply)});
  }
  bool can_inject(std::uint16_t charge) const override { return free_ids >= charge; }
  bool inject_owed(SessionId, TreeId, const Build&) override { return ++owed != 0; }
  bool acknowledge(SessionId, TreeId, const Build&) override { return true; }
  bool inject_awaited(SessionId session, TreeId tree, const Build& build, Reply reply) override {
    return send_own(session, tree, build, {.reply = std::move(reply)});
  }
  bool listen(SessionId session, TreeId tree, const Build& build, Begun begun, Reply reply) override {
    return send_own(session, tree, build, {.reply = std::move(reply), .begun = std::move(begun)});
  }
  void send(TimePoint, const Message&) override {}
  void drop(TimePoint, const Open&) override {}
  Watching watch(TimePoint, Open&) override { return Watching::never; }
  void on_watched(TimePoint, const Open&) override {}
  void on_noticed(TimePoint, const Open&) override {}
  bool inject_open(TimePoint, SessionId session, TreeId tree, const Build& build, const std::vector<Slice>&,
                   OpenReply reply) override {
    return send_own(session, tree, build, {.open_reply = std::move(reply)});
  }
  bool inject_close(TimePoint, SessionId session, TreeId tree, const Build& build, OpenReply reply) override {
    return send_own(session, tree, build, {.open_reply = std::move(reply)});
  }
  void answer(TimePoint, const Header&, Slice) override {}
  void hold_behind(std::uint64_t number, const FileName&) override { held.insert(number); }
  void let_go(TimePoint, std::uint64_t number) override { held.erase(number); }
  bool has_only_path(const Open&) override { return true; }
  void path_is_known(TimePoint, const Open&) override {}
  bool contended(const FileName&) const override { return false; }
  void fence() override {}
  void on_with(TimePoint, const Message&) override {}
  void listed(const OpenKey&, MessageId, std::uint8_t, const Slice&) override {}

 private:
  struct Replies {
    Reply reply = {};
    OpenReply open_reply = {};
    Begun begun = {};
  };
  bool send_own(SessionId session, TreeId tree, const Build& build, Replies replies) {
    if (free_ids == 0 || connection_.sessions().any_untouchable()) return false;
    --free_ids;
    sent.push_back({.request = message_of(build(
                        {.message_id = test::take_next(next_id_), .tree_id = tree, .session_id = session})),
                    .reply = std::move(replies.reply),
                    .open_reply = std::move(replies.open_reply),
                    .begun = std::move(replies.begun)});
    return true;
  }

  Connection connection_;
  Outputs out_;
  modules::Counters counters_;
  MessageId next_id_{1000};
};

}  // namespace longhaul::smb::smb2::test
