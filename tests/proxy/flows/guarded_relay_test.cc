// SPDX-License-Identifier: Apache-2.0
// The relay of flows that a guard reads: bytes, ends and resets cross it as they do the plain relay, which
// takes over where the guard steps aside.
#include "proxy/flows/guarded_relay.h"

#include "proxy/loopback.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

// Answers "?" in the server's place, holds back "(" and what follows until ")", resets at "#", and steps
// aside at "!".
class TestGuard final : public modules::Guard {
 public:
  void from_client(Slice bytes, Out& out) override {
    std::string passing;
    for (const char letter : as_text(bytes.bytes())) {
      if (letter == '?' && !done_) {
        out.to_client.push_back(Slice::copy_of(as_bytes("no.")));
        continue;
      }
      if (letter == '!') done_ = true;
      if (letter == '#') out.reset = true;
      if (letter == '(' || !held_.empty()) held_ += letter;
      if (held_.empty()) passing += letter;
      if (letter == ')') passing += std::exchange(held_, {});
    }
    out.to_server.push_back(Slice::copy_of(as_bytes(passing)));
  }
  void from_server(Slice bytes, Out& out) override { out.to_client.push_back(std::move(bytes)); }
  void client_ended(Out& out) override { let_go(out); }
  void server_ended(Out&) override {}
  // Where it holds "(+", nobody waits for a report.
  bool give_up(Out& out) override {
    if (!held_.starts_with("(+")) return false;
    done_ = true;
    let_go(out);
    return true;
  }
  bool is_done() const override { return done_; }
  std::size_t held_bytes() const override { return held_.size(); }
  std::optional<modules::Reason> reason() const override { return std::nullopt; }

 private:
  void let_go(Out& out) { out.to_server.push_back(Slice::copy_of(as_bytes(std::exchange(held_, {})))); }

  bool done_ = false;
  std::string held_;
};

struct GuardedBench {
  SocketPair relayed, dialled;
  FlowBytes bytes;
  TestGuard guard;
  modules::Memory memory{1 << 20};
  tcp::socket& client() { return relayed.near; }
  tcp::socket& server() { return dialled.far; }
};

asio::awaitable<std::unique_ptr<GuardedBench>> guarded_bench() {
  SocketPair relayed = co_await socket_pair();
  SocketPair dialled = co_await socket_pair("::1");
  co_return std::unique_ptr<GuardedBench>(new GuardedBench{std::move(relayed), std::move(dialled)});
}

// Like a flow that bypasses the link.
asio::awaitable<RelayEnd> relay_all(GuardedBench& b, std::string first = {}) {
  auto end =
      co_await relay_guarded(b.relayed.far, b.dialled.near, b.bytes, as_bytes(first), b.guard, b.memory);
  if (end) co_return *end;
  Relay plain;
  co_return co_await plain.run(b.relayed.far, b.dialled.near, b.bytes);
}

}  // namespace

TEST_CASE("a guarded relay carries bytes both ways, complete and in order, before and after the guard ends") {
  const std::size_t done_at = GENERATE(0u, 1'000'000u, 5'000'003u);
  asio::io_context io;
  run(io, [](std::size_t at) -> asio::awaitable<void> {
    const auto b = co_await guarded_bench();
    const auto letters = [](std::size_t size, std::uint32_t seed) {
      std::string text = pattern(size, seed);
      for (char& letter : text) letter = static_cast<char>('a' + static_cast<unsigned char>(letter) % 26);
      return text;
    };
    std::string up = letters(5'000'003, 1);
    if (at < up.size()) up[at] = '!';
    const std::string down = letters(7'000'001, 2);
    auto [end, from_client, from_server, sent_up, sent_down] =
        co_await (relay_all(*b) && read_all(b->server()) && read_all(b->client()) &&
                  send_and_end(b->client(), up) && send_and_end(b->server(), down));
    CHECK(end == RelayEnd::finished);
    CHECK((from_client.text == up));
    CHECK((from_server.text == down));
    CHECK(b->bytes == FlowBytes{up.size(), sent_down, down.size(), sent_up});
    CHECK(b->memory.used_bytes() == 0);
  }(done_at));
}

