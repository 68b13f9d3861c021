// SPDX-License-Identifier: Apache-2.0
// HTTP/1: a client that asks for one stored object many times, and a server that confirms all of them at
// once: the answers leave the near half as the client reads them.
#include <catch2/catch.hpp>
#include <string>

#include "proxy/modules/http/descriptor.h"
#include "tests/proxy/modules/kit/watched.h"

namespace longhaul::http {
namespace {

// Some heads more than what one input may put out.
constexpr std::size_t kObjectBytes = 48 << 10, kMostAtOnce = (4 << 20) + kObjectBytes + (64 << 10);

struct NearHalf {
  NearHalf() {
    static const config::FeatureTable table{kDescriptor.features};
    modules::Surroundings told;
    told.features.modules = config::ModuleFeatures::standard(table);
    half.module.on_surroundings(now, told), half.collect();
  }
  static Slice slice_of(std::string_view text) { return Slice::copy_of(std::as_bytes(std::span(text))); }
  void asks(int times) {
    for (int i = 0; i < times; ++i) half.from_lan(now, slice_of("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  void server_says(std::string_view text) { half.module.from_stream(now, slice_of(text)), half.collect(); }
  void server_confirms(int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n";
    server_says(text);
  }
  void has_room(bool at_lan) { half.module.on_room(now, {.lan = at_lan, .stream = true}), half.collect(); }
  // What has come for the client since the last call.
  std::string read() {
    std::string text;
    for (const Slice& each : std::exchange(half.to_lan, {}))
      text.append(reinterpret_cast<const char*>(each.bytes().data()), each.size());
    return text;
  }
  // The same, and all that comes as it is read; no more than allowed at once.
  std::string read_all() {
    std::string all;
    for (std::string text = read(); !text.empty(); text = read()) {
      CHECK(text.size() <= kMostAtOnce);
      all += text;
      has_room(false);
      CHECK(half.to_lan.empty());
      has_room(true);
    }
    return all;
  }
  void store_object() {
    asks(1);
    server_says("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: " + std::to_string(kObjectBytes) +
                "\r\n\r\n" + std::string(kObjectBytes, 'x'));
    REQUIRE(read().size() > kObjectBytes);
  }

  std::shared_ptr<modules::Instance> instance{
      kDescriptor.make({.ahead_bytes = 8 << 20, .cache_bytes = 8 << 20, .daemon_number = 1})};
  link::TimePoint now{std::chrono::hours(1)};
  kit::Watched half{instance->make_near({})};
};

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

TEST_CASE("http: stored responses that a server confirms all at once wait until the client reads") {
  constexpr int kRequests = 500;  // 24 MB
  for (const bool ends : {false, true}) {
    CAPTURE(ends);
    NearHalf near;
    near.store_object();
    near.asks(kRequests);
    near.server_confirms(kRequests);
    // What follows is behind them.
    near.asks(1);
    near.server_says("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
    if (ends) near.half.module.stream_ended(near.now, modules::Ending::closed), near.half.collect();
    CHECK_FALSE(near.half.lan_ended);
    const std::string all = near.read_all();
    CHECK_FALSE(near.half.aborted);
    CHECK(count_of(all, "HTTP/1.1 200 OK\r\n") == kRequests);
    CHECK(count_of(all, "Cache-Status: longhaul;fwd=stale;fwd-status=304\r\n") == kRequests);
    CHECK(all.size() > kRequests * kObjectBytes);
    CHECK(all.ends_with("\r\n\r\nnone"));
    CHECK(near.half.lan_ended == ends);
    CHECK(near.half.module.counters().cache_validations == kRequests);
    if (ends) continue;
    // The cache goes on.
    near.asks(1);
    near.server_confirms(1);
    CHECK(count_of(near.read(), "HTTP/1.1 200 OK\r\n") == 1);
  }
}

TEST_CASE("http: responses that wait survive a cache that is switched off and a lack of memory") {
  for (const bool is_memory : {false, true}) {
    CAPTURE(is_memory);
    NearHalf near;
    near.store_object();
    near.asks(200);
    near.server_confirms(200);
    is_memory ? near.half.module.give_up_memory(near.now) : near.half.module.on_surroundings(near.now, {});
    near.half.collect();
    CHECK(near.half.steps_aside);
    near.half.module.stream_ended(near.now, modules::Ending::closed), near.half.collect();
    const std::string all = near.read_all();
    CHECK_FALSE(near.half.aborted);
    CHECK(count_of(all, "HTTP/1.1 200 OK\r\n") == 200);
    CHECK(near.half.lan_ended);
  }
}

}  // namespace
}  // namespace longhaul::http
