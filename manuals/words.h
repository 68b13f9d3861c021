// SPDX-License-Identifier: Apache-2.0
// The words that a command line accepts, read from its CLI11 definition: commands, options, and completions.
// manual.cc and completion.cc print them.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace longhaul::manuals {

enum class Value { none, text, file, directory };  // value of an option; none for a flag

struct Word {
  std::vector<std::string> names;  // with dashes; of a positional argument: one name without dashes
  std::string type;                // as shown in the help, such as FILE
  std::string description;
  std::string default_value;
  std::vector<std::string> choices;  // the only accepted values; empty if any is
  std::vector<std::string> offers;   // values for completion
  Value value = Value::none;
  bool required = false;
  bool repeated = false;
};

struct Command {
  std::string name;  // empty for the program itself
  std::string description;
  std::vector<Word> options, positionals;
  std::vector<Command> commands;
};

// Values to complete for an option or a positional argument that accepts other values, too.
struct Offer {
  std::string command;  // name of the command
  std::string word;     // as it was added: "--reason", "settings"
  std::vector<std::string> values;
};

Command read(const CLI::App& app, const std::vector<Offer>& offers = {});

// The choices in a type such as TEXT:{b,a}, sorted.
std::vector<std::string> choices_in(const std::string& type);

std::string joined(const std::vector<std::string>& parts, const std::string& between);

}  // namespace longhaul::manuals
