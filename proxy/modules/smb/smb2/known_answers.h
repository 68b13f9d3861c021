// SPDX-License-Identifier: Apache-2.0
// The responses to queries about one open file that are stored, or will arrive without another query, and the
// client's queries that wait for them. near_metadata.h decides which may be used.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/modules/smb/half.h"
#include "proxy/modules/smb/smb2/message.h"

namespace longhaul::smb::smb2 {

struct KnownAnswer {
  bool here = false;          // if not, it will arrive
  std::uint64_t version = 0;  // of the file, or the volume, at the time of the query
  Status status = Status::success;
  Slice response;
  TimePoint came{};
  std::deque<Message> waiting;  // requested before it arrived
};

class KnownAnswers {
 public:
  // Totals for all files of a connection.
  struct Totals {
    std::size_t waiting = 0;  // queries
    std::size_t bytes = 0;    // of answers
  };
  // `totals` outlives this object.
  explicit KnownAnswers(Totals& totals) : totals_(totals) {}
  ~KnownAnswers() { (void)clear(); }
  KnownAnswers(const KnownAnswers&) = delete;
  KnownAnswers& operator=(const KnownAnswers&) = delete;

  KnownAnswer* find(const std::string& question);
  // The response will arrive.
  void expect(const std::string& question, std::uint64_t version);
  // A query waits for the response. Returns false if too many wait, or if it is too large: then the server
  // answers it.
  bool wait(KnownAnswer& answer, const Message& query);
  // The response that was expected, with the queries that wait, to be stored with keep() if it is worth that.
  std::optional<KnownAnswer> take_expected(const std::string& question);
  // Stores the response, unless it is too large, or there are too many.
  void keep(const std::string& question, KnownAnswer answer);
  void forget(const std::string& question);
  bool has_waiting() const;
  // Returns the waiting queries.
  std::vector<Message> clear();

  // Limits for one file, or for all open files; further queries are sent each time.
  static constexpr std::size_t kMostAnswers = 16, kMostAnswerBytes = 64 << 10, kMostHeldBytes = 8 << 20;
  // Limits of queries that wait for a response; others are sent to the server.
  static constexpr std::size_t kMostWaiting = 256, kMostWaitingBytes = 1024;

 private:
  Totals& totals_;
  std::unordered_map<std::string, KnownAnswer> answers_;
};

}  // namespace longhaul::smb::smb2
