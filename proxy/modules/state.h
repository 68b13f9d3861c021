// SPDX-License-Identifier: Apache-2.0
// The state that a module must keep across restarts: one short text, which the daemon reads when it starts
// and writes whenever it has changed. Without I/O; proxy/state_keeper.h has the file.
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
  // Returns false, and changes nothing, if the text is damaged or of another version.
  virtual bool restore(std::string_view text) = 0;
  // Sets a callback for the event loop, called whenever text() has changed; it does not wait for the disk.
  virtual void on_change(std::function<void()> call) = 0;
};

// The file in which the daemon stores it, and the log texts for failures.
struct StateFile {
  std::string_view name;  // in the daemon's state directory
  std::size_t most_bytes;
  std::string_view event;                  // of the log
  std::string_view not_read, not_written;  // the effects of a failure
};

}  // namespace longhaul::modules
