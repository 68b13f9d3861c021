// SPDX-License-Identifier: Apache-2.0
// Every text that a script quotes comes from our own sources; quoting keeps an apostrophe in a help text
// harmless.
#include "manuals/completion.h"

#include <algorithm>

namespace longhaul::manuals {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string function_name(const std::string& program) { return "_" + replaced(program, "-", "_"); }

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

// ------------------------------------------------------------------------------------------------ bash

// What follows an option, or stands for a positional argument.
std::string bash_values(const Word& word) {
  if (!word.choices.empty())
    return "COMPREPLY=($(compgen -W '" + joined(word.choices, " ") + "' -- \"$current\"))";
  if (word.value == Value::file) return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))";
  if (word.value == Value::directory)
    return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$current\"))";
  return "COMPREPLY=()";
}

std::string bash_case(const Command& command) {
  std::string text = "    '" + command.name + "')\n";
  std::string after;
  std::vector<std::string> options;
  for (const Word& word : command.options) {
    options.insert(options.end(), word.names.begin(), word.names.end());
    if (word.value != Value::none)
      after += "        " + joined(word.names, "|") + ") " + bash_values(word) + "; return ;;\n";
  }
  if (!after.empty()) text += "      case $previous in\n" + after + "      esac\n";
  std::vector<std::string> words = names_of(command.commands);
  for (const Word& word : command.positionals)
    words.insert(words.end(), word.choices.begin(), word.choices.end());
  const auto file = std::find_if(command.positionals.begin(), command.positionals.end(),
                                 [](const Word& word) { return word.value >= Value::file; });
  text += "      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '" + joined(options, " ") +
          "' -- \"$current\")); return; fi\n";
  text += "      COMPREPLY=($(compgen -W '" + joined(words, " ") + "' -- \"$current\"))\n";
  if (file != command.positionals.end())
    text += "      compopt -o filenames; COMPREPLY+=($(compgen -f -- \"$current\"))\n";
  return text + "      ;;\n";
}

// ------------------------------------------------------------------------------------------------- zsh

// Inside '…' of _arguments, where brackets and colons mean something.
std::string zsh_text(const std::string& text) {
  std::string safe = replaced(text, "\\", "\\\\");
  for (const char* c : {"[", "]", ":"}) safe = replaced(safe, c, std::string("\\") + c);
  return replaced(safe, "'", "'\\''");
}

std::string zsh_action(const Word& word) {
  if (!word.choices.empty()) return "(" + joined(word.choices, " ") + ")";
  if (word.value == Value::file) return "_files";
  return word.value == Value::directory ? "_files -/" : " ";
}

std::string zsh_words(const Command& command) {
  std::string text;
  for (const Word& word : command.options)
    for (const std::string& name : word.names) {
      text += " \\\n        '" + name + "[" + zsh_text(word.description) + "]";
      if (word.value != Value::none) text += ":" + zsh_text(word.type) + ":" + zsh_action(word);
      text += "'";
    }
  for (const Word& word : command.positionals)
    text += " \\\n        '" + std::string(word.repeated ? "*" : "") + ":" + zsh_text(word.names.front()) +
            ":" + zsh_action(word) + "'";
  return text;
}

// ------------------------------------------------------------------------------------------------ fish

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_words(const std::string& program, const std::string& when, const Command& command) {
  std::string text;
  for (const Word& word : command.options) {
    text += "complete -c " + program + " -n " + fish_quoted(when);
    for (const std::string& name : word.names) {
      if (name.starts_with("--"))
        text += " -l " + name.substr(2);
      else
        text += " -s " + name.substr(1);
    }
    if (!word.choices.empty())
      text += " -x -a " + fish_quoted(joined(word.choices, " "));
    else if (word.value == Value::file)
      text += " -r -F";
    else if (word.value == Value::directory)
      text += " -x -a '(__fish_complete_directories)'";
    else if (word.value == Value::text)
      text += " -x";
    text += " -d " + fish_quoted(word.description) + "\n";
  }
  for (const Word& word : command.positionals) {
    if (!word.choices.empty())
      text += "complete -c " + program + " -n " + fish_quoted(when) + " -a " +
              fish_quoted(joined(word.choices, " ")) + "\n";
    else if (word.value >= Value::file)
      text += "complete -c " + program + " -n " + fish_quoted(when) + " -F\n";
  }
  return text;
}

}  // namespace

std::string bash_completion(const std::string& program, const Command& command) {
  const std::string function = function_name(program);
  std::string text =
      "# bash completion for " + program + "\n" + function + "() {\n" +
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= word\n";
  if (!command.commands.empty())
    text += "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $word in " +
            joined(names_of(command.commands), "|") + ") command=$word; break ;; esac\n  done\n";
  text += "  case $command in\n";
  text += bash_case(command);
  for (const Command& below : command.commands) text += bash_case(below);
  return text + "  esac\n}\ncomplete -F " + function + " " + program + "\n";
}

std::string zsh_completion(const std::string& program, const Command& command) {
  const std::string function = function_name(program);
  std::string text = "#compdef " + program + "\n" + function + "() {\n  local state line\n";
  if (command.commands.empty())
    return text + "  _arguments" + zsh_words(command) + "\n}\n" + function + " \"$@\"\n";
  text += "  _arguments -C" + zsh_words({.options = command.options}) +
          " \\\n        '1: :->command' \\\n        '*:: :->arguments'\n";
  text += "  case $state in\n    command)\n      local -a commands=(\n";
  for (const Command& below : command.commands)
    text += "        '" + below.name + ":" + replaced(replaced(below.description, "'", "'\\''"), ":", "\\:") +
            "'\n";
  text += "      )\n      _describe command commands\n      ;;\n    arguments)\n      case $words[1] in\n";
  for (const Command& below : command.commands)
    text += "      " + below.name + ")\n        _arguments" + zsh_words(below) + "\n        ;;\n";
  return text + "      esac\n      ;;\n  esac\n}\n" + function + " \"$@\"\n";
}

std::string fish_completion(const std::string& program, const Command& command) {
  std::string text = "# fish completion for " + program + "\ncomplete -c " + program + " -f\n";
  text += fish_words(program, "__fish_use_subcommand", command);
  for (const Command& below : command.commands) {
    text += "complete -c " + program + " -n __fish_use_subcommand -a " + below.name + " -d " +
            fish_quoted(below.description) + "\n";
    text += fish_words(program, "__fish_seen_subcommand_from " + below.name, below);
  }
  return text;
}

}  // namespace longhaul::manuals
