// SPDX-License-Identifier: Apache-2.0
#include "proxy/process/tuning.h"

#include <malloc.h>
#include <sys/resource.h>

#include <fstream>

#include "proxy/log/log.h"

namespace longhaul::process {
namespace {

// A flow over the link needs one descriptor here; a relayed flow needs two, and sometimes a pipe.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Buffers of up to a few hundred KiB are allocated and freed with every read, and frames of up to 8 MiB with
// every message of SMB (frames.h). If they were returned to the system each time, the kernel would clear
// their pages again each time, which costs more than the encryption.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

// After a pause CUBIC would start a transfer with a small window. The setting applies to the whole system,
// not to a socket; BBR does not need it.
void keep_window_when_idle(const std::string& congestion_control) {
  if (congestion_control == "bbr") return;
  constexpr const char* kSwitch = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
  std::string value;
  std::ifstream(kSwitch) >> value;
  if (value == "0") return;
  std::ofstream out(kSwitch);
  out << "0" << std::flush;
  if (out) {
    log::info("sysctl", {{"net.ipv4.tcp_slow_start_after_idle", 0}});
  } else {
    log::warn("sysctl", {{"reason", "cannot disable slow start after idle"},
                         {"remedy", "sysctl net.ipv4.tcp_slow_start_after_idle=0"}});
  }
}

}  // namespace

void tune(const std::string& congestion_control) {
  raise_descriptor_limit();
  keep_freed_memory();
  keep_window_when_idle(congestion_control);
}

}  // namespace longhaul::process
