// SPDX-License-Identifier: Apache-2.0
// The far half until the first bytes of the stream show the version of HTTP; then that version's half.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "codecs/byte_writer.h"
#include "proxy/modules/http/far.h"
#include "proxy/modules/http/h2/early.h"
#include "proxy/modules/http/h2/far.h"

namespace longhaul::http {

class EitherFar final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;

  EitherFar(const modules::Ends& ends, std::shared_ptr<Site> site, std::string owner)
      : ends_(ends), site_(std::move(site)), owner_(std::move(owner)) {}

  void on_surroundings(TimePoint now, const modules::Surroundings& told) override {
    told_ = told;
    if (half_) half_->on_surroundings(now, told);
  }
  // An HTTP/2 server may send its SETTINGS before the client's first bytes have arrived.
  void from_lan(TimePoint now, Slice bytes) override {
    if (half_) return half_->from_lan(now, std::move(bytes));
    append(of_server_, bytes.bytes());
    const bool waits = fetches() && h2::may_be_server(of_server_) && of_server_.size() <= kMostOfServer;
    if (!waits) return choose(now, false);
    if (!held_until_) held_until_ = now + kClientsTime;
  }
  void from_stream(TimePoint now, Slice bytes) override {
    if (half_) return half_->from_stream(now, std::move(bytes));
    append(first_, bytes.bytes());
    const std::string_view text(reinterpret_cast<const char*>(first_.data()), first_.size());
    const bool is_2 = text.starts_with(h2::kPreface);
    if (is_2 || !h2::kPreface.starts_with(text)) choose(now, is_2);
  }
  void from_twin(TimePoint now, Slice message) override { chosen(now).from_twin(now, std::move(message)); }
  void on_room(TimePoint now, const modules::Room& room) override {
    if (half_) half_->on_room(now, room);
  }
  void lan_ended(TimePoint now, modules::Ending ending) override { chosen(now).lan_ended(now, ending); }
  void stream_ended(TimePoint now, modules::Ending ending) override { chosen(now).stream_ended(now, ending); }
  void twin_stepped_aside(TimePoint now) override { chosen(now).twin_stepped_aside(now); }
  void on_timeout(TimePoint now) override {
    if (half_) return half_->on_timeout(now);
    if (held_until_ && now >= *held_until_) choose(now, false);
  }
  std::optional<modules::Output> poll_output() override { return half_ ? half_->poll_output() : std::nullopt; }
  std::optional<TimePoint> next_timeout() const override { return half_ ? half_->next_timeout() : held_until_; }
  std::size_t held_bytes() const override { return half_ ? half_->held_bytes() : first_.size() + of_server_.size(); }
  std::size_t queued_bytes() const override { return half_ ? half_->queued_bytes() : 0; }
  std::size_t state_bytes() const override { return half_ ? half_->state_bytes() : 0; }
  void give_up_memory(TimePoint now) override { chosen(now).give_up_memory(now); }
  const modules::Counters& counters() const override { return half_ ? half_->counters() : no_counters_; }
  modules::Reason reason() const override { return half_ ? half_->reason() : modules::Reason(); }
  std::string_view detail() const override { return half_ ? half_->detail() : std::string_view(); }

 private:
  // How long, and how much of, a server's beginning waits for its client.
  static constexpr link::Duration kClientsTime = std::chrono::seconds(1);
  static constexpr std::size_t kMostOfServer = 64 * 1024;

  bool fetches() const { return told_.features.modules.value("http.prefetch") != 0; }
  // HTTP/1 if the version is unknown: that half passes everything that it cannot parse.
  modules::Module& chosen(TimePoint now) {
    if (!half_) choose(now, false);
    return *half_;
  }
  void choose(TimePoint now, bool is_2) {
    // Without prefetch HTTP/2 is not terminated here: the half for HTTP/1 passes it unchanged.
    if (is_2 && fetches())
      half_ = std::make_unique<h2::Far>(ends_, site_, owner_, std::string_view(), Pushing::Content::in_stream);
    else
      half_ = std::make_unique<Far>(ends_, site_, owner_);
    half_->on_surroundings(now, told_);
    const Buffer first = std::exchange(first_, {}), of_server = std::exchange(of_server_, {});
    if (!first.empty()) half_->from_stream(now, Slice::copy_of(first));
    if (!of_server.empty()) half_->from_lan(now, Slice::copy_of(of_server));
  }

  modules::Ends ends_;
  std::shared_ptr<Site> site_;
  std::string owner_;
  modules::Surroundings told_;
  Buffer first_, of_server_;
  std::optional<TimePoint> held_until_;
  std::unique_ptr<modules::Module> half_;
  modules::Counters no_counters_;
};

}  // namespace longhaul::http
