// SPDX-License-Identifier: Apache-2.0
// The plaintext of one connection at the far half: between the stream and the server, through the far half of
// the module that reads it (HTTP/2), if there is one. plaintext.h is the same for the near half.
#pragma once
#include <memory>
#include <string>

#include "proxy/modules/plaintext.h"
#include "proxy/modules/tls/messages.h"
#include "proxy/modules/tls/upstream.h"
#include "proxy/modules/twin/outputs.h"

namespace longhaul::tls {

// What libssl has for the server goes to it.
void flush(Upstream& server, twin::Outputs<Message>& out);

class FarPlaintext {
 public:
  using TimePoint = modules::TimePoint;
  // `server` has shaken hands. Both outlive this.
  FarPlaintext(twin::Outputs<Message>& out, Upstream& server) : out_(out), server_(server) {}

  // Failed: nothing more may be sent to either end.
  enum class Outcome : std::uint8_t { goes_on, failed };

  // The reader of the negotiated protocol, if one of them is. Before all others; without it, bytes pass.
  Outcome begin(TimePoint now, const modules::PlaintextReaders& readers, const modules::Ends& ends,
                const std::string& name, const modules::Surroundings& told);
  Outcome on_surroundings(TimePoint now, const modules::Surroundings& told);
  Outcome from_client(TimePoint now, Bytes plain);
  enum class CloseNotify : std::uint8_t { missing, came };
  Outcome client_ended(TimePoint now, CloseNotify of_client);
  // What the server's leg can decrypt by now.
  Outcome from_server(TimePoint now);
  // The server's connection has ended, perhaps without close_notify.
  Outcome server_ended(TimePoint now);
  Outcome on_room(TimePoint now, const modules::Room& room);
  Outcome give_up_memory(TimePoint now);

  std::size_t held_bytes() const { return reader_ ? reader_->held_bytes() : 0; }
  std::size_t state_bytes() const { return reader_ ? reader_->state_bytes() : 0; }
  const modules::Counters* counters() const { return reader_ ? &reader_->counters() : nullptr; }

 private:
  Outcome read_outputs();

  twin::Outputs<Message>& out_;
  Upstream& server_;
  std::unique_ptr<modules::Module> reader_;
  bool client_done_ = false;  // its direction has ended
  bool client_was_orderly_ = false, server_was_cut_ = false, server_done_ = false;
};

}  // namespace longhaul::tls
