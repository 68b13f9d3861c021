// SPDX-License-Identifier: Apache-2.0
// How a stream begins: the opener's first record is OPEN, the other side's is ANSWER. Keeps both, and checks
// which records the peer may send before and after them.
#pragma once
#include <memory>
#include <optional>

#include "proxy/link/records.h"

namespace longhaul::link {

class StreamOpening {
 public:
  StreamOpening() = default;  // the peer opens the stream
  explicit StreamOpening(OpenRequest request)
      : request_(std::make_unique<OpenRequest>(std::move(request))), opened_here_(true) {}

  bool opened_here() const { return opened_here_; }
  bool begun() const { return request_ != nullptr; }
  OpenRequest& request() { return *request_; }
  const OpenRequest& request() const { return *request_; }
  const std::optional<OpenAnswer>& answer() const { return answer_; }

  void on_open(OpenRequest request) { request_ = std::make_unique<OpenRequest>(std::move(request)); }
  // The peer's, or this side's.
  void on_answer(const OpenAnswer& answer) { answer_ = answer; }

  // Whether the peer may send such a record now. Before ANSWER, only END or ABORT may follow the opener's
  // first record.
  bool permits(RecordType type) const {
    const bool first_came = opened_here_ ? answer_.has_value() : begun();
    switch (type) {
      case RecordType::open:
        return !opened_here_ && !first_came;
      case RecordType::answer:
        return opened_here_ && !first_came;
      case RecordType::end:
      case RecordType::abort:
        return opened_here_ || first_came;
      default:
        return first_came;
    }
  }

 private:
  std::unique_ptr<OpenRequest> request_;
  std::optional<OpenAnswer> answer_;
  bool opened_here_ = false;
};

}  // namespace longhaul::link
