// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/keygen_command.h"

#include <memory>
#include <ostream>

#include "proxy/cli/command_line.h"
#include "proxy/identity/keygen.h"

namespace longhaul::cli {

void add_keygen_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("keygen", "Create the key NAME.key and the certificate NAME.crt, and print the fingerprint for the peers");
  struct Typed {
    std::string name, folder = ".";
  };
  const auto typed = std::make_shared<Typed>();
  command->add_option("NAME", typed->name, "the site's name, such as branch")->required();
  command->add_option("--dir", typed->folder, "the directory to write to")->type_name("DIR")->capture_default_str();
  command->callback([typed, &out, &errors, &exit_code] {
    try {
      // Only the fingerprint goes to standard output, for scripts.
      const auto made = identity::keygen(typed->name, typed->folder);
      errors << "Created " << made.private_key.lexically_normal().string() << " (private: keep it on this host) and "
             << made.certificate.lexically_normal().string()
             << ".\nPut this fingerprint into the [[peer]] of the other site:\n";
      out << made.fingerprint << '\n';
    } catch (const identity::KeygenError& error) {
      errors << error.what() << '\n';
      exit_code = kFailed;
    }
  });
}

}  // namespace longhaul::cli
