// SPDX-License-Identifier: Apache-2.0
// The near half's queries: answers QUERY_FILE, QUERY_PATH and QUERY_FS_INFORMATION from responses fetched
// with the open, or repeatedly while they are valid; near_volumes.h has those about volumes. far_questions.h
// queries the server.
//
// A response about a file, and the path by which it was opened, is valid while the file has an exclusive
// oplock and was not changed through this connection, nor by others beside the SMB server (Watched). A
// response about a path is valid for a limited time, because folders above may be renamed without a break.
// With `smb.metadata = relaxed` a response is also used without an oplock, as a snapshot: once, within two
// round trips, and not after a READ of that file, which may have returned newer data.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/promises.h"
#include "proxy/modules/smb/smb1/coming_answers.h"
#include "proxy/modules/smb/smb1/connection.h"
#include "proxy/modules/smb/smb1/near_volumes.h"
#include "proxy/modules/smb/smb1/opening_questions.h"
#include "proxy/modules/smb/smb1/transactions.h"

namespace longhaul::smb::smb1 {

class NearQuestions {
 public:
  NearQuestions(Outputs& out, Connection& connection, const Promises& promises, modules::Counters& counters)
      : out_(out), connection_(connection), promises_(promises), counters_(counters) {}

  void on_surroundings(const Surroundings& surroundings) {
    round_trip_ = surroundings.round_trip;
    features_ = surroundings.features;
    volumes_.on_surroundings(surroundings);
  }

  enum class Answers : bool { no, yes };  // whether responses may be used, or requested, at present
  // A TRANS2 of the client. Returns true if it was answered, or is held until the far half has sent the
  // response that it fetched with the open.
  bool request(TimePoint now, const Frame& frame, const Message& message, Answers answers);
  // A request that opens a file is about to be passed on: tells the far half what to query with it.
  void opening(const Message& message, Answers answers);
  // The request was answered; `open` is null if no open is tracked.
  void opened(const Open* open, MessageNumber by);
  // The server's response to a request of the client, before the connection forgets the request.
  void answered(TimePoint now, const Message& answer, const Pending& request);
  // Returns false if it is not a response to a query.
  bool pushed(TimePoint now, const Answer& answer, const Slice& attached);

  // A request of the client, before any part processes it; and the server's last response to one.
  void before_request(const Message& message);
  void after_answer(MessageNumber number);
  // Reports of the far half do not arrive.
  void unheard();

  // Makes cached responses void: for one open file; for every file that may be the same, and then for the
  // volumes, too; for all.
  void drop(const OpenKey& key);
  void drop_same_file(const Open& open);
  void changed(const Open& open);
  void changed();
  void forget(const OpenKey& key);
  bool is_idle() const { return coming_.held() == 0; }
  std::size_t held_bytes() const {
    return files_.size() * kFileBytes + coming_.held() * ComingAnswers::kMostHeldFrame;
  }

 private:
  struct File {
    OpeningQuestions::Kind kind = OpeningQuestions::Kind::data;
    std::uint64_t generation = 0;  // of the cached responses
    std::map<std::string, KnownAnswer> answers;
    std::vector<std::string> pushed;  // queried with the open
    std::set<std::string> asked;
  };
  struct Asked {                  // a query that is passed to the server
    std::optional<OpenKey> open;  // nullopt: about a volume
    std::uint64_t generation = 0;
    std::string question;
    TimePoint sent{};
  };
  static constexpr std::size_t kFileBytes = 2048;  // with some answers, about
  static constexpr std::size_t kMostQueries = 4096, kMostAsked = 64;

  bool about_file(TimePoint now, const Frame& frame, const Message& message, const std::string& question);
  bool about_path(TimePoint now, const Frame& frame, const Message& message, const FileName& name,
                  const std::string& question);
  void learn(const Message& message, const Transaction& part, const FileName& name,
             const std::string& question);
  bool about_volume(TimePoint now, const Frame& frame, const Message& message, const std::string& question);
  void go(TimePoint now, const Header& header, std::optional<OpenKey> open, std::uint64_t generation,
          const std::string& question);
  void give(const Header& header, const KnownAnswer& known);
  void forget_answers(File& file);
  void drop_volumes();

  Outputs& out_;
  Connection& connection_;
  const Promises& promises_;
  modules::Counters& counters_;
  modules::Duration round_trip_{0};
  Features features_;
  std::unordered_map<OpenKey, File, OpenKeyHash> files_;
  OpeningQuestions openings_;
  ComingAnswers coming_;
  NearVolumes volumes_;
  KeyedMap<MessageNumber, Asked> asked_;
  std::uint64_t generations_ = 0;
};

}  // namespace longhaul::smb::smb1
