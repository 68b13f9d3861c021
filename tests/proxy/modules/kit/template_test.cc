// SPDX-License-Identifier: Apache-2.0
// The template: what client and server see is what they would see without it, whatever the order of events.
#include <catch2/catch.hpp>

#include "tests/proxy/modules/kit/template/descriptor.h"
#include "tests/proxy/modules/kit/template/module.h"
#include "tests/proxy/modules/kit/twins.h"

using namespace longhaul;
using kit::Twins;

namespace {

// Answers each line that has come to the server.
class LinesServer {
 public:
  explicit LinesServer(Twins& twins) : twins_(twins) {
    twins.server_sends("lines 1\n");
    twins.on_server_bytes = [this] { answer(); };
  }

 private:
  void answer() {
    for (std::size_t end; (end = twins_.at_server.find('\n', read_)) != std::string::npos; read_ = end + 1) {
      const std::string line = twins_.at_server.substr(read_, end - read_);
      twins_.server_sends(line == "version" ? "lines 1\n" : "you said " + line + "\n");
    }
  }
  Twins& twins_;
  std::size_t read_ = 0;
};

}  // namespace

TEST_CASE("template: a request with a known answer is answered here, in its order") {
  std::uint64_t saved = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Twins twins(lines::kDescriptor, seed);
    LinesServer server(twins);
    std::string wanted = "lines 1\n";
    for (int i = 0; i < 20; ++i) {
      const bool asks_version = twins.random() % 2 == 0;
      twins.client_sends(asks_version ? "version\n" : "hello\n");
      wanted += asks_version ? "lines 1\n" : "you said hello\n";
      if (twins.random() % 3 == 0) twins.run();
    }
    twins.client_ends();
    twins.run();
    twins.server_ends();
    twins.run();
    REQUIRE(twins.at_client == wanted);
    REQUIRE_FALSE(twins.is_reset());
    saved += twins.near.module.counters().round_trips_saved;
  }
  CHECK(saved > 0);
}

TEST_CASE("template: a server that refuses the client has no greeting") {
  Twins twins(lines::kDescriptor, 1);
  twins.server_sends("-busy\n");
  twins.run();
  twins.client_sends("version\n");
  twins.run();
  CHECK(twins.at_server == "version\n");
}

TEST_CASE("template: a line that is too long passes, and everything behind it") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    Twins twins(lines::kDescriptor, seed);
    const std::string all = "hello\n" + std::string(3 * lines::kMaxLineBytes, 'x') + "\nversion\n";
    twins.server_sends("lines 1\n");
    twins.client_sends(all);
    twins.client_ends();
    twins.run();
    CHECK(twins.at_server == all);
    CHECK(twins.at_client == "lines 1\n");
    CHECK_FALSE(twins.is_reset());
    CHECK(twins.near.module.reason() == lines::reasons::lines_not_understood);
  }
}
