// SPDX-License-Identifier: Apache-2.0
// What a command line accepts, read out of its CLI11 definition: commands, options, and what to complete
// after each. manual.cc and completion.cc print it.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace longhaul::manuals {

enum class Value { none, text, file, directory };  // of an option; none: a flag

struct Word {
  std::vector<std::string> names;  // with dashes; of a positional argument: one, without
  std::string type;                // as the help shows it, such as FILE
  std::string description;
  std::string default_value;
  std::vector<std::string> choices;  // all that is accepted
  std::vector<std::string> offers;   // what to complete
  Value value = Value::none;
  bool required = false;
  bool repeated = false;
};

struct Command {
  std::string name;  // empty: the program itself
  std::string description;
  std::vector<Word> options, positionals;
  std::vector<Command> commands;
};

// Values that a program knows beforehand for an option or a positional argument which takes others, too.
struct Offer {
  std::string command;  // of the program
  std::string word;     // as it was added: "--reason", "settings"
  std::vector<std::string> values;
};

Command read(const CLI::App& app, const std::vector<Offer>& offers = {});

// The choices in a type such as TEXT:{b,a}, sorted.
std::vector<std::string> choices_in(const std::string& type);

std::string joined(const std::vector<std::string>& parts, const std::string& between);

}  // namespace longhaul::manuals
