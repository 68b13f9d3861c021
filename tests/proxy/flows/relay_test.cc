// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/relay.h"

#include <dirent.h>

#include "proxy/loopback.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

// client <-> [relayed.far, dialled.near] <-> server
struct RelayBench {
  SocketPair relayed;
  SocketPair dialled;
  FlowBytes bytes;
  tcp::socket& client() { return relayed.near; }
  tcp::socket& server() { return dialled.far; }
};

asio::awaitable<RelayBench> bench() {
  SocketPair relayed = co_await socket_pair();
  SocketPair dialled = co_await socket_pair("::1");
  co_return RelayBench{std::move(relayed), std::move(dialled), {}};
}

asio::awaitable<RelayEnd> relay(Relay& relay, RelayBench& b) {
  co_return co_await relay.run(b.relayed.far, b.dialled.near, b.bytes);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

// Writes until the relay and both kernels are full: nothing taken for 50 ms.
asio::awaitable<void> fill_up(tcp::socket& socket) {
  const std::string block(1 << 20, 'x');
  asio::steady_timer quiet(co_await asio::this_coro::executor);
  for (;;) {
    quiet.expires_after(50ms);
    const auto done =
        co_await (socket.async_write_some(asio::buffer(block), kSays) || quiet.async_wait(kSays));
    if (done.index() == 1) co_return;
  }
}

}  // namespace

TEST_CASE("the relay carries bytes both ways at once, complete and in order") {
  const std::size_t pipes = GENERATE(as<std::size_t>(), 128, 0);
  asio::io_context io;
  run(io, [](std::size_t most) -> asio::awaitable<void> {
    Relay shared(most);
    RelayBench b = co_await bench();
    const std::string up = pattern(5'000'003, 1), down = pattern(7'000'001, 2);
    auto [end, from_client, from_server, sent_up, sent_down] =
        co_await (relay(shared, b) && read_all(b.server()) && read_all(b.client()) &&
                  send_and_end(b.client(), up) && send_and_end(b.server(), down));
    CHECK(end == RelayEnd::finished);
    CHECK((from_client.text == up));
    CHECK((from_server.text == down));
    CHECK(from_client.error == asio::error::eof);
    CHECK(b.bytes == FlowBytes{up.size(), sent_down, down.size(), sent_up});
  }(pipes));
}

TEST_CASE("bytes read early from the client are sent first, however long the server takes to connect") {
  const std::size_t pipes = GENERATE(as<std::size_t>(), 128, 0);
  asio::io_context io;
  run(io, [](std::size_t most) -> asio::awaitable<void> {
    Relay shared(most);
    RelayBench b = co_await bench();
    // More than both kernels hold for a server that does not read.
    const std::string first = pattern(20'000'003, 1), up = pattern(50'001, 2), down = pattern(3'000'001, 3);
    const auto relayed = [&]() -> asio::awaitable<RelayEnd> {
      co_return co_await shared.run(b.relayed.far, b.dialled.near, b.bytes, as_bytes(first));
    };
    const auto serve = [&]() -> asio::awaitable<Rest> {
      co_await send_and_end(b.server(), down);
      const auto answer = co_await read_all(b.client());
      CHECK((answer.text == down));  // while nothing of the client's was read
      co_return co_await read_all(b.server());
    };
    auto [end, at_server, sent_up] = co_await (relayed() && serve() && send_and_end(b.client(), up));
    CHECK(end == RelayEnd::finished);
    CHECK((at_server.text == first + up));
    CHECK(b.bytes.lan_in == up.size());
    CHECK(b.bytes.wan_out == first.size() + up.size());
  }(pipes));
}

TEST_CASE("the relay passes on the end of one direction while the other continues") {
  const std::size_t pipes = GENERATE(as<std::size_t>(), 128, 0);
  asio::io_context io;
  run(io, [](std::size_t most) -> asio::awaitable<void> {
    Relay shared(most);
    RelayBench b = co_await bench();
    const auto talk = [](RelayBench& w) -> asio::awaitable<void> {
      co_await send_and_end(w.client(), "question");
      const auto rest = co_await read_all(w.server());
      CHECK(rest.text == "question");  // the end arrived
      co_await send_and_end(w.server(), "answer");
      const auto answer = co_await read_all(w.client());
      CHECK(answer.text == "answer");
    };
    const auto got = co_await (relay(shared, b) && talk(b));
    CHECK(got == RelayEnd::finished);
  }(pipes));
}

TEST_CASE("a client's reset reaches the server as a reset and is recorded as the client's") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared;
    RelayBench b = co_await bench();
    const auto talk = [](RelayBench& w) -> asio::awaitable<void> {
      co_await write(w.client(), "hello");
      const auto got = co_await read_exactly(w.server(), 5);
      CHECK(got == "hello");
      reset(w.client());
      const auto rest = co_await read_all(w.server());
      CHECK(rest.error == asio::error::connection_reset);
    };
    const auto got = co_await (relay(shared, b) && talk(b));
    CHECK(got == RelayEnd::client_reset);
  }());
}

