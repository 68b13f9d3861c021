// SPDX-License-Identifier: Apache-2.0
// Reports changes of the UDP paths to one peer to the operator: each change once.
#pragma once
#include <boost/system/error_code.hpp>
#include <optional>
#include <string>
#include <vector>

namespace longhaul::link::udp {

class UdpPathLog {
 public:
  explicit UdpPathLog(std::string peer) : peer_(std::move(peer)) {}

  // Of the link: "udp" or "tcp". The first one of a session is no change.
  void carried_by(const char* carrier, const char* reason);
  void session_ends();

  // Of the line at this place; lines that have a name alone.
  enum class LineState : std::uint8_t { works, silent, unused };
  void line_is(std::size_t line, const std::string& name, LineState state);
  // The line without a name is the first one: it is reported by carried_by().
  void carried_on(std::size_t line, const std::string& name, const char* reason);

  // ---- For the operator to change something.
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
