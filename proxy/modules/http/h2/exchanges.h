// SPDX-License-Identifier: Apache-2.0
// Requests with their responses between two HTTP/2 connections, on each of which the same request has a
// different stream. streams.h decides what happens to them.
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

// Informational responses (1xx) before one response: how many pass, and of what size together. Indexed fields
// make a thousand times as much of few bytes.
class Informed {
 public:
  static constexpr unsigned kMost = 8;
  static constexpr std::size_t kMostBytes = Session::kMostBlockBytes;
  // One more. False: it is too much.
  bool take(const Fields& block) {
    bytes_ += memory_of(block);
    return ++count_ <= kMost && bytes_ <= kMostBytes;
  }

 private:
  unsigned count_ = 0;
  std::size_t bytes_ = 0;
};

struct Exchange {
  StreamId client = 0, server = 0;     // 0: none, or over
  std::optional<RequestHead> request;  // nothing: not for the cache
  std::string key;
  Fields block;            // the client's, as long as it may have to be said again
  bool asks = false;       // with content
  bool is_tunnel = false;  // CONNECT, extended or not
  Object asked_about;      // a condition was added for it
  DiskWait disk_wait;
  std::uint64_t erasures = 0;
  std::size_t bytes = 0;
  Informed informed;
  bool is_refused = false;  // its response: the server's stream is being reset
  Source up, down;
  bool responded = false, is_from_store = false, end_sent = false;
  std::optional<Incoming> incoming;
  std::optional<Fetching::Document> document;  // at the far half
};

class Exchanges {
 public:
  // Null: there is none. The client's name stays until both sides are over, the server's until leave().
  Exchange* of_client(StreamId stream) const;
  Exchange* of_server(StreamId stream) const;

  // For a new stream of the client.
  Exchange& open(StreamId stream, Fields block);
  // It was asked on this stream of the server.
  void join(Exchange& exchange, StreamId server);
  // What else comes on the server's stream is nobody's.
  void leave(Exchange& exchange);
  // Both sides are over.
  void erase(const Exchange& exchange);

  std::size_t size() const { return exchanges_.size(); }
  std::size_t size_at_server() const { return by_server_.size(); }
  // Of fields, and of responses that are coming; the sources are not included.
  std::size_t memory_bytes() const;
  // By the client's stream.
  const std::map<StreamId, std::unique_ptr<Exchange>>& all() const { return exchanges_; }

 private:
  std::map<StreamId, std::unique_ptr<Exchange>> exchanges_;
  std::map<StreamId, Exchange*> by_server_;
  std::size_t bytes_ = 0;
};

}  // namespace longhaul::http::h2
