// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/features.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>

using namespace longhaul::config;

namespace {

constexpr std::array<std::string_view, 3> kPlaces{"false", "here", "everywhere"};
constexpr std::array<ModuleFeature, 4> kAlpha{{{.name = "alpha"},
                                              {.name = "alpha.ahead", .part_of = "alpha"},
                                              {.name = "alpha.bold", .standard = 0, .part_of = "alpha.ahead"},
                                              {.name = "alpha.places", .values = kPlaces, .part_of = "alpha"}}};
constexpr std::array<ModuleFeature, 1> kBeta{{{.name = "beta"}}};
const FeatureTable kTable{kAlpha, kBeta};

Features standard() { return standard_features(kTable); }

Features random_features(std::mt19937& random) {
  const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  Features f;
  f.transport = static_cast<Transport>(pick(4));
  f.window_bytes = pick(2) == 0 ? 0 : 1024 + pick(1 << 20);
  for (bool Features::*field : {&Features::fast_connect, &Features::compression, &Features::dedup_memory,
                                &Features::dedup_disk})
    f.*field = pick(2) == 1;
  f.modules = ModuleFeatures(kTable);
  for (std::size_t row = 0; row < kTable.rows().size(); ++row)
    f.modules.set(row, static_cast<std::uint8_t>(pick(static_cast<unsigned>(kTable.rows()[row].values.size()))));
  f.fec.mode = static_cast<Fec::Mode>(pick(3));
  if (f.fec.mode == Fec::Mode::fixed) {
    f.fec.source_packets = static_cast<std::uint8_t>(1 + pick(127));
    f.fec.repair_packets = static_cast<std::uint8_t>(1 + pick(127));
  }
  return f;
}

std::string message(std::string_view name, std::string_view value) {
  Features f = standard();
  const auto result = set_feature(f, name, value);
  CHECK(f == standard());
  return result ? "accepted" : result.error().message;
}

}  // namespace

TEST_CASE("features printed as text parse to the same features") {
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    const Features wanted = random_features(random);
    Features copy = preset(i % 2 == 0 ? "B" : "A+F", kTable).value();
    for (const auto& [name, value] : to_text(wanted)) REQUIRE(set_feature(copy, name, value).has_value());
    CHECK(copy == wanted);
  }
}

TEST_CASE("every feature has settings that completion offers, and each is accepted") {
  std::vector<std::string> named;
  for (const std::string& setting : settings_with_names(kTable)) {
    const auto equals = setting.find('=');
    if (const std::string name = setting.substr(0, equals); named.empty() || named.back() != name) named.push_back(name);
    Features features = standard();
    CHECK(set_feature(features, named.back(), setting.substr(equals + 1)).has_value());
  }
  const auto names = feature_names(kTable);
  CHECK(named == std::vector<std::string>(names.begin(), names.end()));
}

TEST_CASE("every name of a feature but the preset has a text, in the same order") {
  const auto lines = to_text(standard());
  const auto names = feature_names(kTable);
  REQUIRE(lines.size() + 1 == names.size());
  CHECK(names[0] == "preset");
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(lines[i].first == names[i + 1]);
}

TEST_CASE("each preset switches the features that its definition names") {
  const Features b = *preset("B", kTable), t = *preset("T", kTable), a = *preset("A", kTable), f = *preset("F", kTable),
                 af = *preset("A+F", kTable);
  CHECK(b.transport == Transport::off);
  for (const auto& [name, value] : to_text(b))
    if (name != "window" && name != "paths") CHECK((value == "off" || value == "false"));
  CHECK(t.transport == Transport::automatic);
  CHECK((t.compression && t.dedup_memory && t.dedup_disk && t.fast_connect));
  CHECK(t.modules == ModuleFeatures(kTable));
  CHECK(t.fec.mode == Fec::Mode::off);
  for (const Features& with : {a, af}) {
    CHECK((with.modules.value("alpha") == 1 && with.modules.value("alpha.ahead") == 1));
    CHECK((with.modules.value("alpha.places") == 1 && with.modules.value("beta") == 1));
    CHECK(with.modules.value("alpha.bold") == 0);
  }
  CHECK(a.fec.mode == Fec::Mode::off);
  CHECK(f.transport == Transport::udp);
  CHECK(f.fec.mode == Fec::Mode::adaptive);
  CHECK_FALSE((f.compression || f.dedup_memory || f.dedup_disk));
  CHECK(f.modules == ModuleFeatures(kTable));
  CHECK(af == standard());
  CHECK_FALSE(preset("C", kTable));
}

TEST_CASE("a preset overrides earlier settings") {
  Features f = standard();
  REQUIRE(set_feature(f, "window", "65535").has_value());
  CHECK(f.window_bytes == 65535);
  REQUIRE(set_feature(f, "preset", "A+F").has_value());
  CHECK(f == standard());
}

