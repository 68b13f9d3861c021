// SPDX-License-Identifier: Apache-2.0
// Both options end the parsing like --version: with CLI11's exception for output with exit code 0.
#include "manuals/options.h"

#include "cli11.h"
#include "manuals/completion.h"
#include "manuals/help_lines.h"

namespace longhaul::manuals {
namespace {

class WrappedHelp final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return help_lines(Formatter::make_help(app, std::move(name), mode), get_column_width());
  }

  // CLI11 prints choices as TEXT:{a,b}.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = Formatter::make_option_opts(option);
    const std::string type = option->get_type_name();
    const auto choices = choices_in(type);
    if (const auto at = text.find(type); !choices.empty() && at != std::string::npos)
      text.replace(at, type.size(), "{" + joined(choices, ",") + "}");
    return text;
  }
};

void wrap_help(CLI::App& app) {
  app.formatter(std::make_shared<WrappedHelp>());
  for (CLI::App* command : app.get_subcommands({})) wrap_help(*command);
}

}  // namespace

void add_options(CLI::App& app, const std::string& program, std::vector<Section> sections, std::vector<Offer> offers) {
  wrap_help(app);
  app.add_flag_callback(
         "--manual",
         [&app, program, sections = std::move(sections)] {
           throw CLI::CallForVersion(manual(program, read(app), sections), 0);
         },
         "Print the manual page; to read it: " + program + " --manual | man -l -")
      ->trigger_on_parse();
  app.add_option_function<std::string>(
         "--completion",
         [&app, program, offers = std::move(offers)](const std::string& shell) {
           const Command command = read(app, offers);
           throw CLI::CallForVersion(shell == "bash"  ? bash_completion(program, command)
                                     : shell == "zsh" ? zsh_completion(program, command)
                                                      : fish_completion(program, command),
                                     0);
         },
         "Print the completion script for a shell")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL")
      ->trigger_on_parse();
}

}  // namespace longhaul::manuals
