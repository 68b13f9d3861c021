// SPDX-License-Identifier: Apache-2.0
// The example in examples/modules/redis: replies are those of the server alone, in order, whatever happens when.
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "examples/modules/redis/descriptor.h"
#include "examples/modules/redis/module.h"
#include "tests/proxy/modules/kit/twins.h"

using namespace longhaul;
using kit::Twins;

namespace {

std::string request(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return text;
}

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

// As much of Redis as the tests need: SET, GET and transactions; BAD is refused whenever it comes.
class RedisServer {
 public:
  std::string answer(const std::string& text) {
    redis::Splitter splitter;
    splitter.push(kit::slice_of(text));
    std::string answers;
    while (const auto frame = splitter.next(redis::Direction::requests).value()) {
      const redis::Command command = redis::command_of(*frame);
      const Bytes bytes = frame->bytes.bytes();
      answers += answer_one(command, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    return answers;
  }
  std::map<std::string, std::string> values;

 private:
  std::string answer_one(const redis::Command& command, const std::string& whole) {
    if (command.name == "MULTI") return in_multi_ = true, is_dirty_ = false, "+OK\r\n";
    if (command.name == "EXEC") {
      if (!in_multi_) return "-ERR EXEC without MULTI\r\n";
      in_multi_ = false;
      std::string replies = "*" + std::to_string(queued_.size()) + "\r\n";
      for (const std::string& each : std::exchange(queued_, {}))
        if (!is_dirty_) replies += execute(each);
      return is_dirty_ ? "-EXECABORT Transaction discarded because of previous errors.\r\n" : replies;
    }
    if (full_ && command.name == "SET") return is_dirty_ = true, "-OOM command not allowed\r\n";
    if (!in_multi_) return execute(whole);
    queued_.push_back(whole);
    return "+QUEUED\r\n";
  }
  // The last word of SET is the value, that before the key.
  std::string execute(const std::string& whole) {
    std::vector<std::string> words;
    for (std::size_t at = whole.find("\r\n$"); at != std::string::npos; at = whole.find("\r\n$", at + 3)) {
      const std::size_t begin = whole.find("\r\n", at + 3) + 2;
      words.push_back(whole.substr(begin, whole.find("\r\n", begin) - begin));
    }
    if (words[0] == "SET") return values[words[1]] = words[2], "+OK\r\n";
    return values.contains(words[1]) ? bulk(values[words[1]]) : "$-1\r\n";
  }

  bool in_multi_ = false, is_dirty_ = false;
  std::vector<std::string> queued_;

 public:
  bool full_ = false;  // of memory
};

// Server, behind the halves.
struct RedisBench {
  explicit RedisBench(unsigned seed) : twins(redis::kDescriptor, seed) {
    twins.on_server_bytes = [this] {
      // Whole requests only: the halves pass on nothing else.
      const std::string all = twins.at_server.substr(answered_);
      answered_ = twins.at_server.size();
      twins.server_sends(server.answer(all));
    };
  }
  Twins twins;
  RedisServer server;

 private:
  std::size_t answered_ = 0;
};

std::vector<std::string> random_requests(std::mt19937& random) {
  std::vector<std::string> all;
  const std::vector<std::vector<std::string>> choices{
      {"MULTI"}, {"SET", "a", std::to_string(random() % 100)}, {"GET", "a"}, {"EXEC"}, {"SET", "b", "x"}, {"get", "b"}};
  for (int i = 0; i < 40; ++i) all.push_back(request(choices[random() % choices.size()]));
  return all;
}

}  // namespace

TEST_CASE("redis example: a client that waits for each reply gets those of the server, and saves round trips") {
  std::uint64_t saved = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    RedisBench bench(seed);
    RedisServer alone;
    std::string wanted;
    for (const std::string& each : random_requests(bench.twins.random)) {
      wanted += alone.answer(each);
      bench.twins.client_sends(each);
      if (seed % 2 == 0 || bench.twins.random() % 4 == 0) bench.twins.run();
    }
    bench.twins.client_ends();
    bench.twins.run();
    REQUIRE(bench.twins.at_client == wanted);
    CHECK(bench.server.values == alone.values);
    CHECK_FALSE(bench.twins.is_reset());
    const auto& near = bench.twins.near.module.counters();
    const auto& far = bench.twins.far.module.counters();
    CHECK(near.promises_made == far.promises_kept);
    saved += near.round_trips_saved;
  }
  CHECK(saved > 100);
}

TEST_CASE("redis example: a command that the server refuses to queue fails EXEC, and nothing is executed") {
  RedisBench bench(3);
  const auto says = [&](const std::vector<std::string>& words) {
    const std::size_t before = bench.twins.at_client.size();
    bench.twins.client_sends(request(words));
    bench.twins.run();
    return bench.twins.at_client.substr(before);
  };
  CHECK(says({"MULTI"}) == "+OK\r\n");
  CHECK(says({"SET", "a", "1"}) == "+QUEUED\r\n");
  bench.server.full_ = true;
  CHECK(says({"SET", "b", "2"}) == "+QUEUED\r\n");
  CHECK(says({"EXEC"}).starts_with("-EXECABORT"));
  CHECK(bench.server.values.empty());
  CHECK(bench.twins.far.module.counters().promises_failed == 1);
  CHECK(bench.twins.far.module.counters().late_errors == 1);
}

TEST_CASE("redis example: behind a reply that is not understood, only the server answers") {
  RedisBench bench(5);
  bench.twins.client_sends(request({"MULTI"}));
  bench.twins.run();
  bench.twins.server_sends("?what\r\n");
  bench.twins.run();
  bench.twins.client_sends(request({"GET", "a"}));
  bench.twins.run();
  CHECK(bench.twins.at_client == "+OK\r\n?what\r\n+QUEUED\r\n");
  CHECK(bench.twins.near.module.counters().round_trips_saved == 0);
}

TEST_CASE("redis example: what it does not know waits for the server") {
  RedisBench bench(4);
  bench.twins.client_sends(request({"MULTI"}));
  bench.twins.run();
  for (const auto& words : {std::vector<std::string>{"EVAL", "x"}, {"GET"}, {"GET", "a", "b"}}) {
    bench.twins.client_sends(request(words));
    bench.twins.run();
  }
  CHECK(bench.twins.near.module.counters().round_trips_saved == 0);
}

TEST_CASE("redis example: publish and subscribe, and what is no RESP, pass unchanged") {
  for (const std::string& text : {request({"SUBSCRIBE", "news"}), std::string("PING\r\n"), std::string("*1\r\n$9\r\n")})
    for (unsigned seed = 0; seed < 30; ++seed) {
      INFO(text << " seed " << seed);
      Twins twins(redis::kDescriptor, seed);
      std::string wanted;
      twins.on_server_bytes = [&] {
        twins.server_sends("*3\r\n$7\r\nmessage\r\n:1\r\n+x\r\n");
        wanted += "*3\r\n$7\r\nmessage\r\n:1\r\n+x\r\n";
      };
      twins.client_sends(text);
      twins.run();
      twins.client_ends();
      twins.run();
      twins.server_ends();
      twins.run();
      CHECK(twins.at_server == text);
      CHECK(twins.at_client == wanted);
      CHECK_FALSE(twins.is_reset());
    }
}

TEST_CASE("redis example: requests and replies are cut the same however they come") {
  const std::string replies =
      "+OK\r\n-ERR no\r\n:1\r\n$-1\r\n$4\r\na\r\nb\r\n*-1\r\n*0\r\n*2\r\n*1\r\n$0\r\n\r\n:7\r\n%1\r\n+k\r\n+v\r\n_\r\n";
  const std::vector<std::size_t> sizes{5, 9, 4, 5, 10, 5, 4, 18, 12, 3};
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    redis::Splitter splitter;
    std::vector<std::size_t> got;
    for (std::size_t at = 0; at < replies.size();) {
      const std::size_t size = std::min<std::size_t>(replies.size() - at, seed == 0 ? 1 : 1 + random() % 9);
      splitter.push(kit::slice_of(std::string_view(replies).substr(at, size)));
      at += size;
      while (const auto frame = splitter.next(redis::Direction::replies).value()) got.push_back(frame->bytes.size());
    }
    INFO("seed " << seed);
    CHECK(got == sizes);
    CHECK(splitter.held_bytes() == 0);
  }
}

TEST_CASE("redis example: it is known by its first bytes") {
  using modules::Recognised;
  const auto says = [](std::string_view text) {
    return redis::kDescriptor.recognise(std::as_bytes(std::span(text)));
  };
  const std::string whole = "*12\r\n$4\r\n";
  for (std::size_t size = 0; size < 6; ++size) CHECK(says(whole.substr(0, size)) == Recognised::too_few);
  CHECK(says(whole) == Recognised::yes);
  for (const char* other : {"GET / HTTP/1.1", "*a", "*0\r\n$", "*1\n", "*1\r\n+OK"}) CHECK(says(other) == Recognised::no);
}
