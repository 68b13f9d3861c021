// SPDX-License-Identifier: Apache-2.0
// The half of another module on decrypted bytes: when it is chosen, and what becomes of the bytes when none is or it stops.
#include "proxy/modules/plaintext.h"

#include <catch2/catch.hpp>

#include "proxy/modules/http/descriptor.h"
#include "proxy/modules/http/reasons.h"
#include "tests/proxy/modules/kit/twins.h"

namespace longhaul::modules {
namespace {

constexpr TimePoint kNow{std::chrono::hours(1)};

// Has something to say to a twin.
struct Talkative final : Module {
  void on_surroundings(TimePoint, const Surroundings&) override {}
  void from_lan(TimePoint, Slice) override { said = false; }
  void from_stream(TimePoint, Slice) override {}
  void from_twin(TimePoint, Slice) override {}
  void lan_ended(TimePoint, Ending) override {}
  void stream_ended(TimePoint, Ending) override {}
  void twin_stepped_aside(TimePoint) override {}
  void on_timeout(TimePoint) override {}
  std::optional<Output> poll_output() override {
    if (std::exchange(said, true)) return std::nullopt;
    return ToTwin{kit::slice_of("hello")};
  }
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  const Counters& counters() const override { return none; }
  bool said = true;
  Counters none;
};
struct TalkativeInstance final : Instance {
  std::unique_ptr<Module> make_near(const Ends&) override { return nullptr; }
  std::unique_ptr<Module> make_far(const Ends&, const Address&) override { return nullptr; }
  std::unique_ptr<Module> make_plaintext_reader(const Ends&, std::string_view) override {
    return std::make_unique<Talkative>();
  }
};

struct Fixture {
  std::shared_ptr<Instance> http = http::kDescriptor.make({.ahead_bytes = 1 << 20, .daemon_number = 1});
  Plaintext plaintext{{{.recognise = http::kDescriptor.recognise, .instance = http}}, {}, "a.corp"};
  std::string to_server, to_client;
  bool aborted = false;

