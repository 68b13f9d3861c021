// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/module_side.h"

namespace longhaul::flows {

using modules::Way;

void ModuleSide::begin(const modules::Listed& module, std::unique_ptr<modules::Module> half,
                       link::Stream& stream, ModulePump::TellReason tell, Wake wake) {
  wake_ = std::make_unique<Wake>(std::move(wake));
  half->set_wake([this] {
    if (features_changed()) (*wake_)();
  });
  pump_ = std::make_unique<ModulePump>(std::move(half), lan_, stream, module.memory, std::move(tell));
  record_.module = std::make_unique<ModuleRecord>(ModuleRecord{.name = module.descriptor.name});
}

ModuleSide::Ran ModuleSide::run(const link::Session& session, const link::Token& session_id,
                                ModulePump::ToClient to_client) {
  Ran ran;
  ran.any = pump_->run(session, session_id, to_client);
  pump_->report(record_);
  const ModuleHost& host = pump_->host();
  if (host.gave_up()) {
    ran.next = Next::gives_up;
  } else if (host.aborts()) {
    ran.next = pump_->lan_lost() || host.to_lan().empty() ? Next::aborts_at_end : Next::aborts;
  }
  if (ran.next == Next::goes_on || ran.next == Next::aborts) arm();
  return ran;
}

ModulePump::Left ModuleSide::leave() {
  const ModulePump::Left left = pump_->newly_left();
  const bool no_more_down = pump_->host().passes(Way::to_lan);
  had_one_ |= no_more_down;
  if (no_more_down && pump_->host().passes(Way::to_stream)) {
    pump_->report_end(record_);
    pump_.reset();
  }
  return left;
}

bool ModuleSide::take_messages(link::Stream& stream, link::Duration round_trip) {
  const auto now = link::Clock::now();
  if (pump_) return pump_->host().take_messages(now, round_trip);
  while (stream.reader().poll_message(now, round_trip)) {
  }
  return false;
}

bool ModuleSide::features_changed() {
  if (!pump_) return false;
  pump_->host().features_changed();
  return true;
}

void ModuleSide::arm() {
  pump_->arm([alive = lan_.alive(), this](boost::system::error_code error) {
    if (error || !*alive || !pump_) return;
    pump_->on_timer();
    (*wake_)();
  });
}

}  // namespace longhaul::flows
