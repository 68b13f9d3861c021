// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/far_plaintext.h"

#include <deque>

#include "tests/proxy/modules/tls/shaken.h"

namespace longhaul::tls {
namespace {

using Outcome = FarPlaintext::Outcome;
using CloseNotify = FarPlaintext::CloseNotify;

Slice slice_of(const std::string& text) { return Slice::copy_of(std::as_bytes(std::span(text))); }
std::string text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// A module that outputs what a test has for it, and notes what it is told.
struct Script {
  std::deque<modules::Output> outputs;
  std::string heard;
  int made = 0;
};
class Reader final : public modules::Module {
 public:
  explicit Reader(Script& script) : script_(script) { ++script.made; }
  void on_surroundings(modules::TimePoint, const modules::Surroundings&) override {
    script_.heard += "told ";
  }
  void from_lan(modules::TimePoint, Slice bytes) override { note("server", bytes); }
  void from_stream(modules::TimePoint, Slice bytes) override { note("client", bytes); }
  void from_twin(modules::TimePoint, Slice) override {}
  void lan_ended(modules::TimePoint, modules::Ending) override { script_.heard += "server-end "; }
  void stream_ended(modules::TimePoint, modules::Ending) override { script_.heard += "client-end "; }
  void twin_stepped_aside(modules::TimePoint) override {}
  void on_timeout(modules::TimePoint) override {}
  std::optional<modules::Output> poll_output() override {
    if (script_.outputs.empty()) return std::nullopt;
    std::optional<modules::Output> next(std::move(script_.outputs.front()));
    script_.outputs.pop_front();
    return next;
  }
  std::optional<modules::TimePoint> next_timeout() const override { return std::nullopt; }
  std::size_t held_bytes() const override { return 7; }
  const modules::Counters& counters() const override { return counters_; }

 private:
  void note(const char* whose, const Slice& bytes) {
    ((script_.heard += whose) += ":") += text_of(bytes.bytes()) + ' ';
  }
  Script& script_;
  modules::Counters counters_;
};
struct ReaderInstance final : modules::Instance {
  explicit ReaderInstance(Script& s) : script(s) {}
  std::unique_ptr<modules::Module> make_near(const modules::Ends&) override { return nullptr; }
  std::unique_ptr<modules::Module> make_far(const modules::Ends&, const modules::Address&) override {
    return nullptr;
  }
  std::unique_ptr<modules::Module> make_plaintext_far(const modules::Ends&, std::string_view,
                                                      std::string_view protocol,
                                                      const config::ModuleFeatures&) override {
    return protocol == "echo/1" ? std::make_unique<Reader>(script) : nullptr;
  }
  Script& script;
};

struct Conversation {
  explicit Conversation(bool is_read, const std::string& protocols =
                                          "\x06"
                                          "echo/1")
      : shaken(world, *policy->find({}, "a.corp", {}), protocols) {
    if (is_read)
      readers.push_back({.recognise = nullptr, .instance = std::make_shared<ReaderInstance>(script)});
    CHECK(plaintext.begin({}, readers, {}, "a.corp", {}) == Outcome::goes_on);
  }
  // Records to the server are delivered to it; the rest by name, in their order.
  std::string outputs() {
    std::string named;
    while (auto output = out.poll()) {
      if (const auto* server = std::get_if<modules::ToLan>(&*output)) {
        shaken.give(text_of(server->bytes.bytes()));
      } else if (const auto* client = std::get_if<modules::ToStream>(&*output)) {
        named += "stream:" + text_of(client->bytes.bytes()) + ' ';
      } else if (const auto* twin = std::get_if<modules::ToTwin>(&*output)) {
        const auto message = twin::decode<Message>(twin->message.bytes());
        REQUIRE(message.has_value());
        named += std::holds_alternative<Truncated>(*message)  ? "truncated "
                 : std::holds_alternative<OfReader>(*message) ? "of-reader "
                 : std::holds_alternative<Alerted>(*message)  ? "alerted "
                                                              : "? ";
      } else if (std::holds_alternative<modules::EndStream>(*output)) {
        named += "end-stream ";
      } else if (std::holds_alternative<modules::EndLan>(*output)) {
        named += "end-lan ";
      } else {
        named += "? ";
      }
    }
    return named;
  }
  Outcome client_says(const std::string& text) {
    return plaintext.from_client({}, std::as_bytes(std::span(text)));
  }
  Outcome server_says(const std::string& text) {
    shaken.server.say(text);
    return server_spoke();
  }
  Outcome server_spoke() {
    const std::string records = shaken.server.out();
    shaken.upstream.leg().feed(std::as_bytes(std::span(records)));
    return plaintext.from_server({});
  }

