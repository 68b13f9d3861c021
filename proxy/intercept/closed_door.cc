// SPDX-License-Identifier: Apache-2.0
#include "proxy/intercept/closed_door.h"

#include <fstream>
#include <optional>

#include "proxy/intercept/closed_rules.h"
#include "proxy/intercept/nft_rules.h"
#include "proxy/intercept/policy_route.h"
#include "proxy/net/marks.h"
#include "proxy/process/private_file.h"

namespace longhaul::intercept {

namespace fs = std::filesystem;
using config::TextError;
using config::TextResult;

TextResult<bool> ClosedDoor::has_table(const std::string& name) {
  const auto tables = nft_.ask("list tables inet\n");
  if (!tables) return tables.error();
  return tables->find("table inet " + name + "\n") != std::string::npos;
}

TextResult<bool> ClosedDoor::is_in_place(std::uint16_t port) { return has_table(closed_table_name(port)); }

TextResult<bool> ClosedDoor::has_daemon(std::uint16_t port) { return has_table(table_name({.port = port})); }

TextResult<ClosedDoor::Change> ClosedDoor::enforce(const config::Config& config) {
  const auto rules = closed_rules(config);
  if (!rules) return rules.error();
  if (!rules->close_something()) {
    const auto removed = remove(rules->port);
    return removed && *removed ? Change::taken_out : Change::none;
  }
  if (auto done = nft_.run(replace_closed_text(*rules)); !done)
    return TextError{"fail = \"closed\" cannot be enforced: " + done.error().message};
  return Change::put_in;
}

TextResult<bool> ClosedDoor::remove(std::uint16_t port) {
  const auto there = is_in_place(port);
  if (!there || !*there) return there;
  if (auto done = nft_.run(remove_closed_text(port)); !done) return done.error();
  return true;
}

TextResult<std::string> ClosedDoor::listing(std::uint16_t port) {
  const auto there = is_in_place(port);
  if (!there) return there.error();
  if (!*there) return {boost::system::in_place_value};
  return nft_.ask("list table inet " + closed_table_name(port) + "\n");
}

// --------------------------------------------------------------------------------------------- leftovers

namespace {

std::optional<std::uint16_t> read_port(const fs::path& file) {
  std::ifstream stream(file);
  unsigned port = 0;
  if (!(stream >> port) || port == 0 || port > 65'535) return std::nullopt;
  return static_cast<std::uint16_t>(port);
}

}  // namespace

TextResult<void> take_over_leftovers(const config::Config& config) {
  const fs::path file = config.state_dir / "intercept.port";
  const std::uint16_t port = config.intercept.port;
  const bool uses_rules = config.intercept.mode == config::Intercept::Mode::tproxy ||
                          config.link.listen.has_value() || !config.link.allow.empty();
  const auto before = read_port(file);
  if (!before && !uses_rules) return {};
  if (before) {
    ClosedDoor door;
    const auto lives = door.has_daemon(*before);
    if (!lives) return lives.error();
    if (*lives) return {};
    remove(PolicyRoute{.mark = net::divert_mark(*before), .table = net::divert_mark(*before)});
    if (*before != port)
      if (const auto removed = door.remove(*before); !removed) return removed.error();
  }
  if (before == port) return {};
  if (const auto written = process::replace_private_file(file, std::to_string(port) + "\n"); !written)
    return TextError{file.string() + " cannot be written: " + process::reason_of(written.error())};
  return {};
}

}  // namespace longhaul::intercept
