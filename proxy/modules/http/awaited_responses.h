// SPDX-License-Identifier: Apache-2.0
// The requests that an HTTP/1 server has, in order, and what becomes of their responses.
#pragma once
#include <cstdint>
#include <deque>
#include <string>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

struct Awaited {
  RequestHead request;
  std::string key;
  Object asked_about;          // a condition was added for it; null: the request is the client's
  Slice head;                  // the client's, with asked_about
  std::uint64_t erasures = 0;  // ObjectStore::erasures() when it was asked for
};

class AwaitedResponses {
 public:
  void add(Awaited last);
  void pop_first();
  void clear();

  Awaited& first() { return all_.front().awaited; }
  const Awaited& first() const { return all_.front().awaited; }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  std::size_t bytes() const { return bytes_; }
  // Whether one of them, without the first `skipped`, answers a question of this half instead of the client's
  // request.
  bool has_question(std::size_t skipped) const;

 private:
  struct Entry {
    Awaited awaited;
    std::size_t bytes;  // when it was added
  };
  std::deque<Entry> all_;
  std::size_t bytes_ = 0;  // of all
};

}  // namespace longhaul::http
