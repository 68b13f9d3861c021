// SPDX-License-Identifier: Apache-2.0
// Logs changes of the UDP paths to one peer: each change once.
#pragma once
#include <boost/system/error_code.hpp>
#include <optional>
#include <string>
#include <vector>

namespace longhaul::link::udp {

class UdpPathLog {
 public:
  explicit UdpPathLog(std::string peer) : peer_(std::move(peer)) {}

  // The carrier of the link: "udp" or "tcp". The first one of a session is not a change.
  void carried_by(const char* carrier, const char* reason);
  void session_ends();

  // The state of the line with this number; only for lines with a name.
  enum class LineState : std::uint8_t { works, silent, unused };
  void line_is(std::size_t line, const std::string& name, LineState state);
  // The line that carries the link. A line without a name is not logged here, but by carried_by().
  void carried_on(std::size_t line, const std::string& name, const char* reason);

  // ---- Problems that the operator can fix.
  void no_socket(const std::string& line, const boost::system::error_code& error) const;
  void peer_failed(const std::string& why) const;
  void unanswered() const;
  void bursts_dropped();

 private:
  std::string peer_;
  const char* carrier_ = "";
  std::optional<std::size_t> line_;
  std::vector<bool> worked_;  // by line
  bool bursts_dropped_ = false;
};

}  // namespace longhaul::link::udp
