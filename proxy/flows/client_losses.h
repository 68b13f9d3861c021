// SPDX-License-Identifier: Apache-2.0
// Lost writes that clients must be told of (modules/losses.h), by all modules that a flow may be for: whether
// a flow needs a guard or a reset for that, and which guard.
#pragma once
#include <boost/asio/ip/address.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "proxy/flows/accepted.h"
#include "proxy/flows/reason.h"
#include "proxy/flows/recognition.h"
#include "proxy/modules/losses.h"

namespace longhaul::flows {

class ClientLosses {
 public:
  // What both refer to outlives this object.
  ClientLosses(modules::List modules, const ModuleSettings& settings)
      : modules_(modules), settings_(settings) {}

  // Whether flows to this port may be for a module at all.
  bool any_module_at(std::uint16_t port) const;
  // Why a flow that no half of a module reads needs a guard, and so bypasses the link: the client must be
  // told of lost writes, or may have to be soon. None: it needs none.
  std::optional<Reason> why_guarded(const boost::asio::ip::address& client,
                                    const Destination& destination) const;
  struct Guarding {
    std::unique_ptr<modules::Guard> guard;  // null: none is needed
    modules::Memory* memory = nullptr;      // of the guard's module
  };
  Guarding make_guard(const modules::Ends& ends) const;
  // To be held while neither a guard nor a half reads a flow between these.
  std::vector<std::shared_ptr<void>> unguarded(const boost::asio::ip::address& client,
                                               const Destination& destination) const;
  // For a flow that neither a guard nor a half can read: whether its client must be notified by a reset,
  // which then counts as done.
  bool told_by_reset(const modules::Ends& ends) const;

 private:
  // Of modules that flows to this port may be for, and that promise something.
  std::vector<modules::Losses*> of(std::uint16_t port) const;

  modules::List modules_;
  const ModuleSettings& settings_;
};

}  // namespace longhaul::flows
