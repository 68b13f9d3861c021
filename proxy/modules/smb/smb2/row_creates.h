// SPDX-License-Identifier: Apache-2.0
// The unanswered CREATEs of the client that may continue a row (opening_row.h), and the queries that the near
// half expects from the client about the file of each. Pure.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb2/connection.h"
#include "proxy/modules/smb/smb2/opening_row.h"
#include "proxy/modules/smb/smb2/question.h"

namespace longhaul::smb::smb2 {

class RowCreates {
 public:
  bool full() const { return creates_.size() >= kMost; }
  void add(MessageId create) { creates_.insert(create); }
  // Returns false if there are more than our near half expects at a time.
  bool expect(MessageId create, const Slice& question) {
    if (expected_.size() >= Connection::kMostPending) return false;
    const auto query = request_of(question.bytes());
    std::vector<Slice>& questions = expected_[create];
    if (query && query->type == InfoType::file && questions.size() < OpeningRow::kMostQuestions)
      questions.push_back(question);
    return true;
  }

  void failed(MessageId create) {
    creates_.erase(create);
    expected_.erase(create);
  }
  struct Done {
    bool in_row = false;
    std::optional<std::vector<Slice>> questions;  // nullopt: no queries of a CREATE in a row were announced
  };
  Done opened(MessageId create) {
    auto expected = expected_.extract(create);
    Done done{.in_row = creates_.erase(create) != 0, .questions = std::nullopt};
    if (done.in_row && !expected.empty()) done.questions = std::move(expected.mapped());
    return done;
  }

 private:
  static constexpr std::size_t kMost = 1024;

  KeyedSet<MessageId> creates_;
  KeyedMap<MessageId, std::vector<Slice>> expected_;
};

}  // namespace longhaul::smb::smb2
