// SPDX-License-Identifier: Apache-2.0
#include "proxy/link/records.h"

#include <boost/asio/ip/address.hpp>

#include "golden.h"

using namespace longhaul;
using namespace longhaul::link;
using boost::asio::ip::make_address;
using boost::asio::ip::tcp;

namespace {

const config::FeatureTable& kNoModules = config::ModuleFeatures().table();

Buffer encoded(RecordType type, Bytes body = {}) {
  Buffer bytes;
  write_record_head(type, body.size(), bytes);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}
void add(Buffer& to, const Buffer& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

template <class Value, class Write>
Buffer body_of(const Value& value, Write&& write) {
  Buffer body;
  write(value, body);
  return body;
}

OpenRequest full_request() {
  OpenRequest request;
  request.destination.host = "files.example";
  request.destination.port = 445;
  request.client = tcp::endpoint(make_address("2001:db8::7"), 50'000);
  request.source = config::Source::client;
  request.features = *config::preset("T", kNoModules);
  request.features.window_bytes = 65'535;
  request.features.fec = {config::Fec::Mode::fixed, 10, 2};
  request.module = "smb";
  request.module_version = 3;
  request.forward_credit = 100'000;
  request.reverse_credit = 1 << 20;
  return request;
}

OpenRequest short_request(const char* address) {
  OpenRequest request;
  request.destination.address = make_address(address);
  request.destination.port = 80;
  return request;
}

void check_equal(const OpenRequest& a, const OpenRequest& b) {
  CHECK(a.destination.host == b.destination.host);
  CHECK(a.destination.address == b.destination.address);
  CHECK(a.destination.port == b.destination.port);
  CHECK(a.client == b.client);
  CHECK(a.source == b.source);
  CHECK(a.features == b.features);
  CHECK(a.module == b.module);
  CHECK(a.module_version == b.module_version);
  CHECK(a.forward_credit == b.forward_credit);
  CHECK(a.reverse_credit == b.reverse_credit);
}

OpenRequest request_v4() {
  OpenRequest request = short_request("10.10.2.2");
  request.client = tcp::endpoint(make_address("10.10.1.2"), 40'000);
  return request;
}

// The body of a golden record, after its head was read.
Buffer golden_body(const std::string& hex, RecordType expected) {
  Buffer bytes = golden::from_hex(hex);
  ByteReader in(bytes);
  auto type = in.u8();
  CHECK(type == static_cast<std::uint8_t>(expected));
  auto body = in.sized();
  REQUIRE(body);
  CHECK(in.remaining() == 0);
  return Buffer(body->begin(), body->end());
}

}  // namespace

TEST_CASE("records are encoded and decoded exactly as the golden vectors") {
  auto vectors = golden::read("records.txt");
  auto check = [&](const std::string& name, RecordType type, const Buffer& body) {
    INFO(name);
    CHECK(golden::to_hex(encoded(type, body)) == vectors[name]);
    Buffer there = golden_body(vectors[name], type);
    vectors.erase(name);
    return there;
  };
  auto open = [&](const std::string& name, const OpenRequest& request) {
    auto parsed = parse_open(check(name, RecordType::open, body_of(request, write_open)));
    REQUIRE(parsed.has_value());
    check_equal(*parsed, request);
  };
  open("open_name_module", full_request());
  open("open_ipv4", request_v4());
  open("open_ipv6", short_request("2001:db8::1"));

  OpenAnswer refused{.outcome = link::ConnectOutcome::refused, .source_fallback = true};
  auto answer = parse_answer(check("answer_refused", RecordType::answer, body_of(refused, write_answer)));
  REQUIRE(answer.has_value());
  CHECK(answer->outcome == refused.outcome);
  CHECK(answer->source_fallback);
  CHECK_FALSE(answer->module_accepted);
  OpenAnswer connected{.module_accepted = true};
  answer = parse_answer(check("answer_connected", RecordType::answer, body_of(connected, write_answer)));
  CHECK(answer->outcome == link::ConnectOutcome::connected);
  CHECK(answer->module_accepted);

  auto text = [](std::string_view content) {
    return Buffer(as_bytes(content).begin(), as_bytes(content).end());
  };
  check("data", RecordType::data, text("hello"));
  check("module", RecordType::module, text("m"));
  check("end", RecordType::end, {});
  check("abort", RecordType::abort, {});
  check("dictionary", RecordType::dictionary, text("d"));

  BlockHeader header{.codec = 1, .plain_bytes = 5, .checksum = 0x9555e8555c62dcfd, .ring_offset = 77};
  Buffer block = body_of(header, write_block_header);
  add(block, text("hello"));
  auto parsed = parse_block(check("block", RecordType::block, block));
  REQUIRE(parsed.has_value());
  CHECK(parsed->header.codec == 1);
  CHECK(parsed->header.plain_bytes == 5);
  CHECK(parsed->header.checksum == header.checksum);
  CHECK(parsed->header.ring_offset == 77);

  config::Features features = *config::preset("B", kNoModules);
  auto allowed = parse_features(check("allowed", RecordType::allowed, body_of(features, write_features)));
  REQUIRE(allowed.has_value());
  CHECK(*allowed == features);
  Buffer change;
  ByteWriter(change).varint(5);
  write_features(config::Features{}, change);
  check("features", RecordType::features, change);
  Buffer of_paths;
  ByteWriter(of_paths).varint(5);
  features = {};
  features.paths = config::PathUse::failover;
  write_features(features, of_paths);
  check("features_paths", RecordType::features, of_paths);
  CHECK(vectors.empty());
}

TEST_CASE("a truncated open, answer, feature list or block is malformed, and never read past its end") {
  auto cut = [](const Buffer& body, auto&& parse) {
    for (std::size_t size = 0; size < body.size(); ++size) {
      Buffer torn(body.begin(), body.begin() + static_cast<long>(size));
      parse(torn, size);
    }
  };
  for (const OpenRequest& request : {full_request(), request_v4(), short_request("::1")})
    cut(body_of(request, write_open), [](const Buffer& torn, std::size_t size) {
      INFO(size);
      CHECK_FALSE(parse_open(torn).has_value());
    });
  cut(body_of(OpenAnswer{}, write_answer),
      [](const Buffer& torn, std::size_t) { CHECK_FALSE(parse_answer(torn).has_value()); });
  Buffer block = body_of(BlockHeader{.plain_bytes = 1}, write_block_header);
  cut(block, [](const Buffer& torn, std::size_t) { CHECK_FALSE(parse_block(torn).has_value()); });
  cut(body_of(config::Features{}, write_features), [](const Buffer& torn, std::size_t) {
    // Cut between two pairs it is whole.
    if (auto parsed = parse_features(torn); !parsed) CHECK(parsed.error() == LinkError::malformed_record);
  });
}

TEST_CASE("additions of later versions are skipped where that is allowed") {
  Buffer open = body_of(full_request(), write_open);
  open.push_back(std::byte{1});
  CHECK(parse_open(open).has_value());
  Buffer features = body_of(*config::preset("B", kNoModules), write_features);
  ByteWriter(features).varint(1000);
  ByteWriter(features).varint(7);
  auto parsed = parse_features(features);
  REQUIRE(parsed.has_value());
  CHECK(*parsed == *config::preset("B", kNoModules));
  // A policy for paths that is not known here is none.
  Buffer paths;
  ByteWriter(paths).varint(19);
  ByteWriter(paths).varint(4);
  CHECK(parse_features(paths)->paths == config::PathUse::automatic);
  Buffer answer = body_of(OpenAnswer{}, write_answer);
  answer[0] = std::byte{200};
  CHECK(parse_answer(answer)->outcome == link::ConnectOutcome::failed);
}

TEST_CASE("values outside their range are malformed") {
  auto feature = [](std::uint64_t key, std::uint64_t value) {
    Buffer body;
    ByteWriter(body).varint(key);
    ByteWriter(body).varint(value);
    return parse_features(body).has_value();
  };
  CHECK(feature(1, 3));
  CHECK_FALSE(feature(1, 4));
  CHECK_FALSE(feature(2, 1ull << 32));
  CHECK_FALSE(feature(7, 3));
  CHECK_FALSE(feature(8, 256));
  auto block = [](std::uint32_t plain) {
    return parse_block(body_of(BlockHeader{.plain_bytes = plain}, write_block_header)).has_value();
  };
  CHECK_FALSE(block(0));
  CHECK(block(kMaxBlockPlainBytes));
  CHECK_FALSE(block(kMaxBlockPlainBytes + 1));
}

TEST_CASE("an absurd destination from a confused client is accepted, so that dialling it fails") {
  OpenRequest request = short_request("0.0.0.0");
  request.destination.port = 0;
  CHECK(parse_open(body_of(request, write_open)).has_value());
  request.destination.host = std::string(255, '\n');
  CHECK(parse_open(body_of(request, write_open)).has_value());
}
