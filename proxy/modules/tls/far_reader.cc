// SPDX-License-Identifier: Apache-2.0
// Far: plaintext from and to the server, and the far half of the module that reads it (HTTP).
#include "proxy/modules/tls/far.h"
#include "proxy/modules/tls/reasons.h"

namespace longhaul::tls {

// Only for the negotiated protocol, and never for tables with `dedup = false`.
void Far::begin_to_read() {
  if (entry_->is_private) return;
  const Bytes agreed = server_->protocol();
  const std::string_view protocol(reinterpret_cast<const char*>(agreed.data()), agreed.size());
  for (const modules::PlaintextReader& each : readers_)
    if ((reader_ = each.instance->make_plaintext_far(ends_, name_, protocol, told_.features.modules))) {
      reader_->on_surroundings(now_, told_);
      return read_outputs();
    }
}

void Far::read_outputs() {
  while (auto output = reader_->poll_output()) {
    if (state_ == State::over) return;
    if (const auto* server = std::get_if<modules::ToLan>(&*output)) {
      if (!server_->leg().write(server->bytes.bytes())) return fail();
    } else if (auto* client = std::get_if<modules::ToStream>(&*output)) {
      out_.pass_on(std::move(client->bytes));
    } else if (auto* message = std::get_if<modules::ToTwin>(&*output)) {
      out_.tell(OfReader{.bytes = static_cast<std::uint32_t>(message->message.size())}, std::move(message->message));
    } else if (std::holds_alternative<modules::EndStream>(*output)) {
      if (server_was_cut_) out_.tell(Truncated{});
      out_.end_stream();
    } else if (std::holds_alternative<modules::EndLan>(*output)) {
      if (client_was_orderly_) server_->leg().close();
      say_to_server();
      out_.end_lan();
    } else {
      return fail();
    }
  }
  say_to_server();
}

void Far::on_room(TimePoint now, const modules::Room& room) {
  now_ = now;
  if (!reader_ || state_ == State::over) return;
  reader_->on_room(now, room);
  read_outputs();
}

void Far::read_server() {
  Buffer plain;
  const auto got = server_->leg().read(plain);
  if (reader_) {
    if (!plain.empty()) reader_->from_lan(now_, Slice::copy_of(plain));
    if (got == Leg::Read::closed && !std::exchange(server_done_, true)) reader_->lan_ended(now_, modules::Ending::closed);
    read_outputs();
    return got == Leg::Read::failed ? server_failed() : void();
  }
  if (!plain.empty()) out_.pass_on(Slice::copy_of(plain));
  say_to_server();
  if (got == Leg::Read::failed) return server_failed();
  if (got == Leg::Read::closed) out_.end_stream();
}

void Far::server_failed() {
  if (server_->leg().is_flooded()) reason_ = reasons::tls_server_floods;
  fail();
}

void Far::to_server(Bytes plain) {
  if (client_done_) return;
  if (reader_) {
    if (!plain.empty()) reader_->from_stream(now_, Slice::copy_of(plain));
    return read_outputs();
  }
  if (!server_->leg().write(plain)) return fail();
  say_to_server();
}

void Far::end_server(bool orderly) {
  if (std::exchange(client_done_, true)) return;
  if (reader_) {
    client_was_orderly_ = orderly;
    reader_->stream_ended(now_, modules::Ending::closed);
    return read_outputs();
  }
  if (orderly) server_->leg().close();
  say_to_server();
  out_.end_lan();
}

}  // namespace longhaul::tls
