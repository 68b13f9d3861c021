// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/plaintext.h"

#include <algorithm>

namespace longhaul::modules {

void Plaintext::on_surroundings(TimePoint now, const Surroundings& told) {
  told_ = told;
  if (!reader_) return;
  reader_->on_surroundings(now, told);
  collect(now);
}

void Plaintext::on_room(TimePoint now, const Room& room) {
  if (!reader_) return;
  reader_->on_room(now, room);
  collect(now);
}

void Plaintext::from_client(TimePoint now, Slice bytes) {
  if (expected_ > 0) {
    append(waiting_, bytes.bytes());
    return waiting_.size() > kMostWaiting ? client_is_unknown(now) : void();
  }
  if (!is_chosen_) {
    append(first_, bytes.bytes());
    return choose(now);
  }
  if (!reader_ || client_passes_) return out_.push_back(ToStream{std::move(bytes)});
  reader_->from_lan(now, std::move(bytes));
  collect(now);
}

void Plaintext::server_has(TimePoint now, Slice bytes) {
  if (!is_chosen_) {
    append(first_, bytes.bytes());
    first_at_server_ = first_.size();
    choose(now);
  } else if (reader_ && !client_passes_) {
    reader_->from_lan_seen_late(now, std::move(bytes));
    collect(now);
  }
  if (expected_ > 0 && --expected_ == 0) late_is_over(now);
}

void Plaintext::client_is_unknown(TimePoint now) {
  expected_ = 0;
  if (!is_chosen_) {
    pass();
  } else if (reader_ && !client_passes_) {
    reader_->twin_stepped_aside(now);
    collect(now);
  }
  late_is_over(now);
}

void Plaintext::late_is_over(TimePoint now) {
  if (reader_ && !client_passes_) {
    reader_->seen_late_is_over(now);
    collect(now);
  }
  if (const Buffer waiting = std::exchange(waiting_, {}); !waiting.empty()) from_client(now, Slice::copy_of(waiting));
  if (std::exchange(closed_waits_, false)) client_closed(now);
}

void Plaintext::choose(TimePoint now) {
  bool too_few = false;
  for (const PlaintextReader& each : readers_) {
    const auto recognised = each.recognise(Bytes(first_).first(std::min(first_.size(), kMostFirstBytes)));
    too_few |= recognised == Recognised::too_few;
    if (recognised != Recognised::yes) continue;
    reader_ = each.instance->make_plaintext_reader(ends_, name_);
    break;
  }
  if (!reader_) return too_few && first_.size() < kMostFirstBytes ? void() : pass();
  is_chosen_ = true;
  reader_->on_surroundings(now, told_);
  collect(now);
  const Slice first = Slice::copy_of(std::exchange(first_, {}));
  const std::size_t at_server = std::exchange(first_at_server_, 0);
  if (at_server > 0 && reader_ && !client_passes_) {  // it may have stepped aside at once
    reader_->from_lan_seen_late(now, first.sub(0, at_server));
    collect(now);
  }
  if (at_server > 0 && expected_ == 0) late_is_over(now);
  if (at_server < first.size()) from_client(now, first.from(at_server));
  if (const Buffer held = std::exchange(of_server_, {}); !held.empty()) from_server(now, Slice::copy_of(held));
}

// Passes everything on without a reader.
void Plaintext::pass() {
  is_chosen_ = true;
  const Bytes rest = Bytes(first_).subspan(first_at_server_);
  if (!rest.empty()) out_.push_back(ToStream{Slice::copy_of(rest)});
  first_ = {}, first_at_server_ = 0;
  if (const Buffer held = std::exchange(of_server_, {}); !held.empty()) out_.push_back(ToLan{Slice::copy_of(held)});
}

bool Plaintext::server_waits(TimePoint now, Bytes bytes) {
  append(of_server_, bytes);
  const bool may = std::ranges::any_of(readers_, [&](const PlaintextReader& each) {
    return each.may_be_server && each.may_be_server(of_server_);
  });
  if (!may || of_server_.size() > kMostWaiting) return false;
  if (!server_waits_until_) server_waits_until_ = now + std::chrono::seconds(1);
  return true;
}

void Plaintext::from_server(TimePoint now, Slice bytes) {
  // In most protocols that are recognised by the client's first bytes, servers do not send first.
  if (!is_chosen_) return server_waits(now, bytes.bytes()) ? void() : pass();
  if (!reader_ || server_passes_) return out_.push_back(ToLan{std::move(bytes)});
  reader_->from_stream(now, std::move(bytes));
  collect(now);
}

void Plaintext::from_twin(TimePoint now, Slice message) {
  if (!reader_) return;
  reader_->from_twin(now, std::move(message));
  collect(now);
}

void Plaintext::client_closed(TimePoint now) {
  if (expected_ > 0) {
    closed_waits_ = true;
    return;
  }
  if (!is_chosen_) pass();
  if (!reader_ || client_passes_) return out_.push_back(EndStream{});
  reader_->lan_ended(now, Ending::closed);
  collect(now);
}

void Plaintext::server_closed(TimePoint now) {
  if (!is_chosen_) pass();
  if (!reader_ || server_passes_) return out_.push_back(EndLan{});
  reader_->stream_ended(now, Ending::closed);
  collect(now);
}

void Plaintext::on_timeout(TimePoint now) {
  if (!is_chosen_ && server_waits_until_ && now >= *server_waits_until_) return pass();
  if (!reader_) return;
  reader_->on_timeout(now);
  collect(now);
}

void Plaintext::give_up_memory(TimePoint now) {
  if (!is_chosen_) return pass();
  if (!reader_) return;
  reader_->give_up_memory(now);
  collect(now);
}

void Plaintext::collect(TimePoint now) {
  while (auto output = reader_->poll_output()) {
    if (const auto* aside = std::get_if<StepAside>(&*output)) {
      // There is no twin with bytes in transit, so the agreement is immediate.
      if (aside->way == Way::to_lan)
        server_passes_ = true;
      else if (!std::exchange(client_passes_, true))
        reader_->twin_stepped_aside(now);
    } else {
      // Messages have no receiver, and there is no server here: such a module cannot continue.
      if (std::holds_alternative<ToTwin>(*output) || std::holds_alternative<Redial>(*output)) output = Abort{};
      out_.push_back(*std::move(output));
    }
  }
  counters_ = reader_->counters();
  reason_ = reader_->reason();
  if (client_passes_ && server_passes_) reader_.reset();
}

std::optional<Output> Plaintext::poll_output() {
  if (out_.empty()) return std::nullopt;
  std::optional<Output> first(std::move(out_.front()));
  out_.pop_front();
  return first;
}

}  // namespace longhaul::modules
