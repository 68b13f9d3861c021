// SPDX-License-Identifier: Apache-2.0
// The half before the client. It passes the client's records on until the far half has shaken hands with the client, and
// takes the record layer over then, with secrets that it holds in memory for the lifetime of the connection. It has no
// certificate and no key of a server. Another module may read the plaintext (modules/plaintext.h).
#pragma once
#include <optional>
#include <string>

#include "crypto/tls_records.h"
#include "proxy/modules/module.h"
#include "proxy/modules/plaintext.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/records.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

class Near final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;

  Near(const modules::Ends& ends, modules::PlaintextReaders readers) : ends_(ends), readers_(std::move(readers)) {}

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
    return plaintext_ ? plaintext_->next_timeout() : std::nullopt;
  }
  std::size_t held_bytes() const override {
    return records_.held_bytes() + (plaintext_ ? plaintext_->held_bytes() : 0);
  }
  std::size_t queued_bytes() const override { return plaintext_ ? plaintext_->queued_bytes() : 0; }
  std::size_t state_bytes() const override { return plaintext_ ? plaintext_->state_bytes() : 0; }
  void give_up_memory(TimePoint now) override;
  const modules::Counters& counters() const override { return plaintext_ ? plaintext_->counters() : no_counters_; }
  modules::Reason reason() const override { return plaintext_ ? plaintext_->reason() : reason_; }
  std::string_view detail() const override { return detail_; }

 private:
  enum class State : std::uint8_t {
    handshake,  // records of both pass as they are
    open,       // sealed towards the client, plain in the stream
    aside,
    over,       // nothing is said or heard any more
  };

  void pass_records();
  void take_keys(TimePoint now, const Keys& keys);
  void take_said(TimePoint now, const Said& said);
  void open_records(TimePoint now);
  bool on_alert(Bytes alert);
  bool on_handshake_message(Bytes message);
  void read_plaintext();
  void seal(ContentType type, Bytes plain);
  void seal_data(Bytes plain);
  void fail(std::uint8_t alert);
  void step_aside(modules::Reason reason);

  twin::Outputs<Message> out_;
  State state_ = State::handshake;
  Records records_;  // of the client
  std::uint64_t passed_ = 0;
  std::uint64_t unheard_ = 0;  // of these: with plaintext that this half does not know yet (Said)
  std::optional<RecordOpener> opener_;
  std::optional<RecordSealer> sealer_;
  std::uint64_t sealed_bytes_ = 0;  // under this key
  bool client_closed_ = false, lan_ended_ = false, truncated_ = false;
  modules::Reason reason_{};
  modules::Ends ends_;
  modules::PlaintextReaders readers_;
  modules::Surroundings told_;
  std::optional<modules::Plaintext> plaintext_;  // in State::open
  std::string detail_;
  modules::Counters no_counters_;
};

}  // namespace longhaul::tls
