// SPDX-License-Identifier: Apache-2.0
// Known answers to queries about a share's volume, which programs ask again and again (like
// smb2/near_volumes.h): they are repeated for three seconds while the far half looks at them and reports
// another answer (far_volumes.h), and not beyond the next request of this connection that may change them.
// With `smb.metadata = relaxed` they are snapshots, for all queries within two round trips.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/known_answer.h"

namespace longhaul::smb::smb1 {

class NearVolumes {
 public:
  void on_surroundings(const Surroundings& surroundings) {
    round_trip_ = surroundings.round_trip;
    features_ = surroundings.features;
  }

  // A valid answer to a query of this user about this tree.
  const KnownAnswer* find(TimePoint now, const Header& query, const std::string& question) const;
  // Changes with everything that makes known answers void.
  std::uint64_t generation() const { return generation_; }
  // The server has answered a query that the client sent at that time, in that generation.
  void answered(const Header& query, const std::string& question, TimePoint sent, std::uint64_t generation,
                KnownAnswer known);
  // The same of one that was sent with an open.
  void fetched(const Open& open, const std::string& question, KnownAnswer known);

  // An Answer of the far half that says what it has seen of a volume, and not of a file.
  static bool is_look(const Answer& answer);
  void looked(const Answer& answer, const Slice& attached);

  // A request of the client, before any part sees it, and the server's last answer to one. True: it may use
  // or free space, so that answers are void.
  bool on_request(const Message& request, Connection& connection);
  bool on_answer(MessageNumber number);
  void drop();

 private:
  struct Known {
    KnownAnswer answer;    // strict: it came when the client's query went to the server
    bool watched = false;  // the far half looks at it
  };
  using Volume = std::pair<std::uint32_t, std::string>;  // UID and TID, question

  static constexpr std::size_t kMostAnswers = 16, kMostChanging = 4096;

  modules::Duration round_trip_{0};
  Features features_;
  std::map<Volume, Known> known_;
  std::uint64_t generation_ = 0;
  KeyedSet<MessageNumber> changing_;  // requests that may change the volumes, without an answer
};

}  // namespace longhaul::smb::smb1
