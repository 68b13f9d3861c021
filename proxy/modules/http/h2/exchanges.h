// SPDX-License-Identifier: Apache-2.0
// Pairs of a request and its response between two HTTP/2 connections. Each pair has one stream on either
// connection, with different numbers. streams.h decides what happens to them.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "proxy/modules/http/h2/ahead.h"
#include "proxy/modules/http/h2/session.h"
#include "proxy/modules/http/incoming.h"
#include "proxy/modules/http/on_disk.h"

namespace longhaul::http::h2 {

std::size_t memory_of(const Fields& fields);

// Limits the informational responses (1xx) before one response, by number and total size: HPACK can expand a
// few bytes a thousandfold.
class Informed {
 public:
  static constexpr unsigned kMost = 8;
  static constexpr std::size_t kMostBytes = Session::kMostBlockBytes;
  // Counts one more; returns false if it exceeds a limit.
  bool take(const Fields& block) {
    bytes_ += memory_of(block);
    return ++count_ <= kMost && bytes_ <= kMostBytes;
  }

 private:
  unsigned count_ = 0;
  std::size_t bytes_ = 0;
};

struct Exchange {
  StreamId client = 0, server = 0;     // 0: none, or closed
  std::optional<RequestHead> request;  // none: not for the cache
  std::string key;
  Fields block;            // the client's, while it may have to be sent again
  bool asks = false;       // the request has content
  bool is_tunnel = false;  // CONNECT, extended or not
  Object asked_about;      // a condition was added for it
  DiskWait disk_wait;
  std::uint64_t erasures = 0;
  std::size_t bytes = 0;
  Informed informed;
  bool is_refused = false;  // its response: the server's stream is being reset
  Source up, down;
  std::uint64_t read_at_once = 0;  // bytes of the response, since its window was increased
  bool responded = false, is_from_store = false, end_sent = false;
  std::optional<Incoming> incoming;
  std::optional<Fetching::Document> document;  // at the far half
};

class Exchanges {
 public:
  // Null if there is none. of_client() finds an exchange until erase(), of_server() until leave().
  Exchange* of_client(StreamId stream) const;
  Exchange* of_server(StreamId stream) const;

  // For a new stream of the client.
  Exchange& open(StreamId stream, Fields block);
  // The request was sent on this stream to the server.
  void join(Exchange& exchange, StreamId server);
  // Further frames on the server's stream are ignored.
  void leave(Exchange& exchange);
  // Both streams are closed.
  void erase(const Exchange& exchange);

  std::size_t size() const { return exchanges_.size(); }
  std::size_t size_at_server() const { return by_server_.size(); }
  // Header fields and responses in transit; the sources are not included.
  std::size_t memory_bytes() const;
  // By the client's stream.
  const std::map<StreamId, std::unique_ptr<Exchange>>& all() const { return exchanges_; }

 private:
  std::map<StreamId, std::unique_ptr<Exchange>> exchanges_;
  std::map<StreamId, Exchange*> by_server_;
  std::size_t bytes_ = 0;
};

}  // namespace longhaul::http::h2
