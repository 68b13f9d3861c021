// SPDX-License-Identifier: Apache-2.0
// The far half's part for metadata: sends the queries that the near half expects (Expect, with a CREATE) to
// the server and pushes the Answers. near_metadata.h decides how long they are valid; far_listings.h has
// directories.
#pragma once
#include <unordered_map>
#include <vector>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarMetadata final : public FarPart {
 public:
  explicit FarMetadata(FarSide& side) : side_(side) {}

  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_request(TimePoint, const Message&, const Changes&) override { return Taken::no; }
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  void after_response(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  void on_watched(const Open& open);

 private:
  void ask_when_watched(TimePoint now, Open& open, std::vector<Slice> questions);
  void ask(const Open& open, const Slice& question);
  void ask_not(const OpenKey& open, const std::vector<Slice>& questions);

  static constexpr std::uint32_t kQuestionBytes = 64 << 10;
  static constexpr std::size_t kMostQuestions = 8;
  static constexpr std::size_t kMostOpening = 1 << 14;  // more than a client can have in flight

  FarSide& side_;
  KeyedMap<MessageId, std::vector<Slice>> expected_;                        // by the CREATE's id
  // queries that wait until the file is watched
  std::unordered_map<OpenKey, std::vector<Slice>, OpenKeyHash> unwatched_;
};

}  // namespace longhaul::smb::smb2
