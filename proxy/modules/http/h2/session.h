// SPDX-License-Identifier: Apache-2.0
// One HTTP/2 connection (RFC 9113) of libnghttp2 in memory, as its server or its client: exchanges frames
// with the network, and whole header blocks and content with the user. Received content counts against the
// windows until it is consumed().
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "codecs/byte_writer.h"
#include "codecs/slice_queue.h"
#include "proxy/modules/http/h2/long_responses.h"
#include "proxy/modules/http/h2/stream_history.h"
#include "proxy/modules/http/h2/turns.h"
#include "proxy/modules/http/head.h"

struct nghttp2_session;

namespace longhaul::http::h2 {

using StreamId = std::int32_t;

// RFC 9113, section 7.
namespace errors {
inline constexpr std::uint32_t none = 0, protocol = 1, internal = 2, closed = 5, refused = 7, cancel = 8, calm = 11;
}

// Content still to be sent on a stream.
struct Source {
  SliceQueue pieces;
  bool ended = false;  // no more content follows, except
  std::optional<Fields> trailers;

  std::uint64_t bytes() const { return pieces.size(); }
  void add(Slice piece) { pieces.push(std::move(piece)); }
  // Small pieces share memory: frames of one byte would otherwise take a hundred times their size.
  void add_copy(Bytes piece) { pieces.push_copy(piece); }
  void clear() { pieces.drop_until(pieces.end_offset()); }
};

class SessionUser {
 public:
  virtual ~SessionUser() = default;
  // A whole block, pseudo-header fields first. `ends`: it is the last on the stream, and there is no
  // on_end().
  virtual void on_headers(StreamId stream, Fields block, bool ends) = 0;
  virtual void on_data(StreamId stream, Bytes bytes) = 0;
  virtual void on_end(StreamId stream) = 0;
  virtual void on_closed(StreamId stream, std::uint32_t error) = 0;
  virtual void on_goaway() = 0;
  virtual void on_sent(StreamId stream, std::size_t bytes) = 0;  // bytes of its Source
  virtual void on_end_sent(StreamId stream) = 0;
};

class Session {
 public:
  static constexpr std::size_t kMostBlockBytes = 64 * 1024;
  enum class Role : std::uint8_t { server, client };
  using Settings = std::vector<std::pair<std::uint16_t, std::uint32_t>>;

  // `user` outlives this object. Throws std::bad_alloc.
  Session(Role role, SessionUser& user);
  Session(Session&&) = delete;
  ~Session();

  // Returns false if the connection cannot be continued.
  bool feed(Bytes bytes);
  // Appends whole frames until `out` has at least `enough` bytes; appends nothing if there is nothing to send
  // now.
  void drain(Buffer& out, std::size_t enough);
  // Neither side will send anything more.
  bool is_over() const;
  // Whether the peer has violated the RFC.
  bool has_complained() const { return complained_; }

  void announce(const Settings& settings, std::int32_t connection_window);
  // Whether the peer, a server, accepts extended CONNECT (RFC 8441, section 3).
  bool peer_takes_tunnels() const;
  void widen(StreamId stream, std::int32_t window_more);  // 0: the connection's
  // Doubles the window of an open stream up to `most`, and increases the connection's by as much, up to
  // `most_together`.
  void grow(StreamId stream, std::int32_t most, std::int32_t most_together);
  // What the peer may send on this stream without waiting, in bytes; 0: it is closed.
  std::int32_t window(StreamId stream) const;

  // The sources live until on_closed(). Null: there is only the block. Returns nullopt if the request is
  // refused.
  std::optional<StreamId> request(const Fields& block, Source* content);
  void use_next(StreamId stream);                     // for the next request()
  void inform(StreamId stream, const Fields& block);  // 1xx
  void respond(StreamId stream, const Fields& block, Source* content);
  void resume(StreamId stream);  // its source has more content
  // As a server: this stream's data does not wait for the responses on other streams.
  void add_tunnel(StreamId stream);
  void reset(StreamId stream, std::uint32_t error);
  // Received content was passed on. 0: its stream is closed, and only the connection's window is increased.
  void consumed(StreamId stream, std::size_t bytes);
  // Refuses further streams of the peer; existing ones continue.
  void say_goodbye(std::uint32_t error = errors::none);
  // Sends GOAWAY, and nothing else.
  void terminate(std::uint32_t error);

 private:
  friend struct Callbacks;
  void take_turns();

  SessionUser& user_;
  nghttp2_session* session_ = nullptr;
  Fields block_;  // of the block being received
  std::size_t block_bytes_ = 0;
  Turns turns_;
  LongResponses long_;  // of a server
  const Role role_;
  StreamHistory history_;  // if this is a server
  StreamId reset_ = 0;     // the last stream that this side has reset
  bool complained_ = false, said_goodbye_ = false;
};

}  // namespace longhaul::http::h2