TEST_CASE("bytes sent before a reset arrive before the reset") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared;
    RelayBench b = co_await bench();
    const std::string answer = pattern(200'000);
    const auto talk = [](RelayBench& w, const std::string& text) -> asio::awaitable<void> {
      co_await write(w.client(), "unread");  // makes the server's close a reset
      co_await w.server().async_wait(tcp::socket::wait_read, asio::use_awaitable);
      co_await write(w.server(), text);
      w.server().close();
      const Rest rest = co_await read_all(w.client());
      CHECK((rest.text == text));
      CHECK(rest.error == asio::error::connection_reset);
    };
    const auto got = co_await (relay(shared, b) && talk(b, answer));
    CHECK(got == RelayEnd::server_reset);
  }());
}

TEST_CASE("a reset is noticed even if the other side does not read") {
  const std::size_t pipes = GENERATE(as<std::size_t>(), 128, 0);
  asio::io_context io;
  run(io, [](std::size_t most) -> asio::awaitable<void> {
    Relay shared(most);
    RelayBench b = co_await bench();
    const auto talk = [](RelayBench& w) -> asio::awaitable<void> {
      co_await fill_up(w.client());
      reset(w.client());
    };
    const auto got = co_await (relay(shared, b) && talk(b));
    CHECK(got == RelayEnd::client_reset);
    const auto rest = co_await read_all(b.server());
    CHECK(rest.error == asio::error::connection_reset);
  }(pipes));
}

TEST_CASE("a reset is noticed even after that side ended its direction") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared;
    RelayBench b = co_await bench();
    const auto talk = [](RelayBench& w) -> asio::awaitable<void> {
      co_await send_and_end(w.client(), "question");
      const auto rest = co_await read_all(w.server());
      CHECK(rest.text == "question");
      reset(w.client());
      // No more bytes from the server: only a watch on the client's socket can tell.
      co_await w.server().async_wait(tcp::socket::wait_error, asio::use_awaitable);
    };
    const auto got = co_await (relay(shared, b) && talk(b));
    CHECK(got == RelayEnd::client_reset);
  }());
}

TEST_CASE("a server that closes while the client still sends ends the flow with a reset") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared;
    RelayBench b = co_await bench();
    const auto talk = [](RelayBench& w) -> asio::awaitable<void> {
      w.server().close();
      const std::string block(1000, 'x');
      error_code error;
      while (!error) {
        const auto [write_error, count] = co_await asio::async_write(w.client(), asio::buffer(block), kSays);
        error = write_error;
      }
      CHECK((error == asio::error::connection_reset || error == asio::error::broken_pipe));
    };
    const auto got = co_await (relay(shared, b) && talk(b));
    CHECK(got == RelayEnd::server_reset);
  }());
}