  Fixture() {
    static const config::FeatureTable table{http::kDescriptor.features};
    told.features.modules = config::ModuleFeatures::standard(table);
    plaintext.on_surroundings(kNow, told);
  }
  void collect(Plaintext& from) {
    const auto add = [](std::string& text, const Slice& bytes) {
      text.append(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.size());
    };
    while (auto output = from.poll_output()) {
      if (const auto* client = std::get_if<ToStream>(&*output)) add(to_server, client->bytes);
      if (const auto* server = std::get_if<ToLan>(&*output)) add(to_client, server->bytes);
      if (std::holds_alternative<EndStream>(*output)) to_server += "|";
      if (std::holds_alternative<EndLan>(*output)) to_client += "|";
      aborted |= std::holds_alternative<Abort>(*output);
    }
  }
  void client(std::string_view text) { plaintext.from_client(kNow, kit::slice_of(text)), collect(plaintext); }
  void at_server(std::string_view text) { plaintext.server_has(kNow, kit::slice_of(text)), collect(plaintext); }
  void server(std::string_view text) { plaintext.from_server(kNow, kit::slice_of(text)), collect(plaintext); }
  Surroundings told;
};

const std::string kGet = "GET / HTTP/1.1\r\nHost: a.corp\r\n\r\n";
const std::string kAnswer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\npage";

}  // namespace

TEST_CASE("plaintext: a module is chosen when the client has said enough, and has every byte of it") {
  Fixture f;
  f.client("GE");
  CHECK_FALSE(f.plaintext.has_reader());
  CHECK(f.plaintext.held_bytes() == 2);
  CHECK(f.to_server.empty());
  f.client(kGet.substr(2));
  CHECK(f.plaintext.has_reader());
  CHECK(f.to_server == kGet);
  f.server(kAnswer);
  CHECK(f.to_client == kAnswer);
  f.client(kGet);
  CHECK(f.to_server == kGet);
  CHECK(f.plaintext.counters().cache_hits == 1);
  CHECK(f.to_client.ends_with("page"));
  CHECK(f.to_client.size() > 2 * kAnswer.size());
}

TEST_CASE("plaintext: without a module everything passes, ends included") {
  const auto ends = [](Fixture& f) {
    f.client("more"), f.server("from the server");
    f.plaintext.client_closed(kNow), f.plaintext.server_closed(kNow);
    f.collect(f.plaintext);
    CHECK_FALSE(f.plaintext.has_reader());
    CHECK(f.to_client.ends_with("from the server|"));
    CHECK(f.plaintext.held_bytes() == 0);
  };
  SECTION("the client speaks another protocol") {
    Fixture f;
    f.client("SSH-2.0-");
    CHECK(f.to_server == "SSH-2.0-");
    ends(f);
    CHECK(f.to_server == "SSH-2.0-more|");
  }
  SECTION("the server speaks first") {
    Fixture f;
    f.server("220 ready\r\n");
    ends(f);
    CHECK(f.to_server == "more|");
  }
  SECTION("the client has said too little") {
    Fixture f;
    f.client("GE");
    f.server("what?");
    CHECK(f.to_server == "GE");
    ends(f);
    CHECK(f.to_server == "GEmore|");
  }
  SECTION("the client ends within its first word") {
    Fixture f;
    f.client("GE");
    f.plaintext.client_closed(kNow);
    f.collect(f.plaintext);
    CHECK(f.to_server == "GE|");
  }
  SECTION("memory is short before one is chosen") {
    Fixture f;
    f.client("GE");
    f.plaintext.give_up_memory(kNow);
    f.collect(f.plaintext);
    CHECK(f.to_server == "GE");
    ends(f);
  }
}

TEST_CASE("plaintext: after its module has stepped aside everything passes, and what it counted stays") {
  Fixture f;
  f.client(kGet), f.server(kAnswer), f.client(kGet);
  const std::string odd = "GET / HTTP/1.1\r\nHost: a.corp\r\nUpgrade: websocket\r\n\r\n";
  f.client(odd);
  CHECK(f.to_server == kGet + odd);
  CHECK(f.plaintext.reason() == Reason(http::reasons::http_upgraded));
  f.server("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  f.server("frames");
  f.client("frames");
  CHECK_FALSE(f.plaintext.has_reader());
  CHECK(f.to_server.ends_with("frames"));
  CHECK(f.to_client.ends_with("\r\n\r\nframes"));
  CHECK(f.plaintext.counters().cache_hits == 1);
  f.plaintext.client_closed(kNow), f.plaintext.server_closed(kNow);
  f.collect(f.plaintext);
  CHECK(f.to_server.ends_with("frames|"));
  CHECK(f.to_client.ends_with("frames|"));
}

TEST_CASE("plaintext: what the server has already is read and not sent again") {
  Fixture f;
  for (std::size_t cut = 0; cut <= kGet.size(); cut += 5) {
    Fixture late;
    late.at_server(kGet.substr(0, cut));
    CHECK(late.to_server.empty());
    late.client(kGet.substr(cut));
    CHECK(late.to_server == kGet.substr(cut));
    late.server(kAnswer);
    late.client(kGet);
    CHECK(late.to_server == kGet.substr(cut));
    CHECK(late.plaintext.counters().cache_hits == 1);
  }
  SECTION("and a request that the cache has is not answered twice") {
    f.client(kGet), f.server(kAnswer);
    Fixture late;
    late.http = f.http;
    late.plaintext = Plaintext({{.recognise = http::kDescriptor.recognise, .instance = f.http}}, {}, "a.corp");
    late.plaintext.on_surroundings(kNow, late.told);
    late.at_server(kGet);
    CHECK(late.to_client.empty());
    late.server(kAnswer);
    CHECK(late.to_client == kAnswer);
  }
  SECTION("and the rest passes where something between is not known") {
    f.at_server(kGet + kGet.substr(0, 9));
    f.plaintext.client_is_unknown(kNow);
    f.collect(f.plaintext);
    CHECK(f.to_server.empty());
    f.client("rest"), f.server(kAnswer), f.server("other");
    CHECK(f.to_server == "rest");
    CHECK(f.to_client == kAnswer + "other");
    CHECK_FALSE(f.plaintext.has_reader());
  }
  SECTION("and the same before a module is chosen") {
    f.at_server("GE");
    f.plaintext.client_is_unknown(kNow);
    f.client("T is not read");
    CHECK(f.to_server == "T is not read");
    CHECK_FALSE(f.plaintext.has_reader());
  }
}

TEST_CASE("plaintext: switched off, every request reaches the server from then on") {
  Fixture f;
  f.client(kGet), f.server(kAnswer);
  f.told.features.modules = {};
  f.plaintext.on_surroundings(kNow, f.told);
  f.collect(f.plaintext);
  f.client(kGet);
  CHECK(f.to_server == kGet + kGet);
  CHECK_FALSE(f.plaintext.has_reader());
}

TEST_CASE("plaintext: a module with a message for a twin ends the connection") {
  Fixture f;
  Plaintext plaintext({{.recognise = [](Bytes) { return Recognised::yes; },
                        .instance = std::make_shared<TalkativeInstance>()}},
                      {}, "a.corp");
  plaintext.on_surroundings(kNow, f.told);
  plaintext.from_client(kNow, kit::slice_of("x"));
  f.collect(plaintext);
  CHECK(f.aborted);
}

}  // namespace longhaul::modules