TEST_CASE("a guard can answer the client itself, hold bytes back, and release them when the client ends") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    const auto b = co_await guarded_bench();
    const auto talk = [](GuardedBench& w) -> asio::awaitable<void> {
      const std::string before = co_await read_exactly(w.server(), 5);
      CHECK(before == "first");
      co_await write(w.client(), "may I?(half");
      const std::string no = co_await read_exactly(w.client(), 3);
      CHECK(no == "no.");
      co_await send_and_end(w.client(), " a frame");
      const auto rest = co_await read_all(w.server());
      CHECK(rest.text == "may I(half a frame");
      CHECK(rest.error == asio::error::eof);
      co_await send_and_end(w.server(), "answer");
      const auto answer = co_await read_all(w.client());
      CHECK(answer.text == "answer");
      CHECK(answer.error == asio::error::eof);
    };
    // A guard that never is done: the ends cross all the same.
    const auto both_ends = [](GuardedBench& w) -> asio::awaitable<void> {
      const auto end = co_await relay_guarded(w.relayed.far, w.dialled.near, w.bytes, as_bytes("first"),
                                              w.guard, w.memory);
      CHECK(end == RelayEnd::finished);
    };
    co_await (both_ends(*b) && talk(*b));
  }());
}

TEST_CASE("a reset crosses a guarded relay and records which side sent it") {
  const bool is_client = GENERATE(true, false);
  asio::io_context io;
  run(io, [](bool client) -> asio::awaitable<void> {
    const auto b = co_await guarded_bench();
    const auto breaks = [](GuardedBench& w, bool by_client) -> asio::awaitable<Rest> {
      co_await write(by_client ? w.client() : w.server(), "x");
      tcp::socket& other = by_client ? w.server() : w.client();
      const std::string got = co_await read_exactly(other, 1);
      CHECK(got == "x");
      reset(by_client ? w.client() : w.server());
      co_return co_await read_all(other);
    };
    auto [end, rest] = co_await (relay_all(*b) && breaks(*b, client));
    CHECK(end == (client ? RelayEnd::client_reset : RelayEnd::server_reset));
    CHECK(rest.error == asio::error::connection_reset);
  }(is_client));
}

TEST_CASE("a guard that may give up does so where memory is short, and loses nothing") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    const auto b = co_await guarded_bench();
    const std::string said = "(+" + std::string(3 << 20, 'x');
    const auto say = [](GuardedBench& w, const std::string& text) -> asio::awaitable<void> {
      co_await asio::async_write(w.client(), asio::buffer(text), asio::use_awaitable);
      w.client().shutdown(tcp::socket::shutdown_send);
    };
    const auto answer = [](GuardedBench& w) -> asio::awaitable<std::string> {
      const auto all = co_await read_all(w.server());
      w.server().shutdown(tcp::socket::shutdown_send);
      co_return all.text;
    };
    auto [end, at_server, at_client] = co_await (relay_all(*b) && answer(*b) && read_all(b->client()) && say(*b, said));
    CHECK(end != RelayEnd::cancelled);
    CHECK(at_server == said);
  }());
}

TEST_CASE("a guard that wants it, or holds more than memory allows, has both connections reset") {
  const bool wants = GENERATE(false, true);
  asio::io_context io;
  run(io, [](bool by_guard) -> asio::awaitable<void> {
    const auto b = co_await guarded_bench();
    const std::string said = by_guard ? "open #" : '(' + std::string(3 << 20, 'x');
    const auto say = [](GuardedBench& w, std::string text) -> asio::awaitable<void> {
      boost::system::error_code ignored;
      co_await asio::async_write(w.client(), asio::buffer(text),
                                 asio::redirect_error(asio::use_awaitable, ignored));
    };
    auto [end, at_server, at_client] =
        co_await (relay_all(*b) && read_all(b->server()) && read_all(b->client()) && say(*b, said));
    CHECK(end == RelayEnd::cancelled);
    CHECK(at_server.error == asio::error::connection_reset);
    // Where the client was still writing, that has met the reset.
    if (by_guard) CHECK(at_client.error == asio::error::connection_reset);
    CHECK(at_server.text.empty());
  }(wants));
}
