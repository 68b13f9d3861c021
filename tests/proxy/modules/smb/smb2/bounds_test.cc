// SPDX-License-Identifier: Apache-2.0
// Work and memory that a client, a server or a foreign twin can cause in a half by sending little: counted,
// not timed.
#include <catch2/catch.hpp>

#include "proxy/modules/smb/module.h"
#include "proxy/modules/smb/smb2/message_ids.h"
#include "tests/proxy/modules/smb/as_told.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"
#include "tests/proxy/modules/twin/numbers.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

FileId nth(std::uint64_t n) { return {n, 1000 + n}; }
OpenKey key_of_nth(std::uint64_t n) { return key_of(kSession, kTree, nth(n)); }

Message granting(Command command, test::AnyId id, const Body& body, std::uint16_t credits) {
  Header header = answer_to(request_header(command, id), Status::success);
  header.credits = credits;
  return message_of(build_message(header, body.bytes));
}

// One half, between a LAN and a twin that the test speaks for.
class OneHalf {
 public:
  explicit OneHalf(Side side) : side_(side), module_(side, {.server_port = 445}, {}) {
    Surroundings told;
    told.line_bytes_per_second = 6'100'000;
    told.round_trip = std::chrono::milliseconds(100);
    told.stream_room = 1 << 24;
    told.features.metadata_relaxed = true;  // this server cannot watch
    module_.on_surroundings(now, as_told(told));
  }

  void client(const Message& message) {
    side_ == Side::near ? module_.from_lan(now, message.frame.bytes)
                        : module_.from_stream(now, message.frame.bytes);
    collect();
  }
  void server(const Message& message) {
    side_ == Side::near ? module_.from_stream(now, message.frame.bytes)
                        : module_.from_lan(now, message.frame.bytes);
    collect();
  }
  void twin(const TwinMessage& message) {
    module_.from_twin(now, encode(message));
    if (const std::size_t attached = attached_bytes(message))
      module_.from_stream(now, Slice::copy_of(Buffer(attached)));
    collect();
  }
  void timer() {
    module_.on_timeout(now);
    collect();
  }

  void connect(std::uint32_t most_bytes = 1 << 20) {
    client(request(Command::negotiate, test::take_next(id_), negotiate_request_body(),
                   {.session = 0, .tree = 0}));
    server(answer(Command::negotiate, 0,
                  negotiate_answer_body(Dialect::smb_2_1, capabilities::large_mtu,
                                        security_mode::signing_enabled, most_bytes)));
    client(request(Command::session_setup, test::take_next(id_), session_setup_request_body(),
                   {.session = 0, .tree = 0}));
    server(granting(Command::session_setup, 1, session_setup_answer_body(), 8000));
    client(request(Command::tree_connect, test::take_next(id_), tree_connect_request_body()));
    server(granting(Command::tree_connect, 2, tree_connect_answer_body(), 8000));
  }
  void open(std::uint64_t n, std::string_view name, const Granted& granted = {},
            const CreateRequest& create = {}) {
    const MessageId id = test::take_next(id_);
    client(create_request(id, name, create));
    Granted of_it = granted;
    of_it.file = nth(n);
    server(granting(Command::create, id, create_answer_body(of_it), 2));
  }
  MessageId ask(Command command, const Body& body) {
    client(request(command, id_, body));
    return test::take_next(id_);
  }

  // Since it was asked last.
  std::size_t take_told() { return std::exchange(told_, 0); }
  std::size_t take_to_lan() { return std::exchange(to_lan_, 0); }
  std::size_t largest_told() const { return largest_told_; }
  bool aborted() const { return aborted_; }
  modules::Module& module() { return module_; }

  TimePoint now{};

 private:
  void collect() {
    while (auto output = module_.poll_output()) {
      if (const auto* message = std::get_if<modules::ToTwin>(&*output)) {
        ++told_;
        largest_told_ = std::max(largest_told_, message->message.size());
      }
      if (std::holds_alternative<modules::ToLan>(*output)) ++to_lan_;
      if (std::holds_alternative<modules::Abort>(*output)) aborted_ = true;
    }
  }

  Side side_;
  SmbModule module_;
  MessageId id_{};
  std::size_t told_ = 0, to_lan_ = 0, largest_told_ = 0;
  bool aborted_ = false;
};

}  // namespace

