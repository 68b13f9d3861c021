// SPDX-License-Identifier: Apache-2.0
// The half before the server: passes everything on. It takes part so that the near half may answer in the server's place
// and step aside later.
#pragma once
#include <deque>

#include "proxy/modules/module.h"

namespace longhaul::http {

class Far final : public modules::Module {
 public:
  using TimePoint = modules::TimePoint;

  void on_surroundings(TimePoint, const modules::Surroundings&) override {}
  void from_lan(TimePoint, Slice bytes) override { out_.push_back(modules::ToStream{std::move(bytes)}); }
  void from_stream(TimePoint, Slice bytes) override { out_.push_back(modules::ToLan{std::move(bytes)}); }
  void from_twin(TimePoint, Slice) override { out_.push_back(modules::Abort{}); }  // the near half says nothing
  void lan_ended(TimePoint, modules::Ending ending) override {
    if (ending == modules::Ending::reset) return out_.push_back(modules::Abort{});
    ended_ = true;
    if (!aside_) out_.push_back(modules::EndStream{});
  }
  void stream_ended(TimePoint, modules::Ending ending) override {
    if (ending == modules::Ending::reset) return out_.push_back(modules::Abort{});
    out_.push_back(modules::EndLan{});
  }
  void twin_stepped_aside(TimePoint) override {
    step_aside({});
    out_.push_back(modules::StepAside{modules::Way::to_lan});
  }
  void on_timeout(TimePoint) override {}
  std::optional<modules::Output> poll_output() override {
    if (out_.empty()) return std::nullopt;
    modules::Output first = std::move(out_.front());
    out_.pop_front();
    return first;
  }
  std::optional<TimePoint> next_timeout() const override { return std::nullopt; }
  void give_up_memory(TimePoint) override { step_aside(modules::reasons::memory_limit); }
  const modules::Counters& counters() const override { return counters_; }

 private:
  void step_aside(modules::Reason reason) {
    if (ended_ || std::exchange(aside_, true)) return;
    out_.push_back(modules::StepAside{modules::Way::to_stream, reason});
  }

  std::deque<modules::Output> out_;
  bool ended_ = false, aside_ = false;
  modules::Counters counters_;
};

}  // namespace longhaul::http
