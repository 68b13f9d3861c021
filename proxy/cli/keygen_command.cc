// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/keygen_command.h"

#include <memory>
#include <ostream>

#include "proxy/cli/command_line.h"
#include "proxy/identity/keygen.h"

namespace longhaul::cli {

void add_keygen_command(CLI::App& app, std::ostream& out, std::ostream& errors, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("keygen", "Makes NAME.key and NAME.crt and prints the fingerprint that peers pin");
  struct Typed {
    std::string name, folder = ".";
  };
  const auto typed = std::make_shared<Typed>();
  command->add_option("NAME", typed->name, "the site's name, such as branch")->required();
  command->add_option("--dir", typed->folder, "the folder to write into")->capture_default_str();
  command->callback([typed, &out, &errors, &exit_code] {
    try {
      // The fingerprint alone goes to standard output, so that a script can take it as it is.
      const auto made = identity::keygen(typed->name, typed->folder);
      errors << "Made " << made.private_key.lexically_normal().string() << " (private: it stays here) and "
             << made.certificate.lexically_normal().string()
             << ".\nThe other site names this fingerprint in its [[peer]]:\n";
      out << made.fingerprint << '\n';
    } catch (const identity::KeygenError& error) {
      errors << error.what() << '\n';
      exit_code = kFailed;
    }
  });
}

}  // namespace longhaul::cli
