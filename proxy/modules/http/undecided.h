// SPDX-License-Identifier: Apache-2.0
// A half until the client's first bytes show the version of HTTP; afterwards it passes everything to the half
// of that version. Holds the data that arrives before. Common parts of both sides; see either.h and
// either_far.h.
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "codecs/byte_writer.h"
#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Undecided : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;

  void from_twin(TimePoint now, Slice message) final { chosen(now).from_twin(now, std::move(message)); }
  void on_room(TimePoint now, const modules::Room& room) final {
    if (half_) half_->on_room(now, room);
  }
  void lan_ended(TimePoint now, modules::Ending ending) final { chosen(now).lan_ended(now, ending); }
  void stream_ended(TimePoint now, modules::Ending ending) final { chosen(now).stream_ended(now, ending); }
  void twin_stepped_aside(TimePoint now) final { chosen(now).twin_stepped_aside(now); }
  void on_timeout(TimePoint now) final {
    if (half_) return half_->on_timeout(now);
    if (held_until_ && now >= *held_until_) choose(now, false);
  }
  std::optional<modules::Output> poll_output() final { return half_ ? half_->poll_output() : std::nullopt; }
  std::optional<TimePoint> next_timeout() const final { return half_ ? half_->next_timeout() : held_until_; }
  std::size_t held_bytes() const final { return half_ ? half_->held_bytes() : first_.size() + of_server_.size(); }
  std::size_t queued_bytes() const final { return half_ ? half_->queued_bytes() : 0; }
  std::size_t state_bytes() const final { return half_ ? half_->state_bytes() : 0; }
  void give_up_memory(TimePoint now) final { chosen(now).give_up_memory(now); }
  const modules::Counters& counters() const final { return half_ ? half_->counters() : no_counters_; }
  modules::Reason reason() const final { return half_ ? half_->reason() : modules::Reason(); }
  std::string_view detail() const final { return half_ ? half_->detail() : std::string_view(); }

 protected:
  // Sets half_ and passes the held data to it.
  virtual void choose(TimePoint now, bool is_2) = 0;
  // Chooses HTTP/1 if the version is unknown: its half passes everything that it cannot parse.
  modules::Module& chosen(TimePoint now) {
    if (!half_) choose(now, false);
    return *half_;
  }

  void hold_first(TimePoint now, Bytes of_client) {
    append(first_, of_client);
    const std::string_view text(reinterpret_cast<const char*>(first_.data()), first_.size());
    const bool is_2 = text.starts_with(h2::kPreface);
    if (is_2 || !h2::kPreface.starts_with(text)) choose(now, is_2);
  }
  // An HTTP/2 server may send its SETTINGS before the client's first bytes have arrived; a client sends at
  // once.
  void hold_of_server(TimePoint now, Bytes bytes, bool may_wait = true) {
    append(of_server_, bytes);
    if (!may_wait || !h2::may_be_server(of_server_) || of_server_.size() > kMostOfServer) return choose(now, false);
    if (!held_until_) held_until_ = now + kClientsTime;
  }

  std::unique_ptr<modules::Module> half_;  // null: not chosen yet
  modules::Surroundings told_;
  Buffer first_, of_server_;

 private:
  static constexpr modules::Duration kClientsTime = std::chrono::seconds(1);
  static constexpr std::size_t kMostOfServer = 64 * 1024;

  std::optional<TimePoint> held_until_;
  modules::Counters no_counters_;
};

}  // namespace longhaul::http
