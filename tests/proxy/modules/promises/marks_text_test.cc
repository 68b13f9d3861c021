// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/marks_text.h"

#include <catch2/catch.hpp>

#include "proxy/modules/promises/marking_host.h"

namespace longhaul::promises {
namespace {

MarkLine mark_of(std::uint64_t number, std::u16string path) {
  return {.number = number, .near = 9, .file = test::named(std::move(path))};
}
// What the file holds after this batch.
void store(std::string& file, const MarksText::Batch& batch) {
  if (batch.place == MarksText::Batch::Place::instead) file.clear();
  file += batch.text;
}

}  // namespace

TEST_CASE("marks that were written and did not end are read again") {
  MarksText text;
  text.keep(true);
  std::string file;
  store(file, text.take());
  REQUIRE(text.must_replace());  // there is nothing to append to
  store(file, text.replace(7, ""));
  text.add(mark_of(1, u"A"));
  text.add(mark_of(2, u"B"));
  MarksText::Batch batch = text.take();
  CHECK(batch.durable);
  CHECK_FALSE(text.must_replace());
  store(file, batch);
  text.end(mark_of(1, u"A"));
  batch = text.take();
  CHECK_FALSE(batch.durable);  // a mark too many only costs an error too many
  store(file, batch);
  const auto left = read_marks(file);
  REQUIRE(left);
  CHECK(left->daemon == 7);
  REQUIRE(left->marks.size() == 1);
  CHECK(left->marks.at(2).near == 9);
  CHECK(left->marks.at(2).file->is_exactly(test::named(u"B")));
}

TEST_CASE("a damaged line of marks damages no other line") {
  MarksText text;
  text.keep(true);
  std::string file = text.replace(7, mark_line(mark_of(1, u"A")) + mark_line(mark_of(2, u"B"))).text;
  const std::string third = mark_line(mark_of(3, u"C"));
  for (std::size_t size = 0; size < third.size() - 1; ++size)
    CHECK(read_marks(file + third.substr(0, size))->marks.size() == 2);
  CHECK(read_marks(file + third)->marks.size() == 3);
  const std::size_t in_first = file.find('\n') + 3;
  file[in_first] = static_cast<char>(file[in_first] ^ 1);
  const auto left = read_marks(file + third);
  REQUIRE(left);
  CHECK_FALSE(left->marks.contains(1));
  CHECK(left->marks.size() == 2);
}

TEST_CASE("a file of marks whose title is damaged is none") {
  const std::string file = MarksText().replace(7, mark_line(mark_of(1, u"A"))).text;
  CHECK(read_marks(file));
  std::string damaged = file;
  damaged[0] = static_cast<char>(damaged[0] ^ 1);
  CHECK_FALSE(read_marks(damaged));
  CHECK_FALSE(read_marks(""));
  CHECK_FALSE(read_marks("another file\n"));
}

TEST_CASE("a file of marks is replaced when most of it is out of date, and after a batch was lost") {
  MarksText text;
  text.keep(true);
  text.replace(7, "");
  text.add(mark_of(1, u"A"));
  text.take();
  CHECK_FALSE(text.must_replace());
  text.failed();
  CHECK(text.must_replace());
  text.replace(7, mark_line(mark_of(1, u"A")));
  CHECK_FALSE(text.must_replace());
  std::size_t bytes = 0;
  for (std::uint64_t number = 2; !text.must_replace(); ++number) {
    text.add(mark_of(number, u"B"));
    text.end(mark_of(number, u"B"));
    bytes += text.take().text.size();
    REQUIRE(bytes < 1 << 20);
  }
  CHECK(bytes > 60'000);  // not for a few lines
}

TEST_CASE("marks that nobody stores make no text") {
  MarksText text;
  text.add(mark_of(1, u"A"));
  text.end(mark_of(1, u"A"));
  CHECK(text.take().text.empty());
}

}  // namespace longhaul::promises
