// SPDX-License-Identifier: Apache-2.0
// Recorded messages of real clients and servers (tests/fuzz/capture_smb_seeds): all of them are parsed.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "proxy/modules/smb/smb2/records.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

std::map<std::string, std::string> seeds(std::string_view target) {
  std::map<std::string, std::string> found;
  const auto folder = std::filesystem::path(LONGHAUL_SOURCE_DIR) / "tests/fuzz/corpus" / target;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("real_") && !name.starts_with("kernel_")) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    found[name] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return found;
}

}  // namespace

TEST_CASE("every SMB2 message in the recorded samples is parsed") {
  std::set<std::pair<Command, bool>> commands;
  const auto all = seeds("smb2_records");
  REQUIRE(all.size() > 40);
  for (const auto& [name, message] : all) {
    INFO(name);
    const std::string text = describe(as_bytes(message));
    INFO(text);
    CHECK(text.find("malformed") == text.npos);
    CHECK(text.find("not SMB2") == text.npos);
    if (auto elements = parse_elements(as_bytes(message)))
      for (const Element& element : *elements)
        commands.emplace(element.header.command, element.header.is_response());
  }
  // All but CANCEL, which has no answer, and the notification, which Samba does not send.
  for (std::uint16_t command = 0; command < static_cast<std::uint16_t>(Command::notification); ++command) {
    INFO(name_of(static_cast<Command>(command)));
    CHECK(commands.contains({static_cast<Command>(command), false}));
    if (static_cast<Command>(command) != Command::cancel)
      CHECK(commands.contains({static_cast<Command>(command), true}));
  }
}

TEST_CASE("a truncated message is never read past its end") {
  for (const auto& [name, message] : seeds("smb2_records"))
    for (std::size_t bytes = 0; bytes < message.size(); ++bytes) {
      // A block of its own, so that a sanitizer sees the byte behind it.
      const Slice cut = Slice::copy_of(as_bytes(message).first(bytes));
      CHECK_FALSE(describe(cut.bytes()).empty());
    }
}

TEST_CASE("recorded sessions are split into frames without a rest, except at their end") {
  for (const auto& [name, seed] : seeds("smb_frames")) {
    INFO(name);
    REQUIRE(seed.size() > 2);
    const Framing framing = seed[0] & 1 ? Framing::netbios : Framing::direct_tcp;
    std::string joined;
    std::size_t frames = 0;
    FrameSplitter splitter(framing);
    for (std::size_t at = 2; at < seed.size(); at += 100) {
      splitter.push(Slice::copy_of(as_bytes(seed).subspan(at, std::min<std::size_t>(100, seed.size() - at))));
      for (;;) {
        auto frame = splitter.next();
        REQUIRE(frame.has_value());
        if (!*frame) break;
        CHECK((*frame)->kind != FrameKind::bare);
        joined += as_text((*frame)->bytes.bytes());
        ++frames;
      }
    }
    CHECK(frames >= 3);
    for (const Slice& slice : splitter.take_rest()) joined += as_text(slice.bytes());
    CHECK(joined == seed.substr(2));
  }
}
