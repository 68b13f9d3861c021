// SPDX-License-Identifier: Apache-2.0
// CLI11 provides the choices of an option only in its type, as TEXT:{a,b}.
#include "manuals/words.h"

#include <algorithm>

#include "cli11.h"

namespace longhaul::manuals {
namespace {

Value value_of(const std::string& name) {
  if (name.find("FILE") != std::string::npos) return Value::file;
  return name.find("DIR") != std::string::npos ? Value::directory : Value::text;
}

Word word_of(const CLI::Option& option) {
  Word word{.description = option.get_description(), .default_value = option.get_default_str()};
  for (const std::string& name : option.get_snames()) word.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) word.names.push_back("--" + name);
  word.required = option.get_required();
  word.repeated = option.get_items_expected_max() > 1;
  if (word.names.empty()) word.names.push_back(option.get_name(true));
  if (option.get_items_expected_max() == 0) return word;
  const std::string type = option.get_type_name();
  word.offers = word.choices = choices_in(type);
  word.type = type.substr(
      0, std::min(type.find(":{"), type.find(" in [") == std::string::npos ? type.size() : type.find(':')));
  word.value = value_of(option.nonpositional() ? word.type : word.type + word.names.front());
  return word;
}

}  // namespace

std::vector<std::string> choices_in(const std::string& type) {
  const auto begin = type.find('{');
  const auto end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::vector<std::string> choices;
  for (std::size_t at = begin + 1; at <= end;) {
    const auto next = std::min(type.find(',', at), end);
    choices.push_back(type.substr(at, next - at));
    at = next + 1;
  }
  std::sort(choices.begin(), choices.end());  // CLI11 keeps some of them in an unordered set
  return choices;
}

Command read(const CLI::App& app, const std::vector<Offer>& offers) {
  Command command{.name = app.get_parent() ? app.get_name() : "", .description = app.get_description()};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty())
      (option->nonpositional() ? command.options : command.positionals).push_back(word_of(*option));
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!below->get_name().empty()) command.commands.push_back(read(*below));
  for (const Offer& offer : offers)
    for (Command& below : command.commands)
      if (below.name == offer.command)
        for (auto* const words : {&below.options, &below.positionals})
          for (Word& word : *words)
            if (std::ranges::find(word.names, offer.word) != word.names.end()) word.offers = offer.values;
  return command;
}

std::string joined(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

}  // namespace longhaul::manuals
