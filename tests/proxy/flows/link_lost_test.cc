// SPDX-License-Identifier: Apache-2.0
// Flows that begin in the moment in which the link is lost: which go past it, which are reset, and that none
// says anything to the server twice.
#include "two_sites.h"

using namespace longhaul;
using namespace longhaul::flows;
using namespace longhaul::testing;

namespace {

// The line between two sites, which can stop moving bytes, and be cut as the kernel of a peer that dies does.
class Line {
 public:
  explicit Line(asio::io_context& io)
      : acceptor_(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)), moves_(io) {}
  ~Line() { cut(); }
  std::uint16_t to(std::uint16_t port) {
    asio::co_spawn(acceptor_.get_executor(), take(port), asio::detached);
    return acceptor_.local_endpoint().port();
  }
  void freeze() { frozen_ = true; }
  void thaw() {
    frozen_ = false;
    moves_.cancel();
  }
  void cut() {
    error_code ignored;
    acceptor_.close(ignored);
    for (auto& socket : sockets_) {
      socket->shutdown(tcp::socket::shutdown_both, ignored);
      socket->close(ignored);
    }
    moves_.cancel();
    is_cut_ = true;
  }

 private:
  asio::awaitable<void> take(std::uint16_t port) {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(kSays);
      if (error) co_return;
      auto near = std::make_shared<tcp::socket>(std::move(socket));
      auto far = std::make_shared<tcp::socket>(acceptor_.get_executor());
      const tcp::endpoint server(asio::ip::make_address("127.0.0.1"), port);
      auto [refused] = co_await far->async_connect(server, kSays);
      if (refused) co_return;
      sockets_.push_back(near);
      sockets_.push_back(far);
      asio::co_spawn(acceptor_.get_executor(), pump(near, far), asio::detached);
      asio::co_spawn(acceptor_.get_executor(), pump(far, near), asio::detached);
    }
  }
  asio::awaitable<void> pump(std::shared_ptr<tcp::socket> from, std::shared_ptr<tcp::socket> to) {
    std::string buffer(65536, '\0');
    for (;;) {
      auto [error, size] = co_await from->async_read_some(asio::buffer(buffer), kSays);
      while (!error && frozen_ && !is_cut_) {
        moves_.expires_after(1h);
        co_await moves_.async_wait(kSays);
      }
      if (error || is_cut_) co_return;
      auto [failed, sent] = co_await asio::async_write(*to, asio::buffer(buffer, size), kSays);
      if (failed) co_return;
    }
  }

  tcp::acceptor acceptor_;
  asio::steady_timer moves_;
  std::vector<std::shared_ptr<tcp::socket>> sockets_;
  bool frozen_ = false, is_cut_ = false;
};

struct LinkLostBench {
  LinkLostBench()
      : acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)),
        line(io),
        sites(io, {}, {}, Reduces::no, [this](std::uint16_t port) { return line.to(port); }) {
    acceptor.non_blocking(true);
  }
  asio::awaitable<void> until(std::function<bool()> done) {
    asio::steady_timer soon(io);
    while (!done()) {
      soon.expires_after(1ms);
      co_await soon.async_wait(asio::use_awaitable);
    }
  }
  link::PeerLink& link() { return *sites.near->links[0]; }
  FlowTable& table() { return sites.near->table; }
  const FlowRecord& flow() { return table().live().begin()->second; }
  asio::awaitable<tcp::socket> connect() { co_return co_await sites.connect(acceptor.local_endpoint()); }
  asio::awaitable<tcp::socket> accept() { co_return co_await acceptor.async_accept(asio::use_awaitable); }
  bool nobody_came() {
    error_code error;
    tcp::socket socket(io);
    acceptor.accept(socket, error);
    return error == asio::error::would_block;
  }

  asio::io_context io;
  tcp::acceptor acceptor;
  Line line;
  TwoSites sites;
};

// On a machine that stood still for a second the link was silent before it was cut.
bool is_past(Reason reason) { return reason == reasons::link_down || reason == reasons::link_silent; }

}  // namespace

TEST_CASE("a flow without any data yet bypasses the link when the link is lost") {
  LinkLostBench bench;
  run(bench.io, [](LinkLostBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    b.line.freeze();
    tcp::socket client = co_await b.connect();
    b.line.cut();
    tcp::socket server = co_await b.accept();
    co_await write(server, "220 ready");
    const std::string greeting = co_await read_exactly(client, 9);
    CHECK(greeting == "220 ready");
    co_await write(client, "HELO");
    const std::string answer = co_await read_exactly(server, 4);
    CHECK(answer == "HELO");
    CHECK(is_past(b.flow().reason));
    CHECK(b.flow().peer.empty());
    CHECK(b.table().totals().started == 1);
    client.close();
    server.close();
    co_await b.until([&] { return b.table().live().empty(); });
  }(bench));
}

