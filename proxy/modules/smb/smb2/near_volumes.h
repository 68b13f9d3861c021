// SPDX-License-Identifier: Apache-2.0
// The near half's part for queries about a share's volume (QUERY_INFO of file systems), which programs send
// through any file that they have open: with `smb.metadata = relaxed` a tree's answers are repeated for a
// short time.
//
// No oplock, lease or notification shows a change of such an answer. So age decides, and this connection's
// own requests: labels, ids and capabilities are repeated for ten seconds, sizes for two, like attributes
// under a shared lease (near_metadata.h), and not beyond the next request of this connection that may use or
// free space.
#pragma once
#include <map>
#include <string>
#include <tuple>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class NearVolumes final : public NearPart {
 public:
  explicit NearVolumes(NearSide& side) : side_(side) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_response(TimePoint, const Message&, const Connection::Outcome&) override { return Taken::no; }
  Taken on_twin(TimePoint, const TwinMessage&, const Slice&) override { return Taken::no; }

 private:
  using Key = std::tuple<SessionId, TreeId, std::string>;
  struct Told {
    Slice response;
    TimePoint came{};
  };
  struct Asked {  // on its way
    std::string question;
    std::uint64_t changes = 0;  // before it was asked
  };
  bool may_change_space(const Element& element) const;
  void changed();
  void told(TimePoint now, const Key& key, std::uint64_t changes, const Slice& response);

  static constexpr std::size_t kMostTold = 64, kMostToldBytes = 4096;

  NearSide& side_;
  std::map<Key, Told> told_;
  KeyedMap<MessageId, Asked> asked_;
  KeyedSet<MessageId> changing_;  // without an answer
  std::uint64_t changes_ = 0;     // of the space, by this connection: requests, and their answers
};

}  // namespace longhaul::smb::smb2
