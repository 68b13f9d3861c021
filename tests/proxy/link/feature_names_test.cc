// SPDX-License-Identifier: Apache-2.0
// Features of modules cross the link by name, so that sites with different modules, or of different releases,
// agree on what both know.
#include <array>
#include <catch2/catch.hpp>

#include "golden.h"
#include "proxy/link/frames.h"
#include "proxy/link/records.h"
#include "simulated_pair.h"

using namespace longhaul;
using namespace longhaul::link;

namespace {

constexpr std::array<std::string_view, 3> kPlaces{"false", "here", "everywhere"};
constexpr std::array<config::ModuleFeature, 2> kAlpha{
    {{.name = "alpha"}, {.name = "alpha.places", .values = kPlaces, .part_of = "alpha"}}};
constexpr std::array<config::ModuleFeature, 2> kBeta{
    {{.name = "beta"}, {.name = "beta.new", .part_of = "beta"}}};
constexpr std::array<config::ModuleFeature, 1> kOldBeta{{{.name = "beta"}}};
const config::FeatureTable kHere{kAlpha, kBeta}, kThere{kOldBeta, kAlpha};

config::Features standard(const config::FeatureTable& table) { return config::standard_features(table); }
std::vector<std::string> names_of(const config::FeatureTable& table) {
  return simulation::names_of(standard(table));
}

Buffer body_of(const config::Features& features) {
  Buffer body;
  write_features(features, body);
  return body;
}

std::optional<HelloFrame> parsed_hello(Bytes bytes) {
  auto parsed = parse_frame(bytes);
  if (!parsed || !*parsed || !(*parsed)->frame) return std::nullopt;
  return std::get<HelloFrame>(*(*parsed)->frame);
}

std::optional<HelloFrame> crossed(const HelloFrame& hello) {
  Buffer bytes;
  write_frame(hello, bytes);
  return parsed_hello(bytes);
}

// The body of a record, whose head is a type and a length.
Buffer record_body(const std::string& hex) {
  const Buffer record = golden::from_hex(hex);
  ByteReader in(record);
  (void)in.u8();
  const Bytes body = in.sized().value();
  return {body.begin(), body.end()};
}

// What the first release makes of features: pairs of numbers, 1 to 18 known to it, others skipped.
std::map<std::uint64_t, std::uint64_t> as_first_release(Bytes body) {
  std::map<std::uint64_t, std::uint64_t> known;
  ByteReader in(body);
  while (in.remaining()) {
    const auto key = in.varint(), value = in.varint();
    REQUIRE((key && value));
    if (*key <= 18) known[*key] = *value;
  }
  return known;
}

}  // namespace

TEST_CASE("a HELLO names the features of its sender's modules, in their order") {
  const auto vectors = golden::read("feature_names.txt");
  HelloFrame hello{.site = "branch", .blocks = 2, .modules = {{"alpha", 3}}, .features = names_of(kHere)};
  Buffer bytes;
  write_frame(hello, bytes);
  CHECK(golden::to_hex(bytes) == vectors.at("hello"));
  CHECK(crossed(hello)->features == hello.features);
  CHECK(golden::to_hex(body_of(standard(kHere))) == vectors.at("features"));
}

TEST_CASE("sites whose modules differ agree on what both know, in any order of names") {
  const FeatureKeys of_there(kHere, names_of(kThere)), of_here(kThere, names_of(kHere));
  config::Features sent = standard(kThere);
  sent.modules.set("alpha.places", 2);
  const config::ModuleFeatures got = parse_features(body_of(sent), of_there)->modules;
  CHECK((got.value("alpha") == 1 && got.value("alpha.places") == 2 && got.value("beta") == 1));
  CHECK(got.value("beta.new") == 0);
  CHECK(parse_features(body_of(standard(kHere)), of_here)->modules ==
        config::ModuleFeatures::standard(kThere));
  // Before the peer has said what it allows.
  CHECK((of_there.standard().value("beta") == 1 && of_there.standard().value("beta.new") == 0));
}

TEST_CASE("a value that only a later release knows is read as the most that this one knows") {
  Buffer body;
  ByteWriter(body).varint(64);
  ByteWriter(body).varint(1ull << 40);
  const std::vector<std::string> names{"alpha.places"};
  CHECK(parse_features(body, FeatureKeys(kHere, names))->modules.value("alpha.places") == 2);
}

