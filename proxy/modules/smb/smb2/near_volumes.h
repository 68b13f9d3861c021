// SPDX-License-Identifier: Apache-2.0
// The near half's part for queries about a share's volume (QUERY_INFO of file systems), which programs send
// through any file that they have open: a tree's answers are repeated for a short time.
//
// No oplock, lease or notification shows a change of such an answer. So the far half asks the server again
// ten times a second and reports another answer (far_volumes.h); what it has not begun to watch, or no more
// can, goes to the server. An answer is repeated for three seconds; then a query goes to the server, which
// begins a new watch. With `smb.metadata = relaxed` age alone decides: labels, ids and capabilities are
// repeated for ten seconds, sizes for two, like attributes under a shared lease (near_metadata.h). Neither is
// repeated beyond the next request of this connection that may use or free space.
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
  // What the far half has seen of a volume.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  // Its reports do not arrive.
  void unheard();

 private:
  using Key = std::tuple<SessionId, TreeId, std::string>;
  struct Told {
    Slice response;
    TimePoint since{};  // when it came; strict: when the client's query went to the server
    OpenKey watched{};  // the open through which the far half asks; none: it does not, or not yet
  };
  struct Asked {  // on its way
    std::string question;
    std::uint64_t changes = 0;  // before it was asked
    TimePoint sent{};
  };
  bool is_good(TimePoint now, const Told& told, const QueryInfoRequest& question) const;
  void changed();
  void told(TimePoint since, const Key& key, std::uint64_t changes, const Slice& response);

  static constexpr std::size_t kMostTold = 64, kMostToldBytes = 4096;

  NearSide& side_;
  std::map<Key, Told> told_;
  KeyedMap<MessageId, Asked> asked_;
  KeyedSet<MessageId> changing_;  // without an answer
  std::uint64_t changes_ = 0;     // of the space, by this connection: requests, and their answers
};

}  // namespace longhaul::smb::smb2
