// SPDX-License-Identifier: Apache-2.0
// The half before the client. It passes the client's records on until the far half has shaken hands with the client, and
// takes the record layer over then, with secrets that it holds in memory for the lifetime of the connection. A client that
// resumes a session of before shakes hands with this half alone. It has no certificate and no key of a server. Another
// module may read the plaintext (modules/plaintext.h).
#pragma once
#include <optional>
#include <string>

#include "proxy/modules/module.h"
#include "proxy/modules/plaintext.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/records.h"
#include "proxy/modules/tls/resumer.h"
#include "proxy/modules/tls/sealed_client.h"
#include "proxy/modules/twin/attachment.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

// What the flows of a daemon share.
struct NearSite {
  Sessions sessions;
  Context resuming = context_to_resume();
};

class Near final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;
  // Of a client that may resume, and of a server before such a client is done.
  static constexpr std::size_t kMostHelloBytes = 64 * 1024, kMostEarlyBytes = 256 * 1024;
  // Of a client between the server's Finished and its first record of data: ChangeCipherSpec, Finished, an
  // alert.
  static constexpr std::uint64_t kMostHandshakeRecords = 16;

  Near(const modules::Ends& ends, modules::PlaintextReaders readers, std::shared_ptr<NearSite> site)
      : ends_(ends), readers_(std::move(readers)), site_(std::move(site)) {}

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
    return records_.held_bytes() + of_reader_.held_bytes() + tried_.size() + early_.size() + (plaintext_ ? plaintext_->held_bytes() : 0);
  }
  std::size_t queued_bytes() const override { return plaintext_ ? plaintext_->queued_bytes() : 0; }
  std::size_t state_bytes() const override { return plaintext_ ? plaintext_->state_bytes() : 0; }
  void give_up_memory(TimePoint now) override;
  bool is_private() const override { return is_private_; }
  const modules::Counters& counters() const override { return plaintext_ ? plaintext_->counters() : no_counters_; }
  modules::Reason reason() const override { return plaintext_ ? plaintext_->reason() : reason_; }
  std::string_view detail() const override { return detail_; }

 private:
  enum class State : std::uint8_t {
    handshake,  // records of both pass as they are, unless the client may resume
    resuming,   // the client has resumed, and its Finished is awaited
    open,       // sealed towards the client, plain in the stream
    aside,
    over,       // nothing is said or heard any more
  };

  void begin_to_resume();
  void pass_records(TimePoint now);
  void pass(Bytes record);
  void try_to_resume(TimePoint now, Bytes record);
  void pass_tried();
  void resume_records(TimePoint now);
  void take_session(TimePoint now, const Session& session);
  void forget_sessions();
  void open(TimePoint now, const std::string& name);
  void take_keys(TimePoint now, const Keys& keys);
  void take_said(TimePoint now, const Said& said);
  void take_alert(std::uint8_t description);
  void end_client();
  void end_stream();
  void pass_handshake();
  void open_records(TimePoint now);
  void read_plaintext();
  void step_aside(modules::Reason reason);

  twin::Outputs<Message> out_;
  State state_ = State::handshake;
  Records records_;  // of the client
  std::uint64_t passed_ = 0;
  std::optional<Resumer> resumer_;  // while the client may resume
  Buffer tried_;   // of the client, in case that it does not
  Buffer early_;   // of a server that speaks before the client is done
  Sessions::Place place_;
  bool is_resumed_ = false, is_private_ = false;
  bool is_answered_ = false;  // the server's side has said something
  std::size_t sessions_ = 0;  // that the far half gave
  std::string name_;          // of the server, when open
  std::uint64_t handshake_records_ = 0;  // of the client since early keys came
  std::uint64_t unheard_ = 0;  // of these: with plaintext that this half does not know yet (Said)
  std::optional<SealedClient> client_;  // in State::open
  bool is_taken_ =
      false;  // in State::open: the client's records are decrypted here; before, its handshake goes on
  bool client_closed_ = false, lan_ended_ = false, truncated_ = false;
  bool client_was_reset_ = false, stream_is_over_ = false;
  std::optional<std::uint8_t> alert_;  // of the server: how the connection ends
  bool server_ended_ = false;          // with that alert
  modules::Reason reason_{};
  modules::Ends ends_;
  modules::PlaintextReaders readers_;
  std::shared_ptr<NearSite> site_;
  modules::Surroundings told_;
  twin::Attachment<Message> of_reader_;         // a message of the reader's far half that is arriving
  std::optional<modules::Plaintext> plaintext_;  // in State::open
  std::string detail_;
  modules::Counters no_counters_;
};

}  // namespace longhaul::tls
