// SPDX-License-Identifier: Apache-2.0
// The transactions over TCP between two threads, while a stranger tries the port.
#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tools/txn/scripts.h"

using namespace longhaul;
using namespace longhaul::txn;

namespace {

// Serves on a thread of its own until it goes away.
class Server {
 public:
  Server(const Workload& workload, const measuring::Pass& pass)
      : socket_(serving_socket(workload, boost::asio::ip::address_v4::loopback(), 0, stop_)),
        thread_([this, workload, pass] {
          try {
            serve(workload, socket_, pass, tally_, stop_);
          } catch (const Stopped&) {
            trouble_.clear();
          } catch (const std::exception& error) {
            trouble_ = error.what();
          }
        }) {}
  ~Server() { end(); }
  std::string end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return trouble_;
  }
  SocketAddress address() const { return socket_.local(); }
  std::uint64_t served() { return tally_.take(0).transactions; }

 private:
  std::atomic<bool> stop_ = false;
  Socket socket_;
  Tally tally_;
  std::string trouble_ = "it never ended";
  std::thread thread_;
};

wan::Descriptor knock(SocketAddress at, std::string_view words) {
  wan::Descriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
  REQUIRE(::connect(socket.get(), at.raw(), at.size) == 0);
  REQUIRE(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(words.size()));
  return socket;
}

}  // namespace

TEST_CASE("a stranger's connection takes no pair's place and disturbs nothing", "[txn]") {
  for (const Script script : {Script::eft_short, Script::eft_long, Script::filetransf_long})
    for (const Calls calls : {Calls::blocking, Calls::non_blocking})
      for (const std::uint32_t send_buffer :
           {7u, 40'000u}) {  // the pass in pieces, and in one with what follows
        Workload workload = standard(script, Protocol::tcp);
        workload.calls = calls;
        workload.file_bytes = script == Script::filetransf_long ? 100'000 : 20;
        workload.send_buffer = send_buffer;
        workload.transactions = 3;
        workload.no_delay = true;
        workload.key = 99;
        const auto pass = measuring::Pass::draw();
        Server server{workload, pass};
        const auto silent = knock(server.address(), "");
        const auto loud = knock(server.address(), std::string(2000, 'x'));
        std::atomic<bool> stop = false;
        Tally tally;
        drive(workload, server.address(), pass, tally, stop);
        CHECK(tally.take(100).response_ns.size() == 3);
        CHECK(server.end().empty());
        CHECK(server.served() == 3);
      }
}

TEST_CASE("a connection with a wrong pass is not served", "[txn]") {
  Workload workload = standard(Script::eft_short, Protocol::tcp);
  Server server{workload, measuring::Pass::draw()};
  std::atomic<bool> stop = false;
  Tally tally;
  CHECK_THROWS(drive(workload, server.address(), measuring::Pass::draw(), tally, stop));
  CHECK(server.end().empty());
  CHECK(server.served() == 0);
}

TEST_CASE("a wrong byte after the pass is Trouble, not a stranger", "[txn]") {
  Workload workload = standard(Script::eft_long, Protocol::tcp);
  const auto pass = measuring::Pass::draw();
  Server server{workload, pass};
  workload.key = 5;  // other content
  std::atomic<bool> stop = false;
  Tally tally;
  CHECK_THROWS(drive(workload, server.address(), pass, tally, stop));
  CHECK_THAT(server.end(), Catch::Contains("wrong bytes arrived"));
}
