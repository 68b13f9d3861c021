// SPDX-License-Identifier: Apache-2.0
// Prefetch over HTTP/2: fetches the objects that pages embed, on streams of the far half's connection to the
// server (streams.h), a few at a time, and pushes them.
#pragma once
#include <map>
#include <string>

#include "proxy/modules/http/h2/session.h"
#include "proxy/modules/http/prefetch/fetching.h"
#include "proxy/modules/http/prefetch/pushing.h"

namespace longhaul::http::h2 {

class Ahead {
 public:
  using TimePoint = link::TimePoint;
  // Concurrent requests: enough to hide the LAN's round trips, but few, so that the first objects complete
  // first.
  static constexpr std::size_t kMostStreams = 4;

  // The arguments outlive this object.
  Ahead(Fetching& fetching, Pushing& pushing, std::string scheme) : fetching_(fetching), pushing_(pushing), scheme_(std::move(scheme)) {}

  // For a response to the client, before its content. Returns nullopt if it is not a page.
  std::optional<Fetching::Document> begins(TimePoint now, const RequestHead& request, const ResponseHead& response) {
    auto document = fetching_.begins(now, request, response);
    pushing_.dropped(fetching_);
    return document;
  }
  void read(TimePoint now, Fetching::Document& document, Bytes content);
  void fetch(Session& server);
  void stop();

  // Events of streams. Return false if the stream does not belong to a prefetch.
  bool on_headers(TimePoint now, Session& server, StreamId stream, const Fields& block, bool ends);
  bool on_data(TimePoint now, Session& server, StreamId stream, Bytes bytes);
  bool on_end(StreamId stream);
  bool on_closed(Session& server, StreamId stream);

  std::uint64_t injected() const { return injected_; }

 private:
  struct Stream {
    Fetching::Next object;
    bool is_used = false, ended = false;  // a usable head has arrived; the object is complete or dropped
    std::uint64_t bytes = 0;
    std::optional<Fetching::Document> document;
  };
  void drop(Session& server, StreamId stream, Stream& object);

  Fetching& fetching_;
  Pushing& pushing_;
  std::string scheme_;
  std::map<StreamId, Stream> streams_;
  std::uint64_t injected_ = 0;
};

}  // namespace longhaul::http::h2
