// SPDX-License-Identifier: Apache-2.0
// The half before the server. It holds the ClientHello back while decision.h decides; for a listed connection
// handshakes.h shakes hands with the server first, and then with the client. After that far_plaintext.h
// carries the plaintext. Any other connection passes as it came.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/tls/decision.h"
#include "proxy/modules/tls/far_plaintext.h"
#include "proxy/modules/tls/far_site.h"
#include "proxy/modules/tls/handshakes.h"
#include "proxy/modules/tls/records.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

class Far final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;
  // A ClientHello that does not end.
  static constexpr std::size_t kMostHelloBytes = 64 * 1024;
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
    return is_waiting() ? std::optional(now_ + Downstream::kLooked) : std::nullopt;
  }
  std::size_t held_bytes() const override { return of_client_bytes() + (plaintext_ ? plaintext_->held_bytes() : 0); }
  std::size_t state_bytes() const override {
    return state_ == State::aside ? 0 : kLegBytes + (plaintext_ ? plaintext_->state_bytes() : 0);
  }
  void give_up_memory(TimePoint) override;
  bool is_private() const override { return wanted_.entry && wanted_.entry->is_private; }
  const modules::Counters& counters() const override {
    return plaintext_ && plaintext_->counters() ? *plaintext_->counters() : no_counters_;
  }
  modules::Reason reason() const override { return reason_; }
  std::string_view detail() const override { return detail_; }

 private:
  static constexpr std::size_t kLegBytes = 64 * 1024;  // about what libssl has for two connections
  enum class State : std::uint8_t {
    hello,    // of the client; nothing has been said to anybody
    shaking,  // handshakes with the server, then with the client
    joined,   // both are done; the client's records still come
    open,     // the stream is plain both ways
    aside,
    ending,  // the client has ended during its handshake: only ends pass
    over,
  };

  std::size_t of_client_bytes() const { return held_.size() + records_.held_bytes(); }
  bool is_asking() const { return handshakes_ && handshakes_->is_asking(); }
  bool is_waiting() const { return handshakes_ && handshakes_->waits_for_key(); }
  bool reads_client() const;
  void take_records();
  void decide(Decision::Next next);
  void take_resumed(const Resumed& resumed);
  void shake_hands(std::unique_ptr<Leg> hello);
  void after(Handshakes::Next next);
  void join();
  void read_client(Bytes record);
  FarPlaintext::Outcome end_of_client();        // of its direction
  bool proceed(FarPlaintext::Outcome outcome);  // false: it has failed
  void let_end();
  void splice(modules::Reason reason, std::vector<Slice> of_server = {});
  // The same with a new connection to the server, while the client knows nothing.
  void splice_again(modules::Reason reason);
  void fail();

  modules::PlaintextReaders readers_;
  modules::Surroundings told_;
  modules::Ends ends_;  // with the server's address, also where it was given by name
  std::shared_ptr<Site> site_;
  twin::Outputs<Message> out_;
  State state_ = State::hello;
  TimePoint now_{};
  Buffer held_;      // of the client, for the case that the connection is not terminated; of one that resumed, plaintext
  Records records_;  // of the client
  std::shared_ptr<const Policy> policy_;  // as it was when the connection came
  std::optional<Decision> decision_;      // in State::hello
  Wanted wanted_;
  std::optional<Handshakes> handshakes_;  // in State::shaking
  std::unique_ptr<Upstream> server_;      // from State::joined on
  std::unique_ptr<Downstream> client_;    // in State::joined
  std::optional<FarPlaintext> plaintext_;
  bool twin_aside_ = false, lan_ended_ = false, truncated_ = false;
  bool is_resumed_ = false, client_ended_early_ = false;
  std::optional<std::uint8_t> client_alert_;  // how its direction ends
  modules::Reason reason_{};
  std::string detail_;
  modules::Counters no_counters_;
};

}  // namespace longhaul::tls
