// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/tls/far_plaintext.h"

#include <string_view>
#include <utility>

namespace longhaul::tls {

void flush(Upstream& server, twin::Outputs<Message>& out) {
  if (Slice bytes = server.drain(); bytes.size() > 0) out.to_lan(std::move(bytes));
}

FarPlaintext::Outcome FarPlaintext::begin(TimePoint now, const modules::PlaintextReaders& readers,
                                          const modules::Ends& ends, const std::string& name,
                                          const modules::Surroundings& told) {
  const Bytes agreed = server_.protocol();
  const std::string_view protocol(reinterpret_cast<const char*>(agreed.data()), agreed.size());
  for (const modules::PlaintextReader& each : readers)
    if ((reader_ = each.instance->make_plaintext_far(ends, name, protocol, told.features.modules)))
      return on_surroundings(now, told);
  return Outcome::goes_on;
}

FarPlaintext::Outcome FarPlaintext::on_surroundings(TimePoint now, const modules::Surroundings& told) {
  if (!reader_) return Outcome::goes_on;
  reader_->on_surroundings(now, told);
  return read_outputs();
}

FarPlaintext::Outcome FarPlaintext::on_room(TimePoint now, const modules::Room& room) {
  if (!reader_) return Outcome::goes_on;
  reader_->on_room(now, room);
  return read_outputs();
}

FarPlaintext::Outcome FarPlaintext::give_up_memory(TimePoint now) {
  if (!reader_) return Outcome::goes_on;
  reader_->give_up_memory(now);
  return read_outputs();
}

FarPlaintext::Outcome FarPlaintext::read_outputs() {
  while (auto output = reader_->poll_output()) {
    if (const auto* server = std::get_if<modules::ToLan>(&*output)) {
      if (!write(server->bytes.bytes())) return Outcome::failed;
    } else if (auto* client = std::get_if<modules::ToStream>(&*output)) {
      out_.pass_on(std::move(client->bytes));
    } else if (auto* message = std::get_if<modules::ToTwin>(&*output)) {
      out_.tell(OfReader{.bytes = static_cast<std::uint32_t>(message->message.size())},
                std::move(message->message), message->is_isolated);
    } else if (std::holds_alternative<modules::EndStream>(*output)) {
      end_stream();
    } else if (std::holds_alternative<modules::EndLan>(*output)) {
      end_server();
    } else {
      return Outcome::failed;
    }
  }
  flush(server_, out_);
  return Outcome::goes_on;
}

FarPlaintext::Outcome FarPlaintext::from_server(TimePoint now) {
  Buffer plain;
  const auto got = server_.leg().read(plain);
  const bool is_end = got == Leg::Read::closed || server_has_failed();
  const Outcome read = got == Leg::Read::failed && !is_end ? Outcome::failed : Outcome::goes_on;
  if (reader_) {
    if (!plain.empty()) reader_->from_lan(now, Slice::copy_of(plain));
    if (is_end && !std::exchange(server_done_, true)) reader_->lan_ended(now, modules::Ending::closed);
    if (read_outputs() == Outcome::failed) return Outcome::failed;
  } else {
    if (!plain.empty()) out_.pass_on(Slice::copy_of(plain));
    flush(server_, out_);
    if (is_end) end_stream();
  }
  return read;
}

// After its close_notify, how the server's connection ends means nothing.
void FarPlaintext::end_stream() {
  if (const auto alert = server_.leg().fatal_alert())
    out_.tell(Alerted{.description = *alert});
  else if (server_was_cut_)
    out_.tell(Truncated{});
  out_.end_stream();
}

bool FarPlaintext::write(Bytes plain) {
  return server_is_told_ || server_has_failed() || server_.leg().write(plain);
}

FarPlaintext::Outcome FarPlaintext::server_ended(TimePoint now) {
  if (std::exchange(server_done_, true)) return Outcome::goes_on;
  server_was_cut_ = true;
  if (reader_) {
    reader_->lan_ended(now, modules::Ending::closed);
    return read_outputs();
  }
  end_stream();
  return Outcome::goes_on;
}

FarPlaintext::Outcome FarPlaintext::from_client(TimePoint now, Bytes plain) {
  if (client_done_) return Outcome::goes_on;
  if (reader_) {
    if (!plain.empty()) reader_->from_stream(now, Slice::copy_of(plain));
    return read_outputs();
  }
  if (!write(plain)) return Outcome::failed;
  flush(server_, out_);
  return Outcome::goes_on;
}

FarPlaintext::Outcome FarPlaintext::client_failed(std::uint8_t alert) {
  if (client_done_ || server_has_failed() || std::exchange(server_is_told_, true)) return Outcome::goes_on;
  flush(server_, out_);
  Slice record = server_.last_alert(alert, LastAlert::When::after);
  if (record.empty()) return Outcome::failed;
  out_.to_lan(std::move(record));
  return Outcome::goes_on;
}

FarPlaintext::Outcome FarPlaintext::client_ended(TimePoint now, CloseNotify of_client) {
  if (std::exchange(client_done_, true)) return Outcome::goes_on;
  client_was_orderly_ = of_client == CloseNotify::came;
  Outcome outcome = Outcome::goes_on;
  if (reader_) {
    reader_->stream_ended(now, modules::Ending::closed);
    outcome = read_outputs();
  }
  // A client that has failed waits for nothing that the reader may still have to do.
  if (!reader_ || server_is_told_) end_server();
  return outcome;
}

void FarPlaintext::end_server() {
  if (client_was_orderly_ && !std::exchange(server_is_told_, true)) server_.leg().close();
  flush(server_, out_);
  out_.end_lan();
}

}  // namespace longhaul::tls
