// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/send_stream.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "numbers.h"

using namespace longhaul;
using namespace longhaul::link;

namespace {

Slice bytes_of(std::size_t size, std::uint64_t start) {
  Buffer bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(std::byte((start + i) & 0xff));
  return Slice::copy_of(bytes);
}

// The obvious way: for each byte, on which carrier it was sent last, or that it has to go.
struct Model {
  static constexpr CarrierId kUnsent{};
  std::map<std::uint64_t, CarrierId> kept;
  std::uint64_t end = 0, sent_end = 0;
};

}  // namespace

TEST_CASE("the bytes to send are right after any order of sending, acknowledgement and loss") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    SendStream stream;
    Model model;
    CarrierId carrier{1};
    std::set<CarrierId> alive{CarrierId(1)};
    for (int step = 0; step < 600; ++step) {
      INFO("seed " << seed << ", step " << step);
      switch (random() % 7) {
        case 6: {
          std::uint64_t begin = random() % (model.end + 1), size = random() % 30;
          CarrierId on(static_cast<std::uint32_t>(1 + random() % carrier.number()));
          stream.on_lost(StreamRange::of({begin, begin + size}), on);
          for (auto& [position, last] : model.kept)
            if (position >= begin && position < begin + size && last == on) last = Model::kUnsent;
          break;
        }
        case 0: {
          std::size_t size = random() % 50;
          stream.append(bytes_of(size, model.end));
          for (std::size_t i = 0; i < size; ++i) model.kept[model.end++] = Model::kUnsent;
          break;
        }
        case 1:
        case 2: {
          std::size_t limit = random() % 40;
          auto range = stream.next(limit);
          auto first = std::find_if(model.kept.begin(), model.kept.end(),
                                    [](const auto& b) { return b.second == Model::kUnsent; });
          REQUIRE(range.has_value() == (limit > 0 && first != model.kept.end()));
          if (!range) break;
          REQUIRE(range->begin.number() == first->first);
          REQUIRE(range->size() <= limit);
          REQUIRE(range->size() > 0);
          Buffer copied;
          stream.copy(*range, copied);
          REQUIRE(copied.size() == range->size());
          const auto [begin, end] = range->numbers();
          for (std::uint64_t i = begin; i < end; ++i) {
            REQUIRE(copied[i - begin] == std::byte(i & 0xff));
            // Nothing goes twice that is neither lost nor new.
            REQUIRE(model.kept.at(i) == Model::kUnsent);
            model.kept[i] = carrier;
          }
          model.sent_end = std::max(model.sent_end, end);
          stream.on_sent(*range, carrier);
          break;
        }
        case 3: {
          std::uint64_t offset = random() % (model.end + 20);
          std::size_t freed = stream.on_acknowledged(StreamOffset(offset));
          std::size_t expected = 0;
          if (offset <= model.sent_end)
            while (!model.kept.empty() && model.kept.begin()->first < offset) {
              model.kept.erase(model.kept.begin());
              ++expected;
            }
          REQUIRE(freed == expected);
          break;
        }
        case 4:
          if (random() % 4 == 0) alive.insert(++carrier);
          break;
        default:
          if (random() % 4 == 0 && !alive.empty()) {
            CarrierId lost = *std::next(alive.begin(), static_cast<long>(random() % alive.size()));
            alive.erase(lost);
            stream.on_carrier_lost(lost);
            for (auto& [position, on] : model.kept)
              if (on == lost) on = Model::kUnsent;
            if (alive.empty()) alive.insert(++carrier);
            carrier = *alive.rbegin();
          }
      }
      REQUIRE(stream.retained_bytes() == model.kept.size());
      REQUIRE(stream.end_offset().number() == model.end);
      REQUIRE(stream.unsent_bytes() == model.end - model.sent_end);
      REQUIRE(stream.all_acknowledged() == model.kept.empty());
      REQUIRE(stream.wants_to_send() == std::any_of(model.kept.begin(), model.kept.end(), [](const auto& b) {
                return b.second == Model::kUnsent;
              }));
    }
    std::size_t kept = model.kept.size();
    CHECK(stream.clear() == kept);
    CHECK_FALSE(stream.wants_to_send());
    CHECK(stream.retained_bytes() == 0);
  }
}

TEST_CASE("the last byte is sent again only if its acknowledgement may be lost") {
  SendStream stream;
  stream.repeat_last_byte();
  CHECK_FALSE(stream.wants_to_send());
  stream.append(bytes_of(10, 0));
  stream.repeat_last_byte();
  CHECK(*stream.next(100) == StreamRange{0_offset, 10_offset});
  stream.on_sent({0_offset, 10_offset}, CarrierId(1));
  stream.repeat_last_byte();
  CHECK(*stream.next(100) == StreamRange{9_offset, 10_offset});
  stream.on_sent({9_offset, 10_offset}, CarrierId(2));
  CHECK_FALSE(stream.wants_to_send());
  stream.on_carrier_lost(CarrierId(1));
  CHECK(*stream.next(100) == StreamRange{0_offset, 9_offset});
  CHECK(stream.on_acknowledged(10_offset) == 10);
  stream.repeat_last_byte();
  CHECK_FALSE(stream.wants_to_send());
}

TEST_CASE("data that was declared lost and arrives after all is not sent again") {
  SendStream stream;
  stream.append(bytes_of(30, 0));
  stream.on_sent({0_offset, 30_offset}, CarrierId(1));
  stream.on_lost({0_offset, 20_offset}, CarrierId(2));  // sent there by nobody
  CHECK_FALSE(stream.wants_to_send());
  stream.on_lost({5_offset, 20_offset}, CarrierId(1));
  stream.on_arrived({10_offset, 12_offset});
  CHECK(*stream.next(100) == StreamRange{5_offset, 10_offset});
  stream.on_sent({5_offset, 10_offset}, CarrierId(1));
  CHECK(*stream.next(100) == StreamRange{12_offset, 20_offset});
  stream.on_arrived({0_offset, 30_offset});
  CHECK_FALSE(stream.wants_to_send());
  CHECK(stream.retained_bytes() == 30);
}
