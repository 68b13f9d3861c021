// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd_stage.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>

using namespace longhaul;

namespace {

std::string noise(std::size_t bytes, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string made(bytes, '\0');
  for (char& c : made) c = static_cast<char>(random());
  return made;
}

std::string words(std::size_t bytes, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string made;
  while (made.size() < bytes) made += "word" + std::to_string(random() % 1000) + (random() % 9 ? " " : "\n");
  made.resize(bytes);
  return made;
}

}  // namespace

TEST_CASE("zstd restores its input, at every level, with context anywhere in memory") {
  for (std::uint64_t rate :
       {0ull, 24'000ull, 193'000ull, 6'480'000ull, 20'000'000ull, 125'000'000ull, 1'250'000'000ull}) {
    ZstdEffort effort = zstd_effort(rate);
    for (std::size_t size : {100u, 1000u, 10'000u, 65'536u}) {
      if (effort.level < 0 && size < 10'000) continue;  // the fastest levels hardly look
      std::string history = words(effort.context_for(size) + size, 7);
      Bytes all = as_bytes(history);
      std::string elsewhere = history.substr(effort.context_for(size));
      for (bool joined : {true, false}) {
        Bytes context = all.first(effort.context_for(size));
        Bytes content = joined ? all.subspan(context.size()) : as_bytes(elsewhere);
        for (bool with_context : {true, false}) {
          Bytes before = with_context ? context : Bytes{};
          Buffer out = {std::byte{1}};
          REQUIRE(zstd_compress(effort, before, content, out));
          REQUIRE(out[0] == std::byte{1});
          Buffer plain(size);
          REQUIRE(zstd_decompress(before, Bytes(out).subspan(1), plain) == size);
          CHECK(as_text(plain) == elsewhere);
          // One byte less of room is too little.
          CHECK_FALSE(zstd_decompress(before, Bytes(out).subspan(1), MutableBytes(plain).first(size - 1)));
        }
      }
    }
  }
}

TEST_CASE("a slow line raises the compression level, a busy processor lowers it") {
  CHECK(zstd_effort(193'000).level > zstd_effort(20'000'000).level);
  CHECK(zstd_effort(20'000'000).level > zstd_effort(100'000'000).level);
  CHECK(zstd_effort(100'000'000).level > zstd_effort(1'250'000'000).level);
  std::string text = words(65'536);
  for (std::uint64_t rate : {0ull, 193'000ull, 1'250'000'000ull})
    for (unsigned relief = 0; relief < 12; ++relief) {
      ZstdEffort effort = zstd_effort(rate, relief), less = zstd_effort(rate, relief + 1);
      CHECK((less.level < effort.level || (effort.level == less.level && effort.level == -10)));
      CHECK(less.context_bytes <= effort.context_bytes);
      Buffer out, plain(text.size());
      REQUIRE(zstd_compress(less, {}, as_bytes(text), out));
      REQUIRE(zstd_decompress({}, out, plain) == text.size());
      CHECK(as_text(plain) == text);
    }
}

TEST_CASE("context makes small content smaller, and does not carry over to the next block") {
  std::string a = words(300), b = a;
  b[100] = '#';
  Buffer with, without, again;
  REQUIRE(zstd_compress({.level = 1}, as_bytes(a), as_bytes(b), with));
  CHECK(with.size() < 40);
  REQUIRE(zstd_compress({.level = 1}, {}, as_bytes(b), without));
  CHECK(without.size() > 100);
  Buffer plain(300);
  REQUIRE(zstd_decompress(as_bytes(a), with, plain) == 300u);
  auto got = zstd_decompress({}, with, plain);
  CHECK((!got || as_text(plain) != b));
  REQUIRE(zstd_decompress({}, without, plain) == 300u);
}

TEST_CASE("incompressible data leaves the output unchanged") {
  Buffer out = {std::byte{1}};
  CHECK_FALSE(zstd_compress({}, {}, as_bytes(noise(65'536)), out));
  CHECK_FALSE(zstd_compress({}, {}, as_bytes(noise(100)), out));
  CHECK_FALSE(zstd_compress({}, {}, as_bytes("a"), out));
  CHECK(out.size() == 1);
}

TEST_CASE("only random bytes are classified as random") {
  CHECK(looks_random(as_bytes(noise(65'536))));
  CHECK(looks_random(as_bytes(noise(4096))));
  CHECK_FALSE(looks_random(as_bytes(words(65'536))));
  CHECK_FALSE(looks_random(as_bytes(std::string(65'536, 'x'))));
  std::string floats(65'536, '\0');
  for (std::size_t i = 0; i < floats.size(); i += 4) {
    float value = static_cast<float>(i) * 0.37f;
    std::memcpy(&floats[i], &value, 4);
  }
  CHECK_FALSE(looks_random(as_bytes(floats)));
  std::string base64 = noise(65'536);
  for (char& c : base64) c = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[c & 63];
  CHECK_FALSE(looks_random(as_bytes(base64)));
  int mistaken = 0;
  for (unsigned seed = 0; seed < 500; ++seed) mistaken += !looks_random(as_bytes(noise(8192, seed)));
  CHECK(mistaken < 3);
}

TEST_CASE("a stream that does not shrink is tried ever less often, and at once when its content changes") {
  ZstdTrials trials;
  std::string random = noise(65'536), text = words(65'536);
  int tried = 0;
  for (int i = 0; i < 330; ++i) {
    if (!trials.worthwhile(as_bytes(random))) continue;
    ++tried;
    trials.on_result(false);
  }
  CHECK(tried > 5);
  CHECK(tried < 20);
  CHECK(trials.gave_up());
  CHECK(trials.worthwhile(as_bytes(text)));
  trials.on_result(true);
  CHECK_FALSE(trials.gave_up());
  CHECK(trials.worthwhile(as_bytes(random)));
}

TEST_CASE("any input is either a valid frame or refused, and output stays within its bound") {
  std::mt19937 random(5);
  Buffer good;
  std::string text = words(3000);
  REQUIRE(zstd_compress({}, {}, as_bytes(text), good));
  for (int i = 0; i < 3000; ++i) {
    Buffer bad = good;
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      bad[random() % bad.size()] ^= std::byte(1 << random() % 8);
    if (random() % 2) bad.resize(random() % bad.size());
    Buffer plain(random() % 4000);
    auto got = zstd_decompress(as_bytes(text).first(random() % 1000), bad, plain);
    if (got) CHECK(*got <= plain.size());
  }
}

TEST_CASE("several threads can compress at the same time") {
  std::string text = words(200'000);
  auto work = [&](bool& right) {
    right = true;
    for (int i = 0; i < 100; ++i) {
      std::size_t at = static_cast<std::size_t>(i) * 1000;
      Bytes content = as_bytes(text).subspan(at + 5000, 20'000), context = as_bytes(text).subspan(at, 5000);
      Buffer out, plain(20'000);
      right = right && zstd_compress({}, context, content, out) &&
              zstd_decompress(context, out, plain) == plain.size() && as_text(plain) == as_text(content);
    }
  };
  bool one = false, two = false;
  std::thread other(work, std::ref(one));
  work(two);
  other.join();
  CHECK((one && two));
}
