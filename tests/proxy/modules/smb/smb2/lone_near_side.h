// SPDX-License-Identifier: Apache-2.0
// A near half for tests of one of its parts: notes what the part answers and tells the far half. The test
// connects it, and has its connection follow what passes.
#pragma once
#include "proxy/modules/smb/smb2/parts.h"
#include "tests/proxy/modules/smb/crossing.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {

struct LoneNearSide final : NearSide {
  Connection tracked;
  Outputs outputs;
  modules::Counters counted;
  Surroundings around;
  std::vector<MessageId> answered;

  Connection& connection() override { return tracked; }
  Outputs& out() override { return outputs; }
  modules::Counters& counters() override { return counted; }
  const Surroundings& surroundings() const override { return around; }
  void answer(TimePoint, MessageId id, Slice, Told) override { answered.push_back(id); }
  void pass_on(TimePoint, const Message&) override {}
  void drop_file(const FileGroup&) override {}
  void has_read(const Open&, std::uint64_t, std::uint32_t, std::uint32_t) override {}
  void answer_create(TimePoint, const Message&, Slice, const std::vector<Slice>&) override {}
  void answer_compound(TimePoint, const Message&, Slice) override {}
  std::optional<bool> may_be_bypassed(SessionId) const override { return false; }
  void again(TimePoint, const TwinMessage&, const Slice&) override {}
  bool has_promised() const override { return false; }
  bool owes(const Open&) const override { return false; }
  void mark(const Open&) override {}
  void unmark(const OpenKey&) override {}
  void wasted(std::uint64_t) override {}

  std::vector<TwinMessage> told() { return smb::testing::messages_in(outputs); }
  bool aborts() {
    bool found = false;
    while (const auto output = outputs.poll()) found |= std::holds_alternative<modules::Abort>(*output);
    return found;
  }
};

}  // namespace longhaul::smb::smb2::test
