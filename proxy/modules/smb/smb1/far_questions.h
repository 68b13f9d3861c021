// SPDX-License-Identifier: Apache-2.0
// The far half's queries: sends the queries that the client is likely to send about a file that it has just
// opened, and queries the free space of the disk. near_questions.h and near_writes.cc use the responses.
#pragma once
#include <map>

#include "proxy/modules/promises/disk_room.h"
#include "proxy/modules/smb/smb1/server_leg.h"

namespace longhaul::smb::smb1 {

class FarQuestions {
 public:
  FarQuestions(Outputs& out, ServerLeg& leg, Connection& connection, modules::Counters& counters)
      : out_(out), leg_(leg), connection_(connection), counters_(counters) {}

  void on_surroundings(const Surroundings& surroundings) { features_ = surroundings.features; }
  void expect(const Expect& expect);
  // The open with this number was answered: sends the expected queries; each always results in an Answer.
  void opened(const Open& open, MessageNumber by);
  // The same for an open that is not tracked here: nothing is sent.
  void opened_untracked(const OpenKey& open, MessageNumber by);
  void over(MessageNumber by) { expected_.erase(by); }
  // Queries how much may still be promised, if that is unknown.
  void ask_room(TimePoint now, const Open& open);
  // A promised write was answered.
  void written(TimePoint now, const Open& open, std::uint64_t length);
  // The client sends nothing more, or can no longer be parsed.
  void stop() { stopped_ = true; }

 private:
  void ask(const Open& open, const Slice& question);
  static Answer not_asked(const OpenKey& open, const Slice& question);

  static constexpr std::size_t kMostOpening = 4096, kMostQuestions = 8;

  Outputs& out_;
  ServerLeg& leg_;
  Connection& connection_;
  modules::Counters& counters_;
  Features features_;
  DiskQuestions room_;
  std::map<MessageNumber, std::vector<Slice>> expected_;
  bool stopped_ = false;
};

}  // namespace longhaul::smb::smb1
