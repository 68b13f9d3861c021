// SPDX-License-Identifier: Apache-2.0
// All quoted texts come from our own sources; quoting makes an apostrophe in a help text harmless.
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

// A command is identified by its path, such as "/keytab/test"; the program itself by an empty path.
std::string below_of(const std::string& path, const Command& below) { return path + "/" + below.name; }

// The completions after an option, or for a positional argument.
std::string bash_values(const Word& word) {
  if (!word.offers.empty())
    return "COMPREPLY=($(compgen -W '" + joined(word.offers, " ") + "' -- \"$current\"))";
  if (word.value == Value::file) return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$current\"))";
  if (word.value == Value::directory)
    return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$current\"))";
  return "COMPREPLY=()";
}

std::vector<std::string> offers_of(const std::vector<Word>& words) {
  std::vector<std::string> all;
  for (const Word& word : words) all.insert(all.end(), word.offers.begin(), word.offers.end());
  return all;
}

bool has_settings(const Command& command) {
  const auto is_setting = [](const std::string& offer) { return offer.find('=') != offer.npos; };
  return std::ranges::any_of(offers_of(command.positionals), is_setting);
}

std::string bash_case(const std::string& path, const Command& command) {
  std::string text = "    '" + path + "')\n";
  std::string after;
  std::vector<std::string> options;
  for (const Word& word : command.options) {
    options.insert(options.end(), word.names.begin(), word.names.end());
    if (word.value != Value::none)
      after += "        " + joined(word.names, "|") + ") " + bash_values(word) + "; return ;;\n";
  }
  if (!after.empty()) text += "      case $previous in\n" + after + "      esac\n";
  std::vector<std::string> words = names_of(command.commands);
  for (const std::string& offer : offers_of(command.positionals)) words.push_back(offer);
  const auto file = std::find_if(command.positionals.begin(), command.positionals.end(),
                                 [](const Word& word) { return word.value >= Value::file; });
  text += "      if [[ $current == -* ]]; then COMPREPLY=($(compgen -W '" + joined(options, " ") +
          "' -- \"$current\")); return; fi\n";
  const bool settings = has_settings(command);
  if (settings)  // for bash, NAME=VALUE is three words, of which it replaces the last
    text += "      [[ $current != = ]] || { current=; name=$previous=; }\n"
            "      [[ $previous != = ]] || name=${COMP_WORDS[COMP_CWORD-2]}=\n";
  text += "      COMPREPLY=($(compgen -W '" + joined(words, " ") + "' -- \"" + (settings ? "$name" : "") + "$current\"))\n";
  if (settings)
    text += "      COMPREPLY=(\"${COMPREPLY[@]#\"$name\"}\")\n";
  if (file != command.positionals.end())
    text += "      compopt -o filenames; COMPREPLY+=($(compgen -f -- \"$current\"))\n";
  text += "      ;;\n";
  for (const Command& below : command.commands) text += bash_case(below_of(path, below), below);
  return text;
}

std::vector<std::string> paths_below(const std::string& path, const Command& command) {
  std::vector<std::string> paths;
  for (const Command& below : command.commands) {
    paths.push_back(below_of(path, below));
    const auto further = paths_below(paths.back(), below);
    paths.insert(paths.end(), further.begin(), further.end());
  }
  return paths;
}

// ------------------------------------------------------------------------------------------------- zsh

// Escapes text inside '…' of _arguments, where brackets and colons are special.
std::string zsh_text(const std::string& text) {
  std::string safe = replaced(text, "\\", "\\\\");
  for (const char* c : {"[", "]", ":"}) safe = replaced(safe, c, std::string("\\") + c);
  return replaced(safe, "'", "'\\''");
}

std::string zsh_action(const Word& word) {
  if (!word.offers.empty()) return "(" + joined(word.offers, " ") + ")";
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

// A function for each command with subcommands: _arguments leaves the words of a subcommand to its function.
std::string zsh_function(const std::string& name, const Command& command) {
  std::string before, text = name + "() {\n  local curcontext=$curcontext state line\n";
  if (command.commands.empty()) return text + "  _arguments" + zsh_words(command) + "\n}\n";
  text += "  _arguments -C" + zsh_words({.options = command.options}) +
          " \\\n        '1: :->command' \\\n        '*:: :->arguments'\n";
  text += "  case $state in\n    command)\n      local -a commands=(\n";
  for (const Command& below : command.commands)
    text += "        '" + below.name + ":" + replaced(replaced(below.description, "'", "'\\''"), ":", "\\:") +
            "'\n";
  text += "      )\n      _describe command commands\n      ;;\n    arguments)\n      case $words[1] in\n";
  for (const Command& below : command.commands) {
    std::string call = "_arguments" + zsh_words(below);
    if (!below.commands.empty()) {
      call = name + "_" + replaced(below.name, "-", "_");
      before += zsh_function(call, below);
    }
    text += "      " + below.name + ")\n        " + call + "\n        ;;\n";
  }
  return before + text + "      esac\n      ;;\n  esac\n}\n";
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
    if (!word.offers.empty())
      text += " -x -a " + fish_quoted(joined(word.offers, " "));
    else if (word.value == Value::file)
      text += " -r -F";
    else if (word.value == Value::directory)
      text += " -x -a '(__fish_complete_directories)'";
    else if (word.value == Value::text)
      text += " -x";
    text += " -d " + fish_quoted(word.description) + "\n";
  }
  for (const Word& word : command.positionals) {
    if (!word.offers.empty())
      text += "complete -c " + program + " -n " + fish_quoted(when) + " -a " +
              fish_quoted(joined(word.offers, " ")) + "\n";
    else if (word.value >= Value::file)
      text += "complete -c " + program + " -n " + fish_quoted(when) + " -F\n";
  }
  return text;
}

// `seen`: the condition that this command was typed; empty for the program itself.
std::string fish_command(const std::string& program, const std::string& seen, const Command& command) {
  const auto is_typed = [](const std::string& names) { return "__fish_seen_subcommand_from " + names; };
  std::string when = seen.empty() ? "__fish_use_subcommand" : seen;
  if (!seen.empty() && !command.commands.empty())
    when += "; and not " + is_typed(joined(names_of(command.commands), " "));
  std::string text = fish_words(program, when, command);
  for (const Command& below : command.commands) {
    text += "complete -c " + program + " -n " + fish_quoted(when) + " -a " + below.name + " -d " +
            fish_quoted(below.description) + "\n";
    text += fish_command(program, (seen.empty() ? "" : seen + "; and ") + is_typed(below.name), below);
  }
  return text;
}

}  // namespace

std::string bash_completion(const std::string& program, const Command& command) {
  const std::string function = function_name(program);
  std::string text = "# bash completion for " + program + "\n" + function + "() {\n" +
                     "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= name= word\n";
  if (!command.commands.empty())
    text += "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $command/$word in " +
            joined(paths_below("", command), "|") + ") command+=/$word ;; esac\n  done\n";
  text += "  case $command in\n";
  text += bash_case("", command);
  return text + "  esac\n}\ncomplete -F " + function + " " + program + "\n";
}

std::string zsh_completion(const std::string& program, const Command& command) {
  const std::string function = function_name(program);
  return "#compdef " + program + "\n" + zsh_function(function, command) + function + " \"$@\"\n";
}

std::string fish_completion(const std::string& program, const Command& command) {
  return "# fish completion for " + program + "\ncomplete -c " + program + " -f\n" + fish_command(program, "", command);
}

}  // namespace longhaul::manuals
