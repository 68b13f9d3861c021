// SPDX-License-Identifier: Apache-2.0
// Uses escape sequences of ECMA-48 that every current terminal understands, and the alternate screen, so that
// the terminal's previous content returns afterwards.
#include "proxy/cli/live_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace longhaul::cli {
namespace {

volatile std::sig_atomic_t g_ended = 0;

void end(int) { g_ended = 1; }
void wake(int) {}  // poll returns early, and the next frame has the new size

constexpr char kCtrlC = 3;
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l", kLeave = "\x1b[?25h\x1b[?1049l";

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

// The colour sequence at the beginning of the text; empty if there is none. No other sequence is accepted.
std::string_view colour_at(std::string_view text) {
  for (const std::string_view colour : {"\x1b[0m", "\x1b[31m", "\x1b[32m", "\x1b[33m"})
    if (text.starts_with(colour)) return colour;
  return {};
}

}  // namespace

std::string fit(std::string_view text, std::size_t columns, std::size_t rows) {
  std::string fitted;
  for (std::size_t row = 0; row < rows && !text.empty(); ++row) {
    const auto line_end = text.find('\n');
    std::size_t column = 0;
    auto line = text.substr(0, line_end);
    while (!line.empty()) {
      if (const auto colour = colour_at(line);
          !colour.empty()) {  // takes no column, so also after the last one
        fitted += colour;
        line.remove_prefix(colour.size());
        continue;
      }
      const auto byte = static_cast<unsigned char>(line.front());
      if ((byte & 0xc0) != 0x80) ++column;  // not a continuation byte of UTF-8
      if (column <= columns) fitted += byte < 0x20 || byte == 0x7f ? '?' : line.front();
      line.remove_prefix(1);
    }
    fitted += '\n';
    text.remove_prefix(line_end == std::string_view::npos ? text.size() : line_end + 1);
  }
  return fitted;
}

LiveScreen::LiveScreen(Options options, std::ostream& out) : options_(options), out_(out) {
  is_terminal_ = &out == &std::cout && ::isatty(STDOUT_FILENO) == 1;
  if (!is_terminal_) return;
  has_colour_ = environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  reads_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (reads_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  struct sigaction on_resize {}, on_end{};
  on_resize.sa_handler = wake;
  on_end.sa_handler = end;
  ::sigaction(SIGWINCH, &on_resize, &on_resize_before_);
  ::sigaction(SIGTERM, &on_end, &on_term_before_);
  ::sigaction(SIGINT, &on_end, &on_interrupt_before_);
  out_ << kEnter << std::flush;
}

LiveScreen::~LiveScreen() {
  if (!is_terminal_) return;
  out_ << kLeave << std::flush;
  ::sigaction(SIGWINCH, &on_resize_before_, nullptr);
  ::sigaction(SIGTERM, &on_term_before_, nullptr);
  ::sigaction(SIGINT, &on_interrupt_before_, nullptr);
  if (reads_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void LiveScreen::draw(const std::string& text) {
  if (!is_terminal_) {
    out_ << fit(text, text.size(), text.size()) << '\n' << std::flush;
    return;
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) size = {24, 80, 0, 0};
  std::string drawn = "\x1b[H";
  // No line break after the last row: it would scroll.
  auto fitted = fit(text, size.ws_col, size.ws_row);
  if (!fitted.empty()) fitted.pop_back();
  for (const char c : fitted) drawn += c == '\n' ? "\x1b[K\r\n" : std::string(1, c);
  out_ << drawn << "\x1b[K\x1b[J" << std::flush;
}

std::optional<char> LiveScreen::key(std::chrono::milliseconds patience) const {
  pollfd waiting{.fd = reads_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
  char pressed = 0;
  return ::read(STDIN_FILENO, &pressed, 1) == 1 ? pressed : kCtrlC;  // the terminal is gone
}

config::TextResult<void> LiveScreen::run(const std::function<config::TextResult<std::string>()>& frame,
                                         const std::function<void(char)>& on_key) {
  g_ended = 0;
  const auto count = options_.count > 0 ? options_.count : is_terminal_ ? 0 : 1;
  for (std::size_t drawn = 0; g_ended == 0;) {
    const auto text = frame();
    if (text.has_error()) return text.error();
    draw(*text);
    if (++drawn == count) break;
    const auto pressed = key(options_.interval);
    if (pressed == 'q' || pressed == 'Q' || pressed == kCtrlC) break;
    if (pressed) on_key(*pressed);
  }
  return {};
}

}  // namespace longhaul::cli
