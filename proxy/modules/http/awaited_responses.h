// SPDX-License-Identifier: Apache-2.0
// The requests that were sent to an HTTP/1 server, in order, and how their responses are used.
#pragma once
#include <cstdint>
#include <deque>
#include <string>

#include "proxy/modules/http/caching.h"

namespace longhaul::http {

struct Awaited {
  RequestHead request;
  std::string key;
  Object asked_about;          // a condition was added for it; null: the request is unchanged
  Slice head;                  // the client's, if asked_about is set
  bool has_body = false;       // the request has
  std::uint64_t erasures = 0;  // ObjectStore::erasures() at the time of the request
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
  // Whether one of the requests, without the first `skipped`, has a condition that this half added.
  bool has_question(std::size_t skipped) const;

 private:
  struct Entry {
    Awaited awaited;
    std::size_t bytes;  // size when it was added
  };
  std::deque<Entry> all_;
  std::size_t bytes_ = 0;  // of all requests
};

}  // namespace longhaul::http
