// SPDX-License-Identifier: Apache-2.0
// The near half's part for metadata: answers QUERY_INFO from responses fetched with the open, or repeatedly
// under a lease, and CLOSE under a handle-caching lease or batch oplock. near_listings.h has listings of
// directories; far_metadata.h queries the server.
//
// A response is valid until the file is changed through this connection, and while an oplock excludes others
// or the far half watches for their changes. With `smb.metadata = relaxed` it is also valid without either:
// then it answers one query, shortly after it arrived, if nothing newer was known when the open was answered;
// under a shared lease repeatedly, for a limited time. A READ that finds another end of the file makes stored
// responses void: a client that received that end must not get an earlier one, and the break may arrive after
// the READ's response.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/modules/smb/smb2/attribute_life.h"
#include "proxy/modules/smb/smb2/changes_since.h"
#include "proxy/modules/smb/smb2/file_position.h"
#include "proxy/modules/smb/smb2/known_answers.h"
#include "proxy/modules/smb/smb2/local_closes.h"
#include "proxy/modules/smb/smb2/opening_questions.h"
#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class NearMetadata final : public NearPart {
 public:
  explicit NearMetadata(NearSide& side) : side_(side) {}

  void before_request(TimePoint now, const Message& message, const Changes& changes) override;
  Taken on_request(TimePoint now, const Message& message, const Changes& changes) override;
  void on_outcome(TimePoint now, const Connection::Outcome& outcome) override;
  Taken on_response(TimePoint now, const Message& message, const Connection::Outcome& outcome) override;
  // The response to this CREATE, which was not passed to on_request(), follows; these queries have been sent
  // about its file.
  void opened_ahead(const Message& create, const std::vector<Slice>& questions);
  // As NearSide::has_read().
  void has_read(const Open& open, std::uint64_t offset, std::uint32_t asked, std::uint32_t got);
  // Answers to QUERY_INFO, Kept of CLOSEs, and Break.
  Taken on_twin(TimePoint now, const TwinMessage& message, const Slice& attached) override;
  bool quiet() const override { return closing_.empty() && totals_.waiting == 0; }
  std::size_t held_bytes() const { return totals_.bytes; }

 private:
  // Stored responses are valid while nothing has changed since: counted, not reported to each open file.
  using Version = std::uint64_t;
  struct File {
    explicit File(KnownAnswers::Totals& totals) : answers(totals) {}
    OpeningQuestions::Kind kind = OpeningQuestions::Kind::data;
    KnownAnswers answers;
    std::unordered_set<std::string> asked;
    std::vector<std::string> pushed;
    FilePosition position;
    ChangesSince since;
  };
  struct Asked {  // a query on its way to the server
    OpenKey open;
    std::string question;
    Version version = 0;
  };
  struct Flushing {
    OpenKey open;
    ChangesSince sent;
  };
  void before_create(const Message& message);
  void before_flush(const Message& message);
  void opened(const Open& open, MessageId by);
  Taken query_info(TimePoint now, const Message& message);
  Taken close(TimePoint now, const Message& message);
  void came(TimePoint now, const Answer& answer, const Slice& response);
  Version version_of(const Open& open, const std::string& question) const;
  void closed(TimePoint now, const Open& open);
  void answer(TimePoint now, const Message& request, const KnownAnswer& known);
  bool correct_position(const Message& message, const Connection::Outcome& outcome);

  // Limit of different queries of one file that are remembered.
  static constexpr std::size_t kMostAsked = 64;

  NearSide& side_;
  OpeningQuestions openings_;
  KnownAnswers::Totals totals_;
  std::unordered_map<OpenKey, File, OpenKeyHash> files_;
  KeyedMap<MessageId, Asked> asked_;
  KeyedMap<MessageId, Flushing> flushing_;
  LocalCloses closing_;
};

}  // namespace longhaul::smb::smb2
