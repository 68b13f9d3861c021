// SPDX-License-Identifier: Apache-2.0
// A view that is drawn repeatedly: in a terminal in place until a key is pressed, elsewhere one frame below
// the other. The caller provides the content.
#pragma once
#include <termios.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/config/text_error.h"

namespace longhaul::cli {

// Cuts the text to the size of the terminal. Control characters, which could control the terminal and may
// come from the network, become question marks.
std::string fit(std::string_view text, std::size_t columns, std::size_t rows);

class LiveScreen {
 public:
  struct Options {
    std::chrono::milliseconds interval{1'000};
    std::size_t count = 0;  // number of frames; 0: until a key ends it or, without a terminal, one frame
  };
  // The terminal stays in a special mode until the destructor.
  LiveScreen(Options options, std::ostream& out);
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  bool has_colour() const { return has_colour_; }
  // Calls `frame` for each text, and `on_key` for each key; q, Ctrl-C and SIGTERM end it. Returns the first
  // error of `frame`.
  config::TextResult<void> run(const std::function<config::TextResult<std::string>()>& frame,
                               const std::function<void(char)>& on_key);

 private:
  void draw(const std::string& text);
  std::optional<char> key(std::chrono::milliseconds patience) const;

  Options options_;
  std::ostream& out_;
  bool is_terminal_ = false, reads_keys_ = false, has_colour_ = false;
  termios before_{};
  struct sigaction on_resize_before_ {}, on_term_before_{}, on_interrupt_before_{};
};

}  // namespace longhaul::cli
