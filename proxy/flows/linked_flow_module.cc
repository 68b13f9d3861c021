// SPDX-License-Identifier: Apache-2.0
// The pumps of a flow whose bytes go through a module: one function that lets everything go on that can,
// woken by the same sources as the plain ones and by the module's deadline.
#include <sys/socket.h>

#include "proxy/flows/linked_flow_parts.h"

namespace longhaul::flows {
namespace asio = boost::asio;
using asio::ip::tcp;
using modules::Way;
using namespace std::chrono_literals;

void LinkedFlow::use_module(const modules::Listed& module, std::unique_ptr<modules::Module> half,
                            TellReason tell) {
  module_ = std::make_unique<Hosted>(std::move(half), *stream_, module.memory, socket_.get_executor(),
                                     std::move(tell));
  if (peer_stopped_) module_->host.stream_stopped();
  record_.module = std::make_unique<ModuleRecord>(ModuleRecord{.name = module.descriptor.name});
}

void LinkedFlow::features_changed() {
  if (!module_ || finished_) return;
  module_->host.features_changed();
  run_module();
}

bool LinkedFlow::module_has(Way way) const { return module_ && !module_->host.passes(way); }

bool LinkedFlow::module_is_done() const {
  return !module_has(Way::to_stream) || module_->host.stream_is_over();
}

void LinkedFlow::run_module() {
  if (finished_ || module_->aborting) return;
  bool any = false;
  int reads_left = kReadsPerTurn;
  for (bool moved = true; moved;) {
    const link::Session& session = link_.session();
    const bool ran = module_->host.run(link::Clock::now(),
                                       {session.outgoing().line_rate(), session.liveness().smoothed_rtt(), session.liveness().contact()});
    any |= ran;
    moved = deliver_for_module() || ran;
    moved = read_for_module(reads_left) || moved;
  }
  if (any) link_.kick();
  count();
  after_module();
}

// True: something was delivered, or the LAN was lost.
bool LinkedFlow::deliver_for_module() {
  ModuleHost& host = module_->host;
  // What is said to the client before anything else is not known yet.
  if (down_ != Pump::running || opening_) return false;
  bool moved = false;
  if (!preface_.empty() && !write_preface()) {
    lose_lan();
    return true;
  }
  while (!host.to_lan().empty()) {
    const ssize_t size = send_pieces(host.to_lan());
    if (size < 0) {
      if (down_ == Pump::waiting) return moved;
      lose_lan();
      return true;
    }
    host.lan_took(static_cast<std::size_t>(size));
    moved = true;
  }
  if (host.lan_is_over()) {
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    down_ = Pump::done;
  }
  return moved;
}

// True: something was read, or the LAN has ended.
bool LinkedFlow::read_for_module(int& reads_left) {
  ModuleHost& host = module_->host;
  if (up_ != Pump::running) return false;
  if (!host.takes_lan()) {
    watch_for_failure();
    return false;
  }
  if (reads_left-- == 0) {
    wait_to_read();
    return false;
  }
  ReadSpace& space = read_space();
  std::byte* bytes = space.memory + link::Stream::kRecordRoom;
  const ssize_t size = ::recv(socket_.native_handle(), bytes, kReadBytes, 0);
  if (size < 0 && errno == EINTR) return true;
  if (size < 0 && would_block(errno)) {
    wait_to_read();
    return false;
  }
  if (size < 0) {
    lose_lan();
    return true;
  }
  const auto now = link::Clock::now();
  if (size == 0) {
    up_ = Pump::done;
    host.lan_ended(now, modules::Ending::closed);
    return true;
  }
  const auto count = static_cast<std::size_t>(size);
  record_.bytes.lan_in += count;
  if (count < kReadBytes) wait_to_read();
  if (count < kCopyBelow) {
    host.from_lan(now, Slice::copy_of({bytes, count}));
  } else {
    space.memory = nullptr;
    host.from_lan(now, std::move(space.slice).sub(link::Stream::kRecordRoom, count));
    space.slice = {};
  }
  return true;
}

// This side's connection was reset: the module may have promises to keep, and says when the other's is.
void LinkedFlow::lose_lan() {
  up_ = down_ = Pump::done;
  reset_socket();
  module_->lan_lost = true;
  module_->host.lan_ended(link::Clock::now(), modules::Ending::reset);
}

void LinkedFlow::stop_for_module() {
  module_->host.stream_stopped();
  run_module();
}

void LinkedFlow::take_messages() {
  const auto now = link::Clock::now();
  const link::Duration round_trip = link_.session().liveness().smoothed_rtt();
  if (module_) {
    if (module_->host.take_messages(now, round_trip)) run_module();
    return;
  }
  while (stream_->poll_message(now, round_trip)) {
  }
}

void LinkedFlow::after_module() {
  Hosted& hosted = *module_;
  ModuleHost& host = hosted.host;
  record_.module->counters = host.counters();
  if (const Reason reason = host.reason(); reason != std::exchange(hosted.told, reason))
    hosted.tell(record_, reason);
  if (host.gave_up()) return cut();
  if (host.aborts()) {
    stream_->abort();
    link_.kick();
    if (hosted.lan_lost) return finish(End::reset);
    if (host.to_lan().empty()) {
      hosted.aborting = true;
      return reset_after_delivery();
    }
    return arm_module_timer();
  }
  arm_module_timer();
  const bool up_passes = host.passes(Way::to_stream), down_passes = host.passes(Way::to_lan);
  const bool up_is_new = up_passes && !std::exchange(hosted.up_passes, true);
  const bool down_is_new = down_passes && !std::exchange(hosted.down_passes, true);
  // Messages of the twin may still come.
  had_module_ |= down_passes;
  if (up_passes && down_passes) {
    record_.module->steps_aside = true;
    record_.module->counters.steps_aside = 1;
    hosted.tell(record_, record_.reason);
    module_.reset();
  }
  if (up_is_new) pump_up();
  if (down_is_new && !finished_) pump_down();
  if (!finished_) finish_if_done();
}

void LinkedFlow::arm_module_timer() {
  Hosted& hosted = *module_;
  auto at = hosted.host.next_timeout();
  if (!at || (hosted.timer_at && *hosted.timer_at <= *at)) return;
  // One that is due already was told so a moment ago.
  at = std::max(*at, link::Clock::now() + 1ms);
  hosted.timer_at = at;
  hosted.timer.expires_at(*at);
  hosted.timer.async_wait([self = self_](boost::system::error_code error) {
    if (error || !*self || !(*self)->module_) return;
    (*self)->module_->timer_at.reset();
    (*self)->run_module();
  });
}

}  // namespace longhaul::flows
