// SPDX-License-Identifier: Apache-2.0
// Any bytes are records, cut the same however they are split, or an error at the same place; bodies that were
// read come back when they are written. The first two bytes of the input choose the splits.
#include <string>
#include <vector>

#include "fuzz/target.h"
#include "proxy/link/record_parser.h"

namespace longhaul::fuzz::records_target {
using namespace longhaul::link;

namespace {

void read_body(RecordType type, Bytes body) {
  if (type == RecordType::open) {
    if (auto request = parse_open(body)) {
      Buffer once, twice;
      write_open(*request, once);
      auto again = parse_open(once);
      require(again.has_value());
      write_open(*again, twice);
      require(once == twice);
    }
  }
  if (type == RecordType::answer) {
    if (auto answer = parse_answer(body)) {
      Buffer once;
      write_answer(*answer, once);
      require(parse_answer(once)->outcome == answer->outcome);
    }
  }
  if (type == RecordType::allowed || type == RecordType::features) {
    if (auto features = parse_features(body)) {
      Buffer once;
      write_features(*features, once);
      require(*parse_features(once) == *features);
    }
  }
  if (type == RecordType::block) {
    if (auto block = parse_block(body)) {
      require(block->header.plain_bytes > 0 && block->header.plain_bytes <= kMaxBlockPlainBytes);
      require(block->encoded.size() <= body.size());
    }
  }
}

// What was told, as one text; pieces of data that follow each other are one.
class Told final : public RecordSink {
 public:
  Result<void> on_data(Bytes plain) override {
    require(!plain.empty());
    if (!in_data_) text += "[data]";
    in_data_ = true;
    text += as_text(plain);
    return {};
  }
  Result<void> on_record(RecordType type, Bytes body) override {
    in_data_ = false;
    require(body.size() <= kMaxRecordBody);
    text += "[" + std::to_string(static_cast<int>(type)) + "]";
    text += as_text(body);
    read_body(type, body);
    return {};
  }
  std::string text;

 private:
  bool in_data_ = false;
};

}  // namespace

FUZZ_TARGET(records) {
  if (size < 2) return 0;
  unsigned step = data[0], more = data[1];
  Bytes bytes = std::as_bytes(std::span(data + 2, size - 2));
  Told whole, split;
  bool good = RecordParser().feed(bytes, whole).has_value();
  RecordParser parser;
  bool split_good = true;
  for (Bytes rest = bytes; split_good && !rest.empty(); step = (step * 5 + more) & 0xff) {
    std::size_t piece = std::min<std::size_t>(rest.size(), 1 + step % 37);
    Buffer exact(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(piece));
    split_good = parser.feed(exact, split).has_value();
    rest = rest.subspan(piece);
  }
  require(good == split_good);
  // Data in front of a bad record in the same piece may or may not have been told; a prefix it is.
  require(good ? whole.text == split.text
               : whole.text.starts_with(split.text) || split.text.starts_with(whole.text));
  // As bodies alone, too.
  for (RecordType type : {RecordType::open, RecordType::answer, RecordType::allowed, RecordType::block})
    read_body(type, bytes);
  return 0;
}

}  // namespace longhaul::fuzz::records_target