TEST_CASE(
    "data that may have reached the server is not sent twice: the client is reset when the link is lost") {
  // A host that stands still for a second finds the link silent, and keeps what it has: then it is tried
  // again.
  bool sent = false;
  for (int tries = 0; tries < 5 && !sent; ++tries) {
    LinkLostBench bench;
    run(bench.io, [](LinkLostBench& b, bool& is_sent) -> asio::awaitable<void> {
      co_await b.sites.link_up();
      b.line.freeze();
      tcp::socket client = co_await b.connect();
      co_await write(client, "order");
      co_await b.until([&] { return b.flow().bytes.lan_in == 5; });
      // It goes at the end of this turn of the loop.
      link::Stream* stream = nullptr;
      co_await b.until([&] {
        stream = b.link().session().find(link::StreamId(1));
        return !stream || stream->writer().output().unsent_bytes() == 0 ||
               b.link().session().liveness().overdue(link::Clock::now());
      });
      // The stream of a flow that was taken back is still there for a moment, and has nothing to send.
      is_sent = stream && stream->writer().output().unsent_bytes() == 0 && !is_past(b.flow().reason);
      if (!is_sent) co_return;
      b.line.cut();
      const Rest rest = co_await read_all(client);
      CHECK(rest.error == asio::error::connection_reset);
      CHECK(b.nobody_came());
      co_await b.until([&] { return b.table().live().empty(); });
      CHECK(b.table().totals().reset == 1);
    }(bench, sent));
  }
  CHECK(sent);
}

TEST_CASE("while an answer of the peer is overdue a new flow keeps its first bytes at this side") {
  const bool lost = GENERATE(true, false);
  LinkLostBench bench;
  run(bench.io, [](LinkLostBench& b, bool is_lost) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    b.line.freeze();
    co_await b.until([&] { return b.link().session().liveness().overdue(link::Clock::now()); });
    tcp::socket client = co_await b.connect();
    co_await write(client, "question");
    if (is_lost) {
      b.line.cut();
    } else {
      b.line.thaw();
    }
    tcp::socket server = co_await b.accept();
    const std::string question = co_await read_exactly(server, 8);
    CHECK(question == "question");
    co_await write(server, "answer");
    const std::string answer = co_await read_exactly(client, 6);
    CHECK(answer == "answer");
    CHECK((is_past(b.flow().reason) || (!is_lost && b.flow().reason == reasons::optimised)));
    CHECK(b.nobody_came());
  }(bench, lost));
}

TEST_CASE("a client that waits for the connect result gets that of the bypassing connection") {
  LinkLostBench bench;
  run(bench.io, [](LinkLostBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    b.line.freeze();
    SocketPair pair = co_await socket_pair();
    Accepted accepted{.socket = std::move(pair.far),
                      .client = pair.near.local_endpoint(),
                      .destination = {.host = "",
                                      .address = b.acceptor.local_endpoint().address(),
                                      .port = b.acceptor.local_endpoint().port()},
                      .answer = [](ConnectOutcome outcome) {
                        return std::string(outcome == ConnectOutcome::connected ? "yes" : "no");
                      }};
    b.sites.near->flows.start(std::move(accepted));
    b.line.cut();
    tcp::socket server = co_await b.accept();
    const std::string outcome = co_await read_exactly(pair.near, 3);
    CHECK(outcome == "yes");
    co_await write(pair.near, "then");
    const std::string then = co_await read_exactly(server, 4);
    CHECK(then == "then");
  }(bench));
}

TEST_CASE("if flows must use the link, those that start while it is being lost are refused") {
  LinkLostBench bench;
  run(bench.io, [](LinkLostBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    b.sites.near->config.intercept.fail = config::Fail::closed;
    b.line.freeze();
    tcp::socket client = co_await b.connect();
    b.line.cut();
    const Rest rest = co_await read_all(client);
    CHECK(rest.error == asio::error::connection_reset);
    CHECK(b.nobody_came());
    co_await b.until([&] { return b.table().live().empty(); });
    CHECK(is_past(b.table().ended().back().record.reason));
  }(bench));
}

TEST_CASE("a flow that was answered waits for the link to return") {
  LinkLostBench bench;
  run(bench.io, [](LinkLostBench& b) -> asio::awaitable<void> {
    co_await b.sites.link_up();
    tcp::socket client = co_await b.connect();
    tcp::socket server = co_await b.accept();
    co_await write(server, "!");
    co_await read_exactly(client, 1);
    b.line.cut();
    co_await b.until([&] { return !b.link().usable(); });
    CHECK(b.flow().reason == reasons::optimised);
    CHECK(b.nobody_came());
    CHECK(b.table().live().size() == 1);
  }(bench));
}
