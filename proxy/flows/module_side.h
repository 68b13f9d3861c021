// SPDX-License-Identifier: Apache-2.0
// The module of a linked flow, while it has one: runs it, updates the flow's record, and returns what the
// flow must do next. module_pump.h moves the bytes; linked_flow.h acts on the result.
#pragma once
#include <functional>
#include <memory>

#include "proxy/flows/module_pump.h"

namespace longhaul::flows {

class ModuleSide {
 public:
  // Runs the flow again: the module's deadline has come, or its surroundings have changed.
  using Wake = std::function<void()>;

  // Both outlive this object.
  ModuleSide(LanSide& lan, FlowRecord& record) : lan_(lan), record_(record) {}

  // `stream` must outlive the module's time in the flow.
  void begin(const modules::Listed& module, std::unique_ptr<modules::Module> half, link::Stream& stream,
             ModulePump::TellReason tell, Wake wake);

  bool is_there() const { return pump_ != nullptr; }
  // The module moves the bytes of this direction.
  bool has(modules::Way way) const { return pump_ && !pump_->host().passes(way); }
  // It has stepped aside from the LAN's bytes, although bytes that it held may still wait to be written.
  bool is_unread() const { return !pump_ || pump_->host().has_left_lan(); }
  // It will output nothing more to the stream.
  bool is_done() const { return !has(modules::Way::to_stream) || pump_->host().stream_is_over(); }
  bool has_unwanted_bytes() const { return pump_ && pump_->host().has_unwanted_bytes(); }
  bool has_unwanted_lan_bytes() const { return pump_ && pump_->host().has_unwanted_lan_bytes(); }
  // Messages of its twin may still arrive, even if it has left.
  bool had_one() const { return had_one_; }
  bool has_bytes_for_lan() const { return pump_ && !pump_->host().to_lan().empty(); }
  // Nothing of the flow may be stored in a dictionary.
  bool is_private() const { return pump_ && pump_->host().module().is_private(); }
  // The server must be connected again; until use_new_lan() the LAN has no connection.
  bool redials() const { return pump_ && pump_->host().redials(); }

  // ---- Running.
  enum class Next : std::uint8_t {
    goes_on,
    gives_up,       // both connections are reset now
    aborts,         // both are reset, this side's after the remaining output
    aborts_at_end,  // the same, and all output was delivered
  };
  struct Ran {
    bool any = false;  // the stream may have data to send
    Next next = Next::goes_on;
  };
  Ran run(const link::Session& session, const link::Token& session_id, ModulePump::ToClient to_client);
  // Directions that it has left since the last call. A module that has left both is destroyed.
  ModulePump::Left leave();
  // Passes on messages that precede the stream's bytes. Returns true if the module must run.
  bool take_messages(link::Stream& stream, link::Duration round_trip);

  // ---- Notifications.
  void lose_lan() { pump_->lose_lan(); }
  bool lan_lost() const { return pump_ && pump_->lan_lost(); }
  void use_new_lan() {
    if (pump_) pump_->use_new_lan();
  }
  void stream_stopped() { pump_->host().stream_stopped(); }
  void twin_lost() {
    if (pump_) pump_->host().twin_lost();
  }
  // Returns false if there is no module.
  bool features_changed();
  void abort() { pump_->host().abort(); }

 private:
  void arm();

  LanSide& lan_;
  FlowRecord& record_;
  std::unique_ptr<ModulePump> pump_;
  std::unique_ptr<Wake> wake_;  // not every flow has a module
  bool had_one_ = false;
};

}  // namespace longhaul::flows
