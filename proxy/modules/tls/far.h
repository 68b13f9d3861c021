// SPDX-License-Identifier: Apache-2.0
// The half before the server. It holds the ClientHello back while decision.h decides; for a listed connection it shakes
// hands with the server first (upstream.h), as the client's deputy, and then with the client (downstream.h). After that
// far_plaintext.h carries the plaintext. Any other connection passes as it came.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/modules/tls/decision.h"
#include "proxy/modules/tls/downstream.h"
#include "proxy/modules/tls/far_plaintext.h"
#include "proxy/modules/tls/far_site.h"
#include "proxy/modules/tls/records.h"
#include "proxy/modules/tls/slow_leaf.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

class Far final : public modules::Module {
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
    return waits_for_key() || slow_leaf_ ? std::optional(now_ + Downstream::kLooked) : std::nullopt;
  }
  std::size_t held_bytes() const override { return of_client_bytes() + (plaintext_ ? plaintext_->held_bytes() : 0); }
  std::size_t state_bytes() const override {
    return state_ == State::aside ? 0 : kLegBytes + (plaintext_ ? plaintext_->state_bytes() : 0);
  }
  void give_up_memory(TimePoint) override;
  bool is_private() const override { return wanted_.entry && wanted_.entry->is_private; }
  const modules::Counters& counters() const override {
    const auto* const counters = plaintext_ ? plaintext_->counters() : nullptr;
    return counters ? *counters : no_counters_;
  }
  modules::Reason reason() const override { return reason_; }
  std::string_view detail() const override { return detail_; }

 private:
  static constexpr std::size_t kLegBytes = 64 * 1024;  // about what libssl has for two connections
  enum class State : std::uint8_t {
    hello,      // of the client; nothing has been said to anybody
    asking,     // handshake with the server
    answering,  // handshake with the client
    joined,     // both are done; the client's records still come
    open,       // the stream is plain both ways
    aside,
    over,
  };

  std::size_t of_client_bytes() const { return held_.size() + records_.held_bytes(); }
  bool waits_for_key() const { return client_ && client_->is_waiting(); }
  // Of a client whose direction ends.
  FarPlaintext::CloseNotify close_notify() const {
    return truncated_ ? FarPlaintext::CloseNotify::missing : FarPlaintext::CloseNotify::came;
  }
  void take_records();
  void decide(Decision::Next next);
  void ask_server();
  void shake_with_server();
  bool mint();  // false: it waits for the authority's key, or the connection passes
  void answer();
  void note_refusal(const std::string& why) { detail_ = not_decrypted(wanted_.name, why); }
  void lack_key();
  void lack_authority(const std::string& why);
  void client_shook(Downstream::Next next);
  void end_after_refusal(unsigned long error);
  void give_keys(Bytes last_said);
  void take_resumed(const Resumed& resumed);
  void open_resumed();
  void read_client();
  bool begin_plaintext();
  bool proceed(FarPlaintext::Outcome outcome);  // false: it has failed
  void splice(modules::Reason reason, std::vector<Slice> of_server = {});
  void splice_again(modules::Reason reason);  // with a new connection to the server, while the client knows nothing
  void refuse(modules::Reason reason);        // the same, and remembers it: the next connection passes at once
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
  std::uint64_t client_records_ = 0;
  std::shared_ptr<const Policy> policy_;  // as it was when the connection came
  std::optional<Decision> decision_;      // in State::hello
  Wanted wanted_;
  Certificate leaf_;  // made for this server, where the entry has a mint
  std::shared_ptr<SlowLeaf> slow_leaf_;  // in State::asking, after the handshake with the server
  TimePoint slow_until_{};
  std::unique_ptr<Upstream> server_;
  std::unique_ptr<Downstream> client_;  // while it shakes hands, and until State::open
  std::optional<FarPlaintext> plaintext_;
  bool twin_aside_ = false, lan_ended_ = false, truncated_ = false;
  bool is_resumed_ = false, client_ended_early_ = false;
  modules::Reason reason_{};
  std::string detail_;
  modules::Counters no_counters_;
};

}  // namespace longhaul::tls
