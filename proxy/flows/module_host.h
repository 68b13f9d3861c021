// SPDX-License-Identifier: Apache-2.0
// Runs one half of a module between a socket and a stream: feeds it within backpressure and credit, takes its
// output, and lets bytes pass after it has stepped aside. output_queue.h handles the output to the stream,
// held_memory.h the module's memory, linked_flow.h the sockets, timers and the end of the flow.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>

#include "codecs/slice_queue.h"
#include "proxy/flows/arrivals.h"
#include "proxy/flows/held_memory.h"
#include "proxy/flows/reason.h"
#include "proxy/flows/output_queue.h"
#include "proxy/modules/module.h"
#include "proxy/modules/twin_records.h"

namespace longhaul::flows {

class ModuleHost {
 public:
  using TimePoint = link::TimePoint;
  using Ending = modules::Ending;

  // As the session measures it.
  struct Line {
    std::uint64_t bytes_per_second = 0;
    link::Duration round_trip{0};
    link::Contact contact{};
    link::Token session{};
  };

  // The stream outlives this object. `memory` is shared by all flows.
  ModuleHost(std::unique_ptr<modules::Module> module, link::Stream& stream,
             std::shared_ptr<modules::Memory> memory)
      : module_(std::move(module)), stream_(stream), to_stream_(stream), memory_(std::move(memory)) {}
  ModuleHost(const ModuleHost&) = delete;
  ModuleHost& operator=(const ModuleHost&) = delete;

  // Continues everything that does not need the LAN: time, the stream's input and output. Call after events
  // of the stream, at next_timeout(), and after each of the calls below. Returns true if the stream was
  // written to or read.
  bool run(TimePoint now, const Line& line);
  std::optional<TimePoint> next_timeout() const;

  // ---- From the LAN. Bytes may be passed only while takes_lan(), in slices of at most 64 KiB.
  bool takes_lan() const;
  void from_lan(TimePoint now, Slice bytes);
  void lan_ended(TimePoint now, Ending ending);

  // ---- To the LAN.
  const SliceQueue& to_lan() const { return to_lan_; }
  void lan_took(std::size_t bytes) {
    to_lan_.drop_until(to_lan_.begin_offset() + bytes);
    count_memory();
  }
  // Whether the module needs to be notified when its output has arrived. lan_arrived() reports how many of
  // the bytes that the kernel took are unacknowledged; to be called before from_lan() and lan_ended().
  bool awaits_arrival() const { return arrivals_.any(); }
  void lan_arrived(std::size_t unacknowledged) {
    const std::uint64_t taken = to_lan_.begin_offset();
    if (const auto arrived = arrivals_.poll(taken - std::min<std::uint64_t>(taken, unacknowledged)))
      module_->arrived(*arrived);
  }
  bool lan_is_over() const { return lan_over_ && to_lan_.empty(); }  // nothing follows; shut down its output

  // The server must be connected again; until redialled() the LAN has no connection and must not be used.
  bool redials() const { return redial_ == Redial::asked; }
  void redialled() { redial_ = Redial::done; }

  // ---- The stream.
  void features_changed() { surroundings_at_.reset(); }
  void twin_lost() { module_->twin_lost(); }
  void stream_stopped() { to_stream_.stop(); }  // EventKind::stopped
  // Nothing may be written to the stream any more: it has ended or was aborted, or has no reader.
  bool stream_is_over() const { return to_stream_.is_over(); }
  // Bytes of the stream came after the module had ended both directions.
  bool has_unwanted_bytes() const { return has_unwanted_bytes_; }
  // The LAN has sent much after the module and the twin had ended both directions. Some is usual: an answer
  // to close_notify.
  bool has_unwanted_lan_bytes() const { return unwanted_lan_bytes_ > kMostUnwantedBytes; }

  // Whether the plain pump moves this direction from now on, and also passes on its end.
  bool passes(modules::Way way) const {
    return way == modules::Way::to_stream ? to_stream_.passes() : to_lan_passes_ && to_lan_.empty();
  }
  // It takes nothing more from the LAN; bytes that it held may still wait to be written.
  bool has_left_lan() const { return to_stream_.has_stepped_aside(); }
  // For the plain pump of the direction to the LAN while the module still has the other direction: passes on
  // messages that precede the readable bytes. Returns true if there were any.
  bool take_messages(TimePoint now, link::Duration round_trip);

  // The stream has no reader and never had one: ends as if the module had given up after its output.
  void abort() { take(link::Clock::now(), modules::Abort{}); }
  // Both connections must be reset, this side's after to_lan() was written.
  bool aborts() const { return aborts_ && to_stream_.empty(); }
  bool gave_up() const { return gave_up_; }  // the end took too long: reset both at once

  // For its counters and details.
  const modules::Module& module() const { return *module_; }
  Reason reason() const { return aside_reason_ ? *aside_reason_ : module_->reason(); }

 private:
  void take_outputs(TimePoint now);
  void take(TimePoint now, modules::ToLan output);
  void take(TimePoint now, modules::ToStream output);
  void take(TimePoint now, modules::ToTwin output);
  void take(TimePoint now, modules::EndLan output);
  void take(TimePoint now, modules::EndStream output);
  void take(TimePoint now, modules::StepAside output);
  void take(TimePoint now, modules::Redial output);
  void take(TimePoint now, modules::Abort output);

  void tell_surroundings(TimePoint now, const Line& line);
  void tell_room(TimePoint now);
  bool feed(TimePoint now, link::Duration round_trip);
  void on_record(TimePoint now, Slice body);
  void tell_stream_ended(TimePoint now, Ending ending);
  bool is_mistake(TimePoint now, bool is_one);
  void count_memory();
  void watch_memory(TimePoint now);
  void give_up_at(TimePoint at) {
    if (!give_up_at_ || at < *give_up_at_) give_up_at_ = at;
  }

  std::unique_ptr<modules::Module> module_;
  link::Stream& stream_;

  OutputQueue to_stream_;
  SliceQueue to_lan_;
  Arrivals arrivals_;
  modules::TwinReader twin_reader_;

  HeldMemory memory_;

  std::optional<TimePoint> surroundings_at_;        // as last reported
  std::optional<Ending> lan_ended_, stream_ended_;  // as reported to the module
  std::optional<TimePoint> give_up_at_;
  std::optional<Reason> aside_reason_;
  enum class Redial : std::uint8_t { never, asked, done } redial_ = Redial::never;
  bool lan_over_ = false;  // from the module
  bool to_lan_passes_ = false;
  bool twin_is_aside_ = false;
  bool aborts_ = false, gave_up_ = false;
  static constexpr std::size_t kMostUnwantedBytes = 64 * 1024;
  bool has_unwanted_bytes_ = false;
  std::size_t unwanted_lan_bytes_ = 0;
};

}  // namespace longhaul::flows
