// SPDX-License-Identifier: Apache-2.0
// The state that a module must keep over a restart: one short text, which the daemon reads when it starts and
// writes whenever it has changed. Without I/O; proxy/state_keeper.h has the file.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace longhaul::modules {

class State {
 public:
  virtual ~State() = default;
  virtual std::string text() const = 0;
  // False: it is damaged, or of another version. Then nothing is changed.
  virtual bool restore(std::string_view text) = 0;
  // Called on the loop whenever text() has changed; nothing waits for the disk.
  virtual void on_change(std::function<void()> call) = 0;
};

// Where the daemon stores it, and what it logs if that fails.
struct StateFile {
  std::string_view name;  // in the daemon's state directory
  std::size_t most_bytes;
  std::string_view event;                  // of the log
  std::string_view not_read, not_written;  // its effects
};

}  // namespace longhaul::modules
