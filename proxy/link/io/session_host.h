// SPDX-License-Identifier: Apache-2.0
// Runs a session on the event loop: its deadline, its turns, its events for the flows, and its end, which
// takes several turns. The owner provides the carriers.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "codecs/keyed_hash.h"
#include "proxy/link/io/session_codec.h"
#include "proxy/link/session.h"

namespace longhaul::link {

// A flow on the link. Called from the event loop, never from inside a call by the flow itself.
class StreamUser {
 public:
  virtual ~StreamUser() = default;
  // After EventKind::reset the stream must be released and not used again.
  virtual void on_stream_event(EventKind kind) = 0;
};

class SessionHost {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The session received or sent bytes: events may be waiting, deadlines may have moved.
    virtual void after_activity() = 0;
    // The session may have data to send.
    virtual void kick() = 0;
    virtual void on_opened(Stream& stream) = 0;  // by the peer
    virtual void on_session_event(const Event& event) = 0;
    virtual void on_failure(const std::string& why) = 0;  // the session has failed
    // Whether the streams of an ended session must be kept for now.
    virtual bool keeps_streams() const = 0;
  };

  SessionHost(boost::asio::io_context& io, Owner& owner);
  ~SessionHost();
  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;

  // `id` identifies the session for both sides.
  void begin(const SessionConfig& config, CreditPool& pool, RetainedBudget& retained,
             std::unique_ptr<reduction::Reduction> codec, const Token& id);
  Session* session() const { return session_.get(); }
  const Token& id() const { return id_; }
  Side side() const { return side_; }  // this site's side; does not change with later dials
  void fill(LinkStatus& status) const;
  // Whether there is a session that a new connection may continue.
  bool resumable() const { return session_ && !ending_; }
  SessionCodec& codec() { return codec_; }
  const SessionCodec& codec() const { return codec_; }

  void give_user(StreamId stream, StreamUser& user) { users_[stream] = &user; }
  void release(StreamId stream);

  // ---- To be called after every use of the session. Expired: the session is over, and end() must be called.
  enum class Delivered : std::uint8_t { nested, all, expired };
  Delivered deliver_events();
  void arm_timer();
  // Continues remaining work after everything else that is queued in the event loop.
  void go_on_later();
  // Data that the codec waited for has arrived.
  void on_codec_ready();

  // ---- The end. No other session may begin before this one has ended.
  // Returns false if there is no session, or it is already ending.
  bool end();
  bool ending() const { return ending_; }
  boost::asio::awaitable<void> wait_for_end();
  // For the end of the daemon: stops all timers.
  void stop();

 private:
  void go_on();
  void end_more_later();
  void end_more();

  boost::asio::io_context& io_;
  Owner& owner_;
  SessionCodec codec_;  // outlives the session
  std::unique_ptr<Session> session_;
  Token id_{};
  Side side_ = Side::dialler;
  KeyedMap<StreamId, StreamUser*> users_;
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_at_;
  boost::asio::steady_timer ended_timer_;  // never due; cancelled when the session has ended
  bool goes_on_ = false;                   // another turn is scheduled
  bool delivering_ = false, ending_ = false, stopped_ = false;
  std::shared_ptr<SessionHost*> self_;
};

}  // namespace longhaul::link
