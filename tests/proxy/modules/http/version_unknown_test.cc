// SPDX-License-Identifier: Apache-2.0
// A half before the client's first bytes: what it holds, when it decides, and that the chosen half gets
// everything.
#include "proxy/modules/http/undecided.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/proxy/flows/probe_module.h"

namespace longhaul::http {
namespace {

using namespace std::chrono_literals;
using modules::Probe;

Slice slice(const std::string& text) { return Probe::slice(text); }

class Half final : public Undecided {
 public:
  void on_surroundings(TimePoint, const modules::Surroundings&) override {}
  void from_lan(TimePoint now, Slice client) override {
    half_ ? half_->from_lan(now, std::move(client)) : hold_first(now, client.bytes());
  }
  void from_stream(TimePoint now, Slice server) override {
    half_ ? half_->from_stream(now, std::move(server)) : hold_of_server(now, server.bytes(), may_wait);
  }

  bool may_wait = true;
  Probe* probe = nullptr;
  std::optional<bool> is_2;
  std::string first, of_server;  // when it was chosen

 private:
  void choose(TimePoint, bool of_2) override {
    REQUIRE_FALSE(half_);
    auto made = std::make_unique<Probe>();
    probe = made.get();
    is_2 = of_2;
    first = as_text(first_);
    of_server = as_text(of_server_);
    half_ = std::move(made);
  }
};

const std::string kPreface(h2::kPreface);
// An empty SETTINGS frame.
const std::string kSettings("\0\0\0\4\0\0\0\0\0", 9);

}  // namespace

TEST_CASE("HTTP of unknown version: the preface alone, in any pieces, decides for HTTP/2") {
  Half half;
  for (std::size_t at = 0; at < kPreface.size(); ++at) {
    CHECK_FALSE(half.is_2);
    CHECK(half.held_bytes() == at);
    half.from_lan({}, slice(kPreface.substr(at, 1)));
  }
  CHECK(half.is_2 == true);
  CHECK(half.first == kPreface);
}

TEST_CASE("HTTP of unknown version: the first byte that is not the preface's decides for HTTP/1") {
  for (std::size_t differs = 0; differs < kPreface.size(); ++differs) {
    Half half;
    std::string text = kPreface.substr(0, differs) + "\x7f";
    half.from_lan({}, slice(text));
    CHECK(half.is_2 == false);
    CHECK(half.first == text);
  }
  Half half;
  half.from_lan({}, slice(kPreface + "more"));
  CHECK(half.is_2 == true);
  CHECK(half.first == kPreface + "more");
}

TEST_CASE("HTTP of unknown version: a server's SETTINGS wait for the client, for a second at most") {
  Half half;
  const modules::TimePoint start{};
  half.from_stream(start, slice(kSettings));
  CHECK_FALSE(half.is_2);
  CHECK(half.held_bytes() == kSettings.size());
  REQUIRE(half.next_timeout() == start + 1s);
  SECTION("the client speaks HTTP/2") {
    half.from_lan(start, slice(kPreface));
    CHECK(half.is_2 == true);
    CHECK(half.of_server == kSettings);
  }
  SECTION("the client says nothing") {
    half.from_stream(start + 500ms, slice(kSettings));  // does not postpone it
    half.on_timeout(start + 999ms);
    CHECK_FALSE(half.is_2);
    half.on_timeout(start + 1s);
    CHECK(half.is_2 == false);
    CHECK(half.of_server == kSettings + kSettings);
  }
}

TEST_CASE(
    "HTTP of unknown version: a server that speaks otherwise, too much, or to a client that may not wait, "
    "decides") {
  Half half;
  SECTION("otherwise") { half.from_stream({}, slice("220 ready\r\n")); }
  SECTION("too much") {
    for (int n = 0; n < 8000 && !half.is_2; ++n) {
      CHECK(half.held_bytes() <= 64 * 1024);
      half.from_stream({}, slice(kSettings));
    }
  }
  SECTION("no time") {
    half.may_wait = false;
    half.from_stream({}, slice(kSettings));
  }
  CHECK(half.is_2 == false);
  CHECK(half.first.empty());
}

TEST_CASE("HTTP of unknown version: whatever else happens first decides for HTTP/1, which passes it") {
  Half half;
  half.from_lan({}, slice("PRI"));
  SECTION("a message of the twin") {
    half.from_twin({}, slice("hello"));
    CHECK(half.probe->messages.front() == "hello");
  }
  SECTION("the client's end") {
    half.lan_ended({}, modules::Ending::reset);
    CHECK(half.probe->lan_endings == std::vector{modules::Ending::reset});
  }
  SECTION("the server's end") {
    half.stream_ended({}, modules::Ending::closed);
    CHECK(half.probe->stream_endings == std::vector{modules::Ending::closed});
  }
  SECTION("the twin has stepped aside") {
    half.twin_stepped_aside({});
    CHECK(half.probe->twin_is_aside);
  }
  SECTION("no memory") { half.give_up_memory({}); }
  CHECK(half.is_2 == false);
  CHECK(half.first == "PRI");
}

TEST_CASE(
    "HTTP of unknown version: nothing is said before, and the chosen half speaks for itself afterwards") {
  Half half;
  CHECK_FALSE(half.poll_output());
  CHECK_FALSE(half.next_timeout());
  CHECK(half.queued_bytes() == 0);
  CHECK(half.state_bytes() == 0);
  half.on_room({}, {.lan = true});
  half.on_timeout({});
  CHECK_FALSE(half.is_2);
  half.from_lan({}, slice("GET"));
  REQUIRE(half.probe);
  half.probe->held = 1, half.probe->queued = 2, half.probe->state = 3;
  half.probe->deadline = modules::TimePoint{} + 5s;
  half.probe->say(modules::Abort{});
  CHECK(half.held_bytes() == 1);
  CHECK(half.queued_bytes() == 2);
  CHECK(half.state_bytes() == 3);
  CHECK(half.next_timeout() == modules::TimePoint{} + 5s);
  CHECK(half.poll_output());
  CHECK_FALSE(half.poll_output());
  CHECK(&half.counters() == &half.probe->counters());
}

}  // namespace longhaul::http
