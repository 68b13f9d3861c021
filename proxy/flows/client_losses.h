// SPDX-License-Identifier: Apache-2.0
// Lost writes that must be reported to clients (modules/losses.h), for all modules that may handle a flow:
// whether reporting needs a guard or a reset, and which guard.
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
  // The objects that both refer to outlive this object.
  ClientLosses(modules::List modules, const ModuleSettings& settings)
      : modules_(modules), settings_(settings) {}

  // Whether any module may handle flows to this port.
  bool any_module_at(std::uint16_t port) const;
  // Why a flow that no half of a module reads needs a guard, and so bypasses the link: lost writes must be
  // reported to the client, or may have to be soon. Returns nullopt if it needs none.
  std::optional<Reason> why_guarded(const boost::asio::ip::address& client,
                                    const Destination& destination) const;
  struct Guarding {
    std::unique_ptr<modules::Guard> guard;  // null if none is needed
    modules::Memory* memory = nullptr;      // of the guard's module
  };
  Guarding make_guard(const modules::Ends& ends) const;
  // Tokens to hold while neither a guard nor a half reads a flow between these.
  std::vector<std::shared_ptr<void>> unguarded(const boost::asio::ip::address& client,
                                               const Destination& destination) const;
  // For a flow that neither a guard nor a half can read: whether its client must be notified by a reset,
  // which then counts as done.
  bool told_by_reset(const modules::Ends& ends) const;

 private:
  // The modules that may handle flows to this port and that make promises.
  std::vector<modules::Losses*> of(std::uint16_t port) const;

  modules::List modules_;
  const ModuleSettings& settings_;
};

}  // namespace longhaul::flows
