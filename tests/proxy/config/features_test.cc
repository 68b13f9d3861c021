// SPDX-License-Identifier: Apache-2.0
#include "proxy/config/features.h"

#include <catch2/catch.hpp>
#include <random>

using namespace longhaul::config;

namespace {

Features random_features(std::mt19937& random) {
  const auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  Features f;
  f.transport = static_cast<Transport>(pick(4));
  f.window_bytes = pick(2) == 0 ? 0 : 1024 + pick(1 << 20);
  for (bool Features::*field :
       {&Features::fast_connect, &Features::compression, &Features::dedup_memory, &Features::dedup_disk,
        &Features::smb, &Features::smb_read_ahead, &Features::smb_write_behind,
        &Features::smb_write_behind_cached, &Features::smb_metadata, &Features::http, &Features::mapi,
        &Features::nfs, &Features::dns})
    f.*field = pick(2) == 1;
  f.smb_metadata_relaxed = f.smb_metadata && pick(2) == 1;
  f.fec.mode = static_cast<Fec::Mode>(pick(3));
  if (f.fec.mode == Fec::Mode::fixed) {
    f.fec.source_packets = static_cast<std::uint8_t>(1 + pick(127));
    f.fec.repair_packets = static_cast<std::uint8_t>(1 + pick(127));
  }
  return f;
}

std::string message(std::string_view name, std::string_view value) {
  Features f;
  const auto result = set_feature(f, name, value);
  CHECK(f == Features{});
  return result ? "accepted" : result.error().message;
}

}  // namespace

TEST_CASE("features printed as text parse to the same features") {
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    const Features wanted = random_features(random);
    Features copy = preset(i % 2 == 0 ? "B" : "A+F").value();
    for (const auto& [name, value] : to_text(wanted)) REQUIRE(set_feature(copy, name, value).has_value());
    CHECK(copy == wanted);
  }
}

TEST_CASE("every name of a feature but the preset has a text, in the same order") {
  const auto lines = to_text(Features{});
  const auto names = feature_names();
  REQUIRE(lines.size() + 1 == names.size());
  CHECK(names[0] == "preset");
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(lines[i].first == names[i + 1]);
}

TEST_CASE("each preset switches the features that its definition names") {
  const Features b = *preset("B"), t = *preset("T"), a = *preset("A"), f = *preset("F"), af = *preset("A+F");
  CHECK(b.transport == Transport::off);
  for (const auto& [name, value] : to_text(b))
    if (name != "window") CHECK((value == "off" || value == "false"));
  CHECK(t.transport == Transport::automatic);
  CHECK((t.compression && t.dedup_memory && t.dedup_disk && t.fast_connect));
  CHECK_FALSE((t.smb || t.http || t.mapi || t.nfs || t.dns));
  CHECK(t.fec.mode == Fec::Mode::off);
  CHECK((a.smb && a.http && a.mapi && a.nfs && a.dns));
  CHECK((a.smb_read_ahead && a.smb_write_behind && a.smb_metadata));
  CHECK_FALSE((t.smb_read_ahead || t.smb_write_behind || t.smb_metadata));
  CHECK_FALSE((a.smb_write_behind_cached || af.smb_write_behind_cached));
  CHECK(a.fec.mode == Fec::Mode::off);
  CHECK(f.transport == Transport::udp);
  CHECK(f.fec.mode == Fec::Mode::adaptive);
  CHECK_FALSE((f.compression || f.dedup_memory || f.dedup_disk || f.smb));
  CHECK(af == Features{});
  CHECK_FALSE(preset("C"));
}

TEST_CASE("a preset overrides earlier settings") {
  Features f;
  REQUIRE(set_feature(f, "window", "65535").has_value());
  CHECK(f.window_bytes == 65535);
  REQUIRE(set_feature(f, "preset", "A+F").has_value());
  CHECK(f == Features{});
}

TEST_CASE("an invalid feature lists the accepted values and changes nothing") {
  CHECK(message("compresion", "true") == "Unknown feature \"compresion\". Did you mean compression?");
  CHECK(message("zzzzzzzz", "true")
            .starts_with("Unknown feature \"zzzzzzzz\". Known names: preset, transport,"));
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

TEST_CASE("metadata is answered strictly unless both sides allow relaxed") {
  Features strict, relaxed, off;
  REQUIRE(set_feature(strict, "smb.metadata", "true").has_value());
  CHECK(strict == Features{});
  REQUIRE(set_feature(relaxed, "smb.metadata", "relaxed").has_value());
  CHECK((relaxed.smb_metadata && relaxed.smb_metadata_relaxed));
  REQUIRE(set_feature(off, "smb.metadata", "false").has_value());
  CHECK(meet(relaxed, relaxed) == relaxed);
  CHECK(meet(relaxed, strict) == strict);
  CHECK(meet(relaxed, off) == off);
  CHECK(message("smb.metadata", "loose") == "smb.metadata cannot be \"loose\"; it must be strict, relaxed or false.");
}

TEST_CASE("parts of a feature that is off are off") {
  Features features;
  features.smb_write_behind_cached = true;
  CHECK(without_idle_parts(features) == features);
  features.smb_write_behind = false;
  CHECK_FALSE(without_idle_parts(features).smb_write_behind_cached);
  CHECK(without_idle_parts(features).smb_read_ahead);
  features = {};
  features.smb_write_behind_cached = true;
  features.smb = false;
  const Features none = without_idle_parts(features);
  CHECK_FALSE((none.smb_read_ahead || none.smb_write_behind || none.smb_write_behind_cached || none.smb_metadata));
  CHECK(none.http);
}

TEST_CASE("the settings of two sites combine to the same features in any order") {
  std::mt19937 random(5);
  Features everything = *preset("A+F");
  everything.smb_metadata_relaxed = true;
  everything.smb_write_behind_cached = true;
  for (int i = 0; i < 2000; ++i) {
    const Features a = random_features(random), b = random_features(random), c = random_features(random);
    CHECK(meet(a, b) == meet(b, a));
    CHECK(meet(a, a) == a);
    CHECK(meet(meet(a, b), c) == meet(a, meet(b, c)));
    CHECK(meet(a, everything) == a);
  }
}

TEST_CASE("a feature that one side forbids is off for both") {
  Features asked, allowed;
  allowed.compression = false;
  allowed.window_bytes = 65535;
  allowed.transport = Transport::tcp;
  asked.transport = Transport::udp;
  const Features both = meet(asked, allowed);
  CHECK_FALSE(both.compression);
  CHECK(both.dedup_memory);
  CHECK(both.window_bytes == 65535);
  CHECK(both.transport == Transport::tcp);
  CHECK(meet(asked, *preset("B")) == *preset("B"));
}