TEST_CASE("names and keys that mean nothing here are ignored, and so is one that comes twice") {
  std::vector<std::string> names(60, "unknown");
  names.insert(names.end(), {"", "beta", "beta"});
  const FeatureKeys keys(kHere, names);
  Buffer body;
  for (const std::uint64_t key : {10, 18, 19, 63, 64, 124, 125, 126, 127, 128})
    ByteWriter(body).varint(key), ByteWriter(body).varint(1);
  ByteWriter(body).varint(kMaxVarint);
  ByteWriter(body).varint(kMaxVarint);
  const auto parsed = parse_features(body, keys);
  REQUIRE(parsed.has_value());
  config::ModuleFeatures wanted(kHere);
  wanted.set("beta", 1);
  CHECK(parsed->modules == wanted);
}

TEST_CASE("a HELLO with more or longer names than there may be is malformed") {
  HelloFrame hello{
      .features = std::vector<std::string>(kMaxFeatureNames, std::string(config::kMaxFeatureNameBytes, 'x'))};
  CHECK(crossed(hello).has_value());
  hello.features.emplace_back("y");
  CHECK_FALSE(crossed(hello).has_value());
  hello.features = {std::string(config::kMaxFeatureNameBytes + 1, 'x')};
  CHECK_FALSE(crossed(hello).has_value());
}

TEST_CASE("a release before feature names is understood, and no module's feature is in force with it") {
  const auto vectors = golden::read("before_feature_names.txt");
  const auto hello = parsed_hello(golden::from_hex(vectors.at("hello")));
  REQUIRE(hello);
  CHECK((hello->modules == std::vector<ModuleName>{{"smb", 8}} && hello->features.empty()));
  const FeatureKeys keys(kHere, hello->features);
  const auto allowed = parse_features(record_body(vectors.at("allowed")), keys);
  REQUIRE(allowed.has_value());
  CHECK((allowed->transport == config::Transport::off && !allowed->compression));
  CHECK(allowed->modules == config::ModuleFeatures(kHere));
  const auto open = parse_open(record_body(vectors.at("open")), keys);
  REQUIRE(open.has_value());
  CHECK((open->module == "smb" && open->module_version == 8 && open->features.dedup_disk));
  CHECK(open->features.modules == config::ModuleFeatures(kHere));
}

TEST_CASE("a release before feature names understands what this one says") {
  const auto vectors = golden::read("before_feature_names.txt");
  // Its reader of HELLO skips what follows the modules: of both the part that it knows is the same.
  HelloFrame hello = *parsed_hello(golden::from_hex(vectors.at("hello")));
  Buffer as_then, now;
  write_frame(hello, as_then);
  CHECK(golden::to_hex(as_then) == vectors.at("hello"));
  hello.features = names_of(kHere);
  write_frame(hello, now);
  // Behind the type and the length, which takes two bytes now.
  CHECK(std::equal(as_then.begin() + 2, as_then.end(), now.begin() + 3));
  // The features of the proxy itself have the keys that they had; those of modules have none of its keys.
  auto then = as_first_release(record_body(vectors.at("allowed")));
  std::erase_if(then, [](const auto& pair) { return pair.first >= 10; });
  CHECK(as_first_release(body_of(*config::preset("B", kHere))) == then);
}

TEST_CASE("two sessions with different modules use the features that both know") {
  simulation::Pair pair({.allowed = {standard(kHere), standard(kThere)}});
  pair.connect();
  pair.run_for(std::chrono::milliseconds(300));
  CHECK(pair.a.session.incoming().peer_allowed().modules.value("beta") == 1);
  CHECK(pair.a.session.incoming().peer_allowed().modules.value("beta.new") == 0);
  CHECK(pair.b.session.incoming().peer_allowed().modules == config::ModuleFeatures::standard(kThere));
  config::Features less = standard(kThere);
  less.modules.set("alpha.places", 0);
  pair.b.session.allow(less);
  pair.run_for(std::chrono::milliseconds(300));
  CHECK(pair.a.session.incoming().peer_allowed().modules.value("alpha.places") == 0);
  CHECK(pair.a.session.incoming().peer_allowed().modules.value("alpha") == 1);
}
