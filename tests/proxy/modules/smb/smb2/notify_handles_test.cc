// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/notify_handles.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/lone_far_side.h"

namespace longhaul::smb::smb2::test {
namespace {

const FolderPath kFolder{kSession, kTree, u"DIR"};

// One folder with the number 1, and what is reported of it.
struct WatchedFolder {
  LoneFarSide side;
  TimePoint now = TimePoint{} + std::chrono::seconds(100);
  std::vector<std::string> events;
  NotifyHandles handles{side, [this](TimePoint, std::uint64_t) { events.emplace_back("begun"); },
                        [this](TimePoint, std::uint64_t, std::optional<Bytes> names) {
                          events.push_back(names ? "changed " + std::string(as_text(*names)) : "changed");
                        },
                        [this](TimePoint, std::uint64_t) { events.emplace_back("failed"); }};

  Command first_sent() const { return side.sent.front().request.header().command; }
  void open() { handles.open(now, 1, kFolder); }
  void opened() { side.answer_first(now, create_answer_body({.file = {1, 2}})); }
  void listening() {
    open();
    opened();
    side.begin_last(now);
  }
};

}  // namespace

TEST_CASE("a folder is watched from the moment at which the server confirms it") {
  WatchedFolder folder;
  folder.open();
  REQUIRE(folder.first_sent() == Command::create);
  folder.opened();
  REQUIRE(folder.first_sent() == Command::change_notify);
  CHECK_FALSE(folder.handles.watches(1));
  folder.side.begin_last(folder.now);
  CHECK(folder.handles.watches(1));
  CHECK(folder.events == std::vector<std::string>{"begun"});
}

TEST_CASE("after each answer the handle listens again, a little later") {
  WatchedFolder folder;
  folder.listening();
  folder.side.answer_first(folder.now, buffer_answer_body("names"));
  CHECK(folder.events.back() == "changed names");
  CHECK(folder.handles.watches(1));
  CHECK(folder.side.sent.empty());
  const auto next = folder.handles.next_timeout();
  REQUIRE(next);
  CHECK(*next > folder.now);
  folder.handles.on_timeout(*next - std::chrono::milliseconds(1));
  CHECK(folder.side.sent.empty());
  folder.handles.on_timeout(*next);
  CHECK(folder.first_sent() == Command::change_notify);
  // More changes than the server remembers.
  folder.side.answer_first(*next, error_body(), Status::notify_enum_dir);
  CHECK(folder.events.back() == "changed");
}

TEST_CASE("an answer without an announcement shows that the server watches") {
  WatchedFolder folder;
  folder.open();
  folder.opened();
  folder.side.answer_first(folder.now, buffer_answer_body("names"));
  CHECK(folder.events == std::vector<std::string>{"changed names", "begun"});
}

TEST_CASE("a folder that cannot be opened, or is not confirmed in time, has failed") {
  WatchedFolder refused;
  refused.open();
  refused.side.answer_first(refused.now, error_body(), Status::access_denied);
  CHECK(refused.events == std::vector<std::string>{"failed"});
  CHECK(refused.handles.has_failed(1));
  CHECK_FALSE(refused.handles.next_timeout());

  WatchedFolder silent;
  silent.open();
  silent.opened();
  silent.handles.on_timeout(*silent.handles.next_timeout());
  CHECK(silent.events == std::vector<std::string>{"failed"});
  CHECK(silent.handles.has_failed(1));
  CHECK(silent.side.sent.back().request.header().command == Command::close);
}

TEST_CASE("requests on a folder wait for the CLOSE of its handle") {
  WatchedFolder folder;
  folder.listening();
  folder.handles.stop(1);
  CHECK(folder.handles.has_failed(1));
  folder.side.free_ids = 0;
  folder.handles.close(folder.now, 1);
  CHECK(folder.side.held.size() == 1);
  folder.side.free_ids = 9;
  folder.handles.send_closes(folder.now);
  REQUIRE(folder.side.sent.back().request.header().command == Command::close);
  folder.side.sent.pop_front();  // the CHANGE_NOTIFY, which the CLOSE ends
  folder.side.answer_first(folder.now, close_answer_body());
  CHECK(folder.side.held.empty());
  CHECK(folder.events == std::vector<std::string>{"begun"});
}

TEST_CASE("a handle that is opened after its folder was given up is closed") {
  WatchedFolder folder;
  folder.open();
  folder.handles.close(folder.now, 1);
  CHECK(folder.side.sent.size() == 1);
  folder.opened();
  CHECK(folder.first_sent() == Command::close);
  CHECK(folder.side.held.size() == 1);
}

TEST_CASE("a CLOSE that can never be sent keeps no request waiting") {
  WatchedFolder folder;
  folder.listening();
  folder.side.free_ids = 0;
  folder.handles.close(folder.now, 1);
  CHECK(folder.side.held.size() == 1);
  folder.handles.stream_ended();
  folder.handles.send_closes(folder.now);
  CHECK(folder.side.held.empty());
  CHECK(folder.side.owed == 1);
}

TEST_CASE("a folder fails if no request of ours is sent any more before it is watched") {
  for (const bool is_open : {false, true}) {
    WatchedFolder folder;
    folder.side.free_ids = is_open ? 1 : 0;
    folder.open();
    if (is_open) folder.opened();
    CHECK(folder.events.empty());
    folder.side.connection().sessions().leave_alone(reasons::smb_signed);
    folder.handles.on_ids_freed(folder.now);
    CHECK(folder.events == std::vector<std::string>{"failed"});
    CHECK(folder.side.held.empty());
    CHECK(folder.side.owed == (is_open ? 1 : 0));
  }
}

TEST_CASE("a folder that found no ids is opened and heard when there are some") {
  WatchedFolder folder;
  folder.side.free_ids = 0;
  folder.open();
  CHECK_FALSE(folder.handles.has_failed(1));
  folder.side.free_ids = 1;
  folder.handles.on_ids_freed(folder.now);
  REQUIRE(folder.first_sent() == Command::create);
  folder.opened();
  CHECK(folder.side.sent.empty());
  CHECK_FALSE(folder.handles.next_timeout());  // ids wake it, not time
  folder.side.free_ids = 1;
  folder.handles.on_ids_freed(folder.now);
  CHECK(folder.first_sent() == Command::change_notify);
}

}  // namespace longhaul::smb::smb2::test
