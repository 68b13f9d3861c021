// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/keytab_command.h"

#include <algorithm>
#include <memory>
#include <ostream>

#include "proxy/cli/command_line.h"
#include "proxy/cli/service_ticket.h"
#include "proxy/identity/server_secrets.h"
#include "proxy/modules/modules.h"

namespace longhaul::cli {
namespace {

struct TypedKeytab {
  std::string file, server;
};

int test(const TypedKeytab& typed, std::ostream& out, std::ostream& errors) {
  const auto listed = modules::descriptors();
  const auto found =
      std::ranges::find_if(listed, [](const auto* module) { return module->servers.opens != nullptr; });
  if (found == listed.end()) return errors << "This program has no module that uses keytabs.\n", kFailed;
  const modules::ServerTable& table = (*found)->servers;
  const modules::ServerFile file = identity::read_server_file(std::string(table.files.front()), typed.file);
  const auto token = service_token(std::string(table.service), typed.server);
  if (!token) return errors << token.error().message << '\n', kFailed;
  const auto opened = table.opens(file, *token);
  if (!opened) return errors << opened.error().message << '\n', kFailed;
  out << *opened << '\n';
  return kDone;
}

}  // namespace

void add_keytab_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code) {
  CLI::App* command = app.add_subcommand("keytab", "Test the keytab of a file server (see [[smb_server]])");
  command->require_subcommand(1);
  CLI::App* tests = command->add_subcommand("test",
                                            "Ask the domain for a ticket for a server, with the tickets of "
                                            "the caller (kinit), and open it with a keytab");
  const auto typed = std::make_shared<TypedKeytab>();
  tests->add_option("FILE", typed->file, "the keytab")->required();
  tests->add_option("SERVER", typed->server, "the file server's name, as clients use it")->required();
  tests->callback([typed, &out, &errors, &exit_code] { exit_code = test(*typed, out, errors); });
}

}  // namespace longhaul::cli