TEST_CASE("an invalid feature lists the accepted values and changes nothing") {
  CHECK(message("compresion", "true") == "Unknown feature \"compresion\". Did you mean compression?");
  CHECK(message("zzzzzzzz", "true")
            .starts_with("Unknown feature \"zzzzzzzz\". Known names: preset, transport,"));
  CHECK(message("http", "true").ends_with(" There is no module of that name in this program, which has: alpha, beta."));
  CHECK(message("compression", "yes") == "compression cannot be \"yes\"; it must be true or false.");
  CHECK(message("transport", "quic") == "transport cannot be \"quic\"; it must be auto, udp, tcp or off.");
  CHECK(message("preset", "a") == "preset cannot be \"a\"; it must be B, T, A, F or A+F.");
  for (std::string_view wrong :
       {"10", "0:1", "1:0", "200:56", "256:1", ":", "1:", "+1:1", "1:1 ", "fixed", ""})
    CHECK(message("fec", wrong).starts_with("fec cannot be"));
  for (std::string_view wrong : {"", "0", "1023", "2GiB", "64KB", "-1", "big"})
    CHECK(message("window", wrong).starts_with("window cannot be"));
}

TEST_CASE("a fixed repair ratio and a window size are parsed exactly") {
  Features f;
  REQUIRE(set_feature(f, "fec", "254:1").has_value());
  CHECK(f.fec == Fec{Fec::Mode::fixed, 254, 1});
  REQUIRE(set_feature(f, "window", "4MiB").has_value());
  CHECK(f.window_bytes == 4u << 20);
  REQUIRE(set_feature(f, "window", "auto").has_value());
  CHECK(f.window_bytes == 0);
}

TEST_CASE("of a feature with several values, on is the first, and both sides meet in the lower one") {
  Features here = standard(), everywhere = standard(), off = standard();
  REQUIRE(set_feature(here, "alpha.places", "true").has_value());
  CHECK(here == standard());
  REQUIRE(set_feature(everywhere, "alpha.places", "everywhere").has_value());
  CHECK(everywhere.modules.value("alpha.places") == 2);
  REQUIRE(set_feature(off, "alpha.places", "off").has_value());
  CHECK(meet(everywhere, everywhere) == everywhere);
  CHECK(meet(everywhere, here) == here);
  CHECK(meet(everywhere, off) == off);
  CHECK(message("alpha.places", "there") ==
        "alpha.places cannot be \"there\"; it must be here, everywhere or false.");
  CHECK(message("alpha", "everywhere") == "alpha cannot be \"everywhere\"; it must be true or false.");
}

TEST_CASE("parts of a feature that is off are off") {
  Features features = standard();
  features.modules.set("alpha.bold", 1);
  CHECK(without_idle_parts(features) == features);
  features.modules.set("alpha.ahead", 0);
  CHECK(without_idle_parts(features).modules.value("alpha.bold") == 0);
  CHECK(without_idle_parts(features).modules.value("alpha.places") == 1);
  features = standard();
  features.modules.set("alpha.bold", 1);
  features.modules.set("alpha", 0);
  const ModuleFeatures none = without_idle_parts(features).modules;
  for (const char* part : {"alpha.ahead", "alpha.bold", "alpha.places"}) CHECK(none.value(part) == 0);
  CHECK(none.value("beta") == 1);
}

TEST_CASE("programs with different modules meet in what both have") {
  const FeatureTable other{kBeta};
  const Features here = standard(), there = standard_features(other);
  const Features both = meet(here, there);
  CHECK(&both.modules.table() == &kTable);
  CHECK((both.modules.value("beta") == 1 && both.modules.value("alpha") == 0));
  CHECK(meet(there, here).modules.value("beta") == 1);
  CHECK(meet(here, Features{}).modules == ModuleFeatures(kTable));
}

TEST_CASE("the settings of two sites combine to the same features in any order") {
  std::mt19937 random(5);
  Features everything = standard();
  everything.modules.set("alpha.places", 2);
  everything.modules.set("alpha.bold", 1);
  for (int i = 0; i < 2000; ++i) {
    const Features a = random_features(random), b = random_features(random), c = random_features(random);
    CHECK(meet(a, b) == meet(b, a));
    CHECK(meet(a, a) == a);
    CHECK(meet(meet(a, b), c) == meet(a, meet(b, c)));
    CHECK(meet(a, everything) == a);
  }
}

TEST_CASE("a feature that one side forbids is off for both") {
  Features asked = standard(), allowed = standard();
  allowed.compression = false;
  allowed.window_bytes = 65535;
  allowed.transport = Transport::tcp;
  asked.transport = Transport::udp;
  const Features both = meet(asked, allowed);
  CHECK_FALSE(both.compression);
  CHECK(both.dedup_memory);
  CHECK(both.window_bytes == 65535);
  CHECK(both.transport == Transport::tcp);
  CHECK(meet(asked, *preset("B", kTable)) == *preset("B", kTable));
}
