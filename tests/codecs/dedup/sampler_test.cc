// SPDX-License-Identifier: Apache-2.0
#include "codecs/dedup/sampler.h"

#include <optional>

#include "codecs/dedup/twins.h"

using namespace longhaul;
using namespace longhaul::dedup;

namespace {

std::vector<const Kernels*> all() {
  std::vector<const Kernels*> found;
  for (const Vectors vectors : {Vectors::none, Vectors::avx2, Vectors::avx512})
    if (available(vectors)) found.push_back(&kernels(vectors));
  return found;
}

// With room around it for wide loads.
struct Piece {
  explicit Piece(const std::string& text)
      : bytes(std::string(kOverread, 'x') + text + std::string(kOverread, 'y')) {}
  const std::byte* data() const { return as_bytes(bytes).data() + kOverread; }
  std::string bytes;
};

// As sampler.h says it.
std::vector<std::uint32_t> sampled(const std::byte* data, std::size_t count) {
  std::vector<std::uint32_t> found;
  std::optional<std::size_t> last;
  for (std::size_t p = 0; p < count; ++p) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const unsigned word =
          std::to_integer<unsigned>(data[p + 2 * i]) | std::to_integer<unsigned>(data[p + 2 * i + 1]) << 8;
      sum += word * kSampleFactors[i];
    }
    if ((sum >> 8 & kSampleMask) != kSampleBits) continue;
    if (!last || p - *last >= kSampleDistance) found.push_back(static_cast<std::uint32_t>(p));
    last = p;
  }
  return found;
}

}  // namespace

TEST_CASE("all implementations of the loops match the simple one") {
  const Kernels& plain = kernels(Vectors::none);
  for (const Kernels* fast : all()) {
    INFO(fast->name);
    Random random(1);
    for (int round = 0; round < 400; ++round) {
      const std::size_t size = 1 + random() % (round % 4 ? 300 : 5000);
      std::string text = random() % 2 ? random_bytes(random, size) : random_text(random, size);
      // Runs, and short periods, that may be chosen at each position.
      if (random() % 2) {
        const std::size_t at = random() % size, period = 1 + random() % 12;
        for (std::size_t i = at; i < size && i < at + 700; ++i) text[i] = text[i >= period ? i - period : 0];
      }
      std::string other = text;
      for (std::size_t edits = random() % 6; edits > 0; --edits) other[random() % size] ^= 1;
      const Piece a(text), b(other);

      const std::vector<std::uint32_t> expected = sampled(a.data(), size);
      std::vector<std::uint32_t> found(sample_room(size));
      found.resize(fast->sample(a.data(), size, found.data()));
      REQUIRE(found == expected);
      for (std::size_t i = 1; i < found.size(); ++i) REQUIRE(found[i] - found[i - 1] >= kSampleDistance);

      const std::size_t most = random() % (size + 1);
      std::size_t ahead = 0, behind = 0;
      while (ahead < most && text[ahead] == other[ahead]) ++ahead;
      while (behind < most && text[most - 1 - behind] == other[most - 1 - behind]) ++behind;
      REQUIRE(fast->equal_ahead(a.data(), b.data(), most) == ahead);
      REQUIRE(fast->equal_behind(a.data() + most, b.data() + most, most) == behind);
      const unsigned run = 8 + static_cast<unsigned>(random() % 25);
      REQUIRE(fast->equal_again(a.data(), b.data(), most, run) ==
              plain.equal_again(a.data(), b.data(), most, run));
    }
  }
}

TEST_CASE("a run of equal bytes is found at its start") {
  for (const Kernels* fast : all()) {
    INFO(fast->name);
    for (unsigned run : {8u, 16u, 24u, 32u}) {
      for (std::size_t at = 0; at < 200; ++at) {
        std::string text(300, 'a'), other(300, 'b');
        for (std::size_t i = at; i < at + run; ++i) other[i] = 'a';
        if (at > 20) other[at - 20] = 'a';  // one alone is no run
        const Piece a(text), b(other);
        REQUIRE(fast->equal_again(a.data(), b.data(), 300, run) == at);
        REQUIRE(fast->equal_again(a.data(), b.data(), at + run, run) == at);
        REQUIRE(fast->equal_again(a.data(), b.data(), at + run - 1, run) == at + run - 1);
      }
    }
  }
}

TEST_CASE("about one position in 64 is sampled in random bytes and in text, and none in a long run") {
  Random random(2);
  for (const std::string& text : {random_bytes(random, 1 << 20), random_text(random, 1 << 20)}) {
    const Piece piece(text);
    std::vector<std::uint32_t> found(sample_room(text.size()));
    const std::size_t samples = kernels().sample(piece.data(), text.size() - 7, found.data());
    CHECK(samples > text.size() / kSamplePeriod / 2);
    CHECK(samples < text.size() / kSamplePeriod * 3 / 2);
  }
  for (int value = 0; value < 256; ++value) {
    const Piece piece(std::string(4096, static_cast<char>(value)));
    std::vector<std::uint32_t> found(sample_room(4096));
    CHECK(kernels().sample(piece.data(), 4000, found.data()) <= 1);
  }
}