  World world;
  std::shared_ptr<const Policy> policy = std::static_pointer_cast<const Policy>(world.policy("a.corp"));
  Script script;
  modules::PlaintextReaders readers;
  Shaken shaken;
  twin::Outputs<Message> out;
  FarPlaintext plaintext{out, shaken.upstream};
};

TEST_CASE("tls far plaintext: without a reader both directions pass, and end with close_notify") {
  for (const bool has_reader_of_another : {false, true}) {
    Conversation one(has_reader_of_another, has_reader_of_another ? ""
                                                                  : "\x06"
                                                                    "echo/1");
    CHECK(one.client_says("question") == Outcome::goes_on);
    CHECK(one.outputs().empty());
    CHECK(one.shaken.server.heard == "question");
    CHECK(one.server_says("answer") == Outcome::goes_on);
    CHECK(one.outputs() == "stream:answer ");
    CHECK(one.plaintext.client_ended({}, CloseNotify::came) == Outcome::goes_on);
    CHECK(one.outputs() == "end-lan ");
    CHECK(one.shaken.server.closed);
    // Nothing of the client follows.
    CHECK(one.client_says("more") == Outcome::goes_on);
    CHECK(one.plaintext.client_ended({}, CloseNotify::came) == Outcome::goes_on);
    CHECK(one.outputs().empty());
    one.shaken.server.close();
    CHECK(one.server_spoke() == Outcome::goes_on);
    CHECK(one.plaintext.server_ended({}) == Outcome::goes_on);
    CHECK(one.outputs() == "end-stream ");
    CHECK(one.script.made == 0);
    CHECK(one.plaintext.counters() == nullptr);
  }
}

TEST_CASE("tls far plaintext: no proper end is invented") {
  Conversation one(false);
  CHECK(one.plaintext.client_ended({}, CloseNotify::missing) == Outcome::goes_on);
  CHECK(one.outputs() == "end-lan ");
  CHECK_FALSE(one.shaken.server.closed);
  CHECK(one.plaintext.server_ended({}) == Outcome::goes_on);
  CHECK(one.outputs() == "truncated end-stream ");
}

TEST_CASE("tls far plaintext: records that do not decrypt end the connection") {
  const bool is_read = GENERATE(false, true);
  Conversation one(is_read);
  const std::string forged = forged_record();
  one.shaken.upstream.leg().feed(std::as_bytes(std::span(forged)));
  CHECK(one.plaintext.from_server({}) == Outcome::failed);
  CHECK_FALSE(one.shaken.upstream.leg().is_flooded());
  ERR_clear_error();
}

TEST_CASE("tls far plaintext: after the server's fatal alert nothing is sent to it") {
  const bool is_read = GENERATE(false, true);
  Conversation one(is_read);
  one.shaken.server.fail();
  CHECK(one.server_spoke() == Outcome::goes_on);
  CHECK(one.outputs() == (is_read ? "" : "alerted end-stream "));
  if (is_read) {  // which may have something to say to either end before it ends the stream
    one.script.outputs.push_back(modules::ToLan{slice_of("its question")});
    one.script.outputs.push_back(modules::ToStream{slice_of("its answer")});
    one.script.outputs.push_back(modules::EndStream{});
  }
  CHECK(one.client_says("question") == Outcome::goes_on);
  CHECK(one.outputs() == (is_read ? "stream:its answer alerted end-stream " : ""));
  CHECK(one.plaintext.from_server({}) == Outcome::goes_on);
  CHECK(one.plaintext.server_ended({}) == Outcome::goes_on);
  if (is_read) one.script.outputs.push_back(modules::EndLan{});
  CHECK(one.plaintext.client_ended({}, CloseNotify::came) == Outcome::goes_on);
  CHECK(one.outputs() == "end-lan ");
  CHECK_FALSE(one.shaken.server.closed);
  if (is_read) CHECK(one.script.heard == "told server-end client:question client-end ");
  ERR_clear_error();
}

TEST_CASE(
    "tls far plaintext: a client's fatal alert is the last that the server gets, and waits for no module") {
  const bool is_read = GENERATE(false, true);
  Conversation one(is_read);
  if (is_read) one.script.outputs.push_back(modules::ToLan{slice_of("question")});
  CHECK(one.client_says("question") == Outcome::goes_on);
  CHECK(one.outputs().empty());
  CHECK(one.plaintext.client_failed(SSL_AD_INTERNAL_ERROR) == Outcome::goes_on);
  CHECK(one.outputs().empty());
  CHECK(one.shaken.server.heard_alert() == SSL_AD_INTERNAL_ERROR);
  CHECK(one.plaintext.client_ended({}, CloseNotify::missing) == Outcome::goes_on);
  CHECK(one.outputs() == "end-lan ");
  CHECK(one.shaken.server.heard == "question");
  CHECK(one.shaken.server.heard_alert() == SSL_AD_INTERNAL_ERROR);
  CHECK_FALSE(one.shaken.server.closed);
  if (is_read) {
    one.script.outputs.push_back(modules::ToLan{slice_of("more")});
    one.script.outputs.push_back(modules::EndLan{});
    CHECK(one.plaintext.on_room({}, {}) == Outcome::goes_on);
    CHECK(one.script.heard == "told client:question client-end ");
  }
  CHECK(one.plaintext.client_failed(SSL_AD_INTERNAL_ERROR) == Outcome::goes_on);
  CHECK(one.outputs().empty());
}

TEST_CASE("tls far plaintext: a server that has failed gets no alert of the client's") {
  Conversation one(false);
  one.shaken.server.fail();
  CHECK(one.server_spoke() == Outcome::goes_on);
  CHECK(one.plaintext.client_failed(SSL_AD_INTERNAL_ERROR) == Outcome::goes_on);
  CHECK(one.plaintext.client_ended({}, CloseNotify::missing) == Outcome::goes_on);
  CHECK(one.outputs() == "alerted end-stream end-lan ");
  CHECK(one.shaken.server.heard_alert() == 0);
  ERR_clear_error();
}

TEST_CASE("tls far plaintext: the module of the negotiated protocol is between client and server") {
  Conversation one(true);
  CHECK(one.script.made == 1);
  CHECK(one.plaintext.held_bytes() == 7);
  CHECK(one.plaintext.counters() != nullptr);
  one.script.outputs.push_back(modules::ToLan{slice_of("its question")});
  one.script.outputs.push_back(modules::ToTwin{slice_of("message")});
  one.script.outputs.push_back(modules::ToStream{slice_of("its answer")});
  CHECK(one.client_says("question") == Outcome::goes_on);
  CHECK(one.outputs() == "of-reader stream:message stream:its answer ");
  CHECK(one.shaken.server.heard == "its question");
  CHECK(one.server_says("answer") == Outcome::goes_on);
  CHECK(one.outputs().empty());
  CHECK(one.script.heard == "told client:question server:answer ");
}

TEST_CASE("tls far plaintext: ends go through the module, which decides when") {
  const auto close_notify = GENERATE(CloseNotify::came, CloseNotify::missing);
  Conversation one(true);
  CHECK(one.plaintext.client_ended({}, close_notify) == Outcome::goes_on);
  CHECK(one.outputs().empty());
  CHECK_FALSE(one.shaken.server.closed);
  one.script.outputs.push_back(modules::EndLan{});
  CHECK(one.plaintext.on_room({}, {}) == Outcome::goes_on);
  CHECK(one.outputs() == "end-lan ");
  CHECK(one.shaken.server.closed == (close_notify == CloseNotify::came));
  // The server is cut off, which is told once.
  CHECK(one.plaintext.server_ended({}) == Outcome::goes_on);
  CHECK(one.plaintext.server_ended({}) == Outcome::goes_on);
  CHECK(one.outputs().empty());
  one.script.outputs.push_back(modules::EndStream{});
  CHECK(one.plaintext.give_up_memory({}) == Outcome::goes_on);
  CHECK(one.outputs() == "truncated end-stream ");
  CHECK(one.script.heard == "told client-end server-end ");
}

TEST_CASE("tls far plaintext: a module that gives up, or says what it must not, ends the connection") {
  Conversation one(true);
  one.script.outputs.push_back(modules::Abort{});
  CHECK(one.plaintext.on_surroundings({}, {}) == Outcome::failed);
  Conversation other(true);
  other.script.outputs.push_back(modules::StepAside{modules::Way::to_stream, {}});
  CHECK(other.client_says("x") == Outcome::failed);
}

}  // namespace
}  // namespace longhaul::tls
