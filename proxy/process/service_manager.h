// SPDX-License-Identifier: Apache-2.0
// Notifies systemd about a service of Type=notify: ready, reloading, stopping, alive. See sd_notify(3).
#pragma once
#include <chrono>
#include <optional>
#include <string>

namespace longhaul::process {

// Does nothing if no service manager started this process. All but alive() wait up to one second for room in
// the service manager's queue; what does not fit then is lost.
class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET and WATCHDOG_USEC, and connects. Create it before confine(), which forbids new
  // connections to abstract sockets.
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // `status` is shown by `systemctl status`; one line.
  void ready(const std::string& status) const;
  void reloading() const;  // ready() follows
  void stopping() const;
  void alive() const;
  // How often alive() is expected: twice within the time after which systemd would kill the process.
  std::optional<std::chrono::microseconds> alive_period() const { return alive_period_; }

 private:
  void send(const std::string& message, bool may_be_lost = false) const;

  int socket_ = -1;
  std::optional<std::chrono::microseconds> alive_period_;
};

}  // namespace longhaul::process
