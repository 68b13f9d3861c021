// SPDX-License-Identifier: Apache-2.0
// The half before a client that has not spoken yet: waits until its first bytes say which version of HTTP it
// speaks, and is the half for that one from there on.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "codecs/byte_writer.h"
#include "proxy/modules/http/site.h"
#include "proxy/modules/module.h"

namespace longhaul::http {

class Either final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;

  Either(const modules::Ends& ends, std::shared_ptr<Site> site, std::string_view verified_name = {})
      : ends_(ends), site_(std::move(site)), name_(verified_name) {}

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override;
  void from_lan(TimePoint now, Slice bytes) override;
  void from_lan_seen_late(TimePoint now, Slice bytes) override;
  void seen_late_is_over(TimePoint now) override;
  void from_stream(TimePoint now, Slice bytes) override;
  void from_twin(TimePoint now, Slice message) override { chosen(now).from_twin(now, std::move(message)); }
  void on_room(TimePoint now, const modules::Room& room) override {
    if (half_) half_->on_room(now, room);
  }
  void lan_ended(TimePoint now, modules::Ending ending) override { chosen(now).lan_ended(now, ending); }
  void stream_ended(TimePoint now, modules::Ending ending) override { chosen(now).stream_ended(now, ending); }
  void twin_stepped_aside(TimePoint now) override { chosen(now).twin_stepped_aside(now); }
  void on_timeout(TimePoint now) override;
  std::optional<modules::Output> poll_output() override {
    return half_ ? half_->poll_output() : std::nullopt;
  }
  std::optional<TimePoint> next_timeout() const override {
    return half_ ? half_->next_timeout() : held_until_;
  }
  std::size_t held_bytes() const override {
    return half_ ? half_->held_bytes() : first_.size() + of_server_.size();
  }
  std::size_t queued_bytes() const override { return half_ ? half_->queued_bytes() : 0; }
  std::size_t state_bytes() const override { return half_ ? half_->state_bytes() : 0; }
  void give_up_memory(TimePoint now) override { chosen(now).give_up_memory(now); }
  const modules::Counters& counters() const override { return half_ ? half_->counters() : no_counters_; }
  modules::Reason reason() const override { return half_ ? half_->reason() : modules::Reason(); }
  std::string_view detail() const override { return half_ ? half_->detail() : std::string_view(); }

 private:
  void read_first(TimePoint now);
  modules::Module& chosen(TimePoint now);  // HTTP/1's, if it is not known
  void choose(TimePoint now, bool is_2);

  modules::Ends ends_;
  std::shared_ptr<Site> site_;
  std::string name_;
  modules::Surroundings told_;
  Buffer first_, of_server_;
  std::size_t at_server_ = 0;  // of first_, its beginning
  bool late_is_over_ = false;
  std::optional<TimePoint> held_until_;
  std::unique_ptr<modules::Module> half_;
  modules::Counters no_counters_;
};

}  // namespace longhaul::http
