// SPDX-License-Identifier: Apache-2.0
// The plaintext of one connection at the far half: between the stream and the server, through the far half of
// the module that parses it (HTTP/2), if there is one. plaintext.h is the same for the near half.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "proxy/modules/plaintext.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/upstream.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

// Sends libssl's output to the server.
void flush(Upstream& server, twin::Outputs<Message>& out);

class FarPlaintext {
 public:
  using TimePoint = modules::TimePoint;
  // `server` has completed its handshake. Both outlive this object.
  FarPlaintext(twin::Outputs<Message>& out, Upstream& server) : out_(out), server_(server) {}

  // Failed: nothing more may be sent to either end.
  enum class Outcome : std::uint8_t { goes_on, failed };

  // Creates the reader of the negotiated protocol, if one matches. To be called first; without a reader,
  // bytes pass unchanged.
  Outcome begin(TimePoint now, const modules::PlaintextReaders& readers, const modules::Ends& ends,
                const std::string& name, const modules::Surroundings& told);
  Outcome on_surroundings(TimePoint now, const modules::Surroundings& told);
  Outcome from_client(TimePoint now, Bytes plain);
  enum class CloseNotify : std::uint8_t { missing, came };
  Outcome client_ended(TimePoint now, CloseNotify of_client);
  // To be called before client_ended(): its direction ends with a fatal alert, which the server gets as the
  // last record.
  Outcome client_failed(std::uint8_t alert);
  // Data that the server's leg can decrypt now.
  Outcome from_server(TimePoint now);
  // The server's connection has ended, with or without close_notify.
  Outcome server_ended(TimePoint now);
  Outcome on_room(TimePoint now, const modules::Room& room);
  Outcome give_up_memory(TimePoint now);

  std::size_t held_bytes() const { return reader_ ? reader_->held_bytes() : 0; }
  std::size_t state_bytes() const { return reader_ ? reader_->state_bytes() : 0; }
  const modules::Counters* counters() const { return reader_ ? &reader_->counters() : nullptr; }

 private:
  Outcome read_outputs();
  // After its fatal alert, it reads nothing.
  bool server_has_failed() const { return server_.leg().fatal_alert().has_value(); }
  bool write(Bytes plain);
  void end_stream();
  void end_server();

  twin::Outputs<Message>& out_;
  Upstream& server_;
  std::unique_ptr<modules::Module> reader_;
  bool client_done_ = false;  // the client's direction has ended
  bool server_is_told_ = false;  // by its last record, an alert, which may come before that end
  bool client_was_orderly_ = false, server_was_cut_ = false, server_done_ = false;
};

}  // namespace longhaul::tls
