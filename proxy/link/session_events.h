// SPDX-License-Identifier: Apache-2.0
// A session's events for its driver, in order. At most one event of a kind and stream is pending, however
// often it happens.
#pragma once
#include <deque>
#include <optional>

#include "proxy/link/stream_table.h"

namespace longhaul::link {

struct Event {
  enum class Kind : std::uint8_t {
    stream,        // see `stream` and `stream_event`
    peer_allows,   // Incoming::peer_allowed() changed
    path_silent,   // nothing is received; new flows should bypass the link
    path_alive,    // something is received again
    peer_closing,  // the peer sent CLOSE; Incoming::close_reason() has the reason
    expired,       // the session is over: the peer broke the protocol, or there was no carrier for too long
  } kind = Kind::stream;
  StreamId stream;
  EventKind stream_event = EventKind::readable;
};

class SessionEvents {
 public:
  explicit SessionEvents(StreamTable& streams) : streams_(streams) {}

  void tell(Event::Kind kind) {
    if (kind == Event::Kind::peer_allows && std::exchange(told_peer_allows_, true)) return;
    events_.push_back({.kind = kind});
  }
  void tell(StreamEntry& stream, EventKind kind) {
    if (stream.released || !stream.begun) return;
    if (bool* told = mark(stream, kind); told && std::exchange(*told, true)) return;
    events_.push_back({.kind = Event::Kind::stream, .stream = stream.id, .stream_event = kind});
  }
  // Drops the events of streams that no longer exist.
  std::optional<Event> poll() {
    while (!events_.empty()) {
      const Event event = events_.front();
      events_.pop_front();
      if (event.kind == Event::Kind::peer_allows) told_peer_allows_ = false;
      if (event.kind != Event::Kind::stream) return event;
      Stream* stream = streams_.find(event.stream);
      if (!stream || stream->entry().released) continue;
      // `stopped` happens once.
      if (bool* told = mark(stream->entry(), event.stream_event);
          told && event.stream_event != EventKind::stopped)
        *told = false;
      return event;
    }
    return std::nullopt;
  }

 private:
  static bool* mark(StreamEntry& stream, EventKind kind) {
    switch (kind) {
      case EventKind::readable:
        return &stream.told_readable;
      case EventKind::writable:
        return &stream.told_writable;
      case EventKind::features:
        return &stream.told_features;
      case EventKind::stopped:
        return &stream.told_stopped;
      default:
        return nullptr;
    }
  }

  StreamTable& streams_;
  std::deque<Event> events_;
  bool told_peer_allows_ = false;  // an event is pending in events_
};

}  // namespace longhaul::link