TEST_CASE("a WRITE to a file with thousands of opens does not cost a message for each") {
  for (const Side side : {Side::near, Side::far}) {
    OneHalf half(side);
    half.connect();
    Lease lease{.state = lease_state::read};
    lease.key[0] = std::byte{1};
    for (std::uint64_t n = 0; n < 4000; ++n)
      half.open(n, "file", {.oplock = OplockLevel::lease, .end_of_file = 1 << 20, .lease = lease});
    half.take_told();
    half.ask(Command::write, write_request_body(nth(1), 0, "x"));
    // Of what was read ahead: of those that share the lease, as far as they are followed.
    CHECK(half.take_told() <= Connection::kMostSharers + 2);
    for (int i = 0; i < 500; ++i) half.ask(Command::write, write_request_body(nth(i), 0, "x"));
    CHECK(half.take_told() <= 500);
    CHECK_FALSE(half.aborted());
  }
}

TEST_CASE("the state of a locally answered open is no longer than its name") {
  OneHalf near(Side::near);
  near.connect();
  near.open(1, "file", {.oplock = OplockLevel::batch},
            {.oplock = OplockLevel::batch, .desired_access = access::read_data | access::read_attributes});
  Message look = create_request(100, "file", {.desired_access = access::read_attributes});
  Buffer long_one;
  append(long_one, look.frame.bytes.bytes());
  long_one.resize(long_one.size() + 300'000);
  write_frame_head(long_one.size() - kFrameHeadBytes, long_one.data());
  near.take_to_lan();
  near.client(message_of(Slice::copy_of(long_one)));
  REQUIRE(near.take_to_lan() == 1);  // it was answered here
  CHECK(near.module().state_bytes() < 10'000);
  near.ask(Command::close, close_request_body(nth(1)));
  CHECK(near.take_told() != 0);
  CHECK(near.largest_told() < 1000);
}

TEST_CASE("a server that announces unlimited sizes is asked for at most what a frame holds") {
  OneHalf near(Side::near);
  near.connect(0xFFFF'FFFF);
  near.open(1, "file", {.oplock = OplockLevel::batch, .end_of_file = 1ull << 40},
            {.oplock = OplockLevel::batch, .desired_access = access::read_data});
  near.take_told();
  near.ask(Command::read, read_request_body(nth(1), 0, 0xFFFF'FFFF));
  CHECK(near.take_told() == 0);  // it is the server's alone
  CHECK(charge_for(0xFFFF'FFFF) == 0xFFFF);
}

TEST_CASE("a promise that is sent twice by the peer's half is an error") {
  OneHalf far(Side::far);
  far.connect();
  far.open(1, "file", {.oplock = OplockLevel::batch});
  far.twin(Promised{.open = key_of_nth(1), .message = 50_number});
  CHECK_FALSE(far.aborted());
  far.twin(Promised{.open = key_of_nth(2), .message = 50_number});
  CHECK(far.aborted());
}

TEST_CASE("a query with a size that we never send is an error from the peer's half") {
  OneHalf far(Side::far);
  far.connect();
  far.twin(Expect{.message = 50_number,
                  .command = static_cast<std::uint16_t>(Command::query_info),
                  .request = Slice::copy_of(Buffer(200'000))});
  CHECK(far.aborted());
}

TEST_CASE("opens beyond the tracked number are counted, and change nothing") {
  OneHalf near(Side::near);
  near.connect();
  std::size_t before = near.module().state_bytes();
  for (std::uint64_t n = 0; n < Connection::kMostOpens + 100; ++n) near.open(n, "file");
  const std::size_t full = near.module().state_bytes();
  CHECK(full > before + Connection::kMostOpens * 100);
  for (std::uint64_t n = 0; n < 100; ++n) near.open(Connection::kMostOpens + 200 + n, "another");
  CHECK(near.module().state_bytes() == full);
}

TEST_CASE("gaps in a client's message ids are tracked as far as outstanding requests can cause them") {
  OneHalf far(Side::far);
  far.connect();
  const auto skip = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n < to; ++n) far.client(request(Command::echo, 10 + 2 * n, empty_body()));
  };
  skip(0, 3000);
  CHECK_FALSE(far.aborted());
  skip(3000, MessageIds::kMostRuns + 100);
  CHECK(far.aborted());
}