TEST_CASE("urgent bytes stay in the stream and do not disturb the relay") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared;
    RelayBench b = co_await bench();
    const int one = 1;
    for (tcp::socket* socket : {&b.relayed.far, &b.dialled.near})
      ::setsockopt(socket->native_handle(), SOL_SOCKET, SO_OOBINLINE, &one, sizeof one);
    const auto talk = [](RelayBench& w) -> asio::awaitable<void> {
      co_await write(w.client(), "ab");
      w.client().send(asio::buffer("!", 1), tcp::socket::message_out_of_band);
      const auto before_the_end = co_await read_exactly(w.server(), 3);
      CHECK(before_the_end == "ab!");
      w.client().send(asio::buffer("?", 1), tcp::socket::message_out_of_band);
      co_await send_and_end(w.client(), "cd");
      const auto rest_of_it = co_await read_all(w.server());
      CHECK(rest_of_it.text == "?cd");
      w.server().close();
      const auto rest = co_await read_all(w.client());
      CHECK(rest.text == "");
    };
    const auto got = co_await (relay(shared, b) && talk(b));
    CHECK(got == RelayEnd::finished);
  }());
}

TEST_CASE("a cancelled relay resets both sides") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared;
    RelayBench b = co_await bench();
    co_await write(b.client(), "hello");
    const auto until_hello = [](RelayBench& w) -> asio::awaitable<void> {
      const auto got = co_await read_exactly(w.server(), 5);
      CHECK(got == "hello");
    };
    const auto first = co_await (relay(shared, b) || until_hello(b));
    CHECK(first.index() == 1);
    const auto at_server = co_await read_all(b.server());
    CHECK(at_server.error == asio::error::connection_reset);
    const auto at_client = co_await read_all(b.client());
    CHECK(at_client.error == asio::error::connection_reset);
  }());
}

TEST_CASE("idle flows hold no pipes") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared;
    std::vector<RelayBench> flows;
    for (int i = 0; i < 20; ++i) flows.push_back(co_await bench());
    std::vector<RelayEnd> ends;
    const std::size_t before = open_descriptors();
    const auto executor = co_await asio::this_coro::executor;
    for (RelayBench& b : flows)
      asio::co_spawn(executor, relay(shared, b),
                     [&](std::exception_ptr, RelayEnd end) { ends.push_back(end); });
    for (RelayBench& b : flows) co_await write(b.client(), "x");
    for (RelayBench& b : flows) {
      const auto got = co_await read_exactly(b.server(), 1);
      CHECK(got == "x");
    }
    CHECK(open_descriptors() <= before + 2);  // one after the other, so one pipe did for all
    for (RelayBench& b : flows) {
      b.client().close();
      b.server().close();
    }
    while (ends.size() < flows.size()) co_await asio::post(asio::use_awaitable);
    for (const RelayEnd end : ends) CHECK(end == RelayEnd::finished);
  }());
}

TEST_CASE("a stalled flow keeps its pipe, and flows above the limit are copied without one") {
  asio::io_context io;
  run(io, []() -> asio::awaitable<void> {
    Relay shared(1);
    RelayBench stalled = co_await bench();
    RelayBench b = co_await bench();
    const auto talk = [](RelayBench& slow, RelayBench& quick) -> asio::awaitable<bool> {
      co_await fill_up(slow.client());
      const std::size_t before = open_descriptors();
      const std::string up = pattern(3'000'000);
      const auto [sent, rest] = co_await (send_and_end(quick.client(), up) && read_all(quick.server()));
      CHECK((rest.text == up));
      CHECK(open_descriptors() == before);
      CHECK(sent == up.size());
      quick.server().close();
      reset(slow.client());
      co_return true;
    };
    const auto [slow_end, end, told] =
        co_await (relay(shared, stalled) && relay(shared, b) && talk(stalled, b));
    CHECK(slow_end == RelayEnd::client_reset);
    CHECK((told && end == RelayEnd::finished));
  }());
}
