// SPDX-License-Identifier: Apache-2.0
// Uses only macros of man(7) that every viewer of manual pages supports.
#include "manuals/manual.h"

#include <algorithm>
#include <cctype>

namespace longhaul::manuals {
namespace {

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if ((safe.empty() || safe.back() == '\n') && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
  }
  return safe;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string argument(const Word& word) {
  const std::string name = italic(word.names.front()) + (word.repeated ? "..." : "");
  return word.required ? name : "[" + name + "]";
}

std::string usage(const std::string& program, const Command& command) {
  std::string line = bold(command.name.empty() ? program : program + " " + command.name);
  line += " [" + italic("options") + "]";
  for (const Word& word : command.positionals) line += " " + argument(word);
  return line;
}

void add_word(std::string& page, const Word& word) {
  std::vector<std::string> names;
  for (const std::string& name : word.names)
    names.push_back(name.starts_with("-") ? bold(name) : italic(name));
  page += ".TP\n" + joined(names, ", ");
  if (!word.choices.empty())
    page += " " + escaped(joined(word.choices, "|"));
  else if (word.value != Value::none && word.names.front().starts_with("-") && !word.type.empty())
    page += " " + italic(word.type);
  page += "\n" + escaped(word.description.empty() ? word.names.front() : word.description);
  if (!word.default_value.empty()) page += " (default: " + escaped(word.default_value) + ")";
  if (word.required && word.names.front().starts_with("-")) page += " (required)";
  page += "\n";
}

void add_words(std::string& page, const Command& command) {
  for (const Word& word : command.positionals) add_word(page, word);
  for (const Word& word : command.options) add_word(page, word);
}

// Includes subcommands.
void add_command(std::string& page, const std::string& program, const Command& command) {
  page += ".SS " + usage(program, command) + "\n" + escaped(command.description) + "\n";
  add_words(page, command);
  for (const Command& below : command.commands) add_command(page, program + " " + command.name, below);
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

std::string manual(const std::string& program, const Command& command, const std::vector<Section>& sections) {
  std::string page = ".TH " + upper(program) + " 1 \"\" Longhaul \"User Commands\"\n.nh\n.ad l\n";
  const std::string& about = command.description;
  page += ".SH NAME\n" + program + " \\- " + escaped(about.substr(0, about.find_first_of(":."))) + "\n";
  page += ".SH SYNOPSIS\n";
  if (!command.positionals.empty() || command.commands.empty()) page += usage(program, command) + "\n.br\n";
  for (const Command& below : command.commands) page += usage(program, below) + "\n.br\n";
  page += ".SH DESCRIPTION\n" + escaped(about) + "\n";
  page += ".SH OPTIONS\n";
  add_words(page, command);
  if (!command.commands.empty()) page += ".SH COMMANDS\n";
  for (const Command& below : command.commands) add_command(page, program, below);
  for (const Section& section : sections) {
    page += ".SH " + upper(section.heading) + "\n";
    std::string text = escaped(section.text);
    for (std::size_t at; (at = text.find("\n\n")) != std::string::npos;) text.replace(at, 2, "\n.PP\n");
    page += text + "\n";
  }
  return page;
}

}  // namespace longhaul::manuals
