// SPDX-License-Identifier: Apache-2.0
// The half before the server. It holds the ClientHello back while it decides; for a listed connection it shakes hands
// with the server first, as the client's deputy, and then with the client, with the certificate of [[tls_server]]. Any
// other connection passes as it came.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/plaintext.h"
#include "proxy/modules/tls/leg.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/policy.h"
#include "proxy/modules/tls/records.h"
#include "proxy/modules/tls/remembered.h"
#include "proxy/modules/tls/slow_answer.h"
#include "proxy/modules/tls/traffic.h"
#include "proxy/modules/tls/upstream.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

// What the flows of a daemon share.
struct Site {
  std::shared_ptr<const Policy> policy;  // null: nothing is listed
  Context undecided = make_undecided();  // reads ClientHellos
  Remembered remembered;

 private:
  static Context make_undecided() {
    Context made = context_undecided();
    hand_out_sessions(made.get(), kSessions);
    return made;
  }
};

class Far final : public modules::Module, private LegUser {
 public:
  using TimePoint = modules::TimePoint;
  // A ClientHello that does not end, and what a server says before the client is known.
  static constexpr std::size_t kMostHelloBytes = 64 * 1024, kMostEarlyBytes = 256 * 1024;
  // What a client that has resumed says before the server has shaken hands.
  static constexpr std::size_t kMostResumedBytes = 16 * 1024 * 1024;

  // `dialled`: the server's address, also where it was given by name.
  Far(const modules::Ends& ends, const modules::Address& dialled, std::shared_ptr<Site> site, modules::PlaintextReaders readers = {});

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint now, Slice message) override;
  void lan_ended(TimePoint now, modules::Ending ending) override;
  void stream_ended(TimePoint now, modules::Ending ending) override;
  void twin_stepped_aside(TimePoint now) override;
  void on_timeout(TimePoint now) override;
  void on_room(TimePoint now, const modules::Room& room) override;
  std::optional<modules::Output> poll_output() override { return out_.poll(); }
  std::optional<TimePoint> next_timeout() const override {
    return slow_ ? std::optional(now_ + kLooked) : std::nullopt;
  }
  std::size_t held_bytes() const override { return of_client_bytes() + (reader_ ? reader_->held_bytes() : 0); }
  std::size_t state_bytes() const override {
    return state_ == State::aside ? 0 : kLegBytes + (reader_ ? reader_->state_bytes() : 0);
  }
  void give_up_memory(TimePoint) override;
  bool is_private() const override { return entry_ && entry_->is_private; }
  const modules::Counters& counters() const override { return reader_ ? reader_->counters() : counters_; }
  modules::Reason reason() const override { return reason_; }
  std::string_view detail() const override { return detail_; }

 private:
  static constexpr std::size_t kLegBytes = 64 * 1024;  // about what libssl has for two connections
  // For a key that another device holds: how often it is looked whether it has signed, which takes 1 to 50
  // ms, and after how long it is not waited for.
  static constexpr modules::Duration kLooked = std::chrono::milliseconds(1),
                                     kSlowest = std::chrono::seconds(5);
  enum class State : std::uint8_t {
    hello,      // of the client; nothing has been said to anybody
    asking,     // handshake with the server
    answering,  // handshake with the client
    joined,     // both are done; the client's records still come
    open,       // the stream is plain both ways
    aside,
    over,
  };

  // LegUser
  int on_client_hello(SSL* ssl) override;
  Bytes choose_protocol() const override { return server_->protocol(); }
  Bytes certificate_status(const X509* certificate) const override { return server_->status_of(certificate); }
  void on_secret(std::string_view line) override { secrets_.note(line); }
  void on_new_session(SSL_SESSION* session) override { keep_session(session_bytes(session)); }

  void keep_session(const SessionBytes& made);
  std::size_t of_client_bytes() const { return held_.size() + records_.held_bytes(); }
  void take_records();
  void decide(int result);
  void ask_server();
  void shake_with_server();
  bool mint();
  void note_refusal(const std::string& why);
  void say_to_server();
  void shake_with_client();
  void shake_slowly();
  void take_answer();
  void lack_key(const std::string& why);
  void client_shook(int result, unsigned long error);
  void end_after_refusal(unsigned long error);
  void give_keys(Bytes last_said);
  void take_resumed(const Resumed& resumed);
  void open_resumed();
  void read_client();
  void tell_said(Bytes plain);
  void read_server();
  void server_failed();
  void to_server(Bytes plain);
  void end_server(bool orderly);
  void begin_to_read();
  void read_outputs();
  void splice(modules::Reason reason, std::vector<Slice> of_server = {});
  void splice_again(modules::Reason reason);  // with a new connection to the server, while the client knows nothing
  void refuse(modules::Reason reason);        // the same, and remembers it: the next connection passes at once
  void fail();
  Remembered::Key key(bool of_client) const;

  modules::PlaintextReaders readers_;
  std::unique_ptr<modules::Module> reader_;  // the far half of the module that reads the plaintext
  modules::Surroundings told_;
  modules::Ends ends_;  // with the server's address, also where it was given by name
  std::shared_ptr<Site> site_;
  twin::Outputs<Message> out_;
  State state_ = State::hello;
  TimePoint now_{};
  Buffer held_;      // of the client, for the case that the connection is not terminated; of one that resumed, plaintext
  Records records_;  // of the client
  std::uint64_t client_records_ = 0;
  std::unique_ptr<Leg> client_;
  std::unique_ptr<Upstream> server_;
  std::shared_ptr<const Policy> policy_;  // as it was when the connection came
  const Entry* entry_ = nullptr;          // of policy_
  std::shared_ptr<SlowAnswer> slow_;      // has client_ then
  TimePoint slow_until_{};
  Certificate leaf_;                      // made for this server, where entry_ has a mint
  std::optional<modules::Reason> passes_;  // why it is not terminated, after its ClientHello
  std::string name_;
  Buffer protocols_;  // as the client offered them
  TrafficSecrets secrets_;
  std::size_t said_bytes_ = 0;  // with Said
  bool asks_status_ = false, twin_aside_ = false, lan_ended_ = false, truncated_ = false;
  std::vector<Message> sessions_;  // until the near half has the keys
  bool is_resumed_ = false, client_ended_early_ = false;
  bool client_done_ = false;  // its direction has ended
  bool client_was_orderly_ = false, server_was_cut_ = false, server_done_ = false;
  modules::Reason reason_{};
  std::string detail_;
  modules::Counters counters_;
};

}  // namespace longhaul::tls
