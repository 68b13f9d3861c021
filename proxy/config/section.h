// SPDX-License-Identifier: Apache-2.0
// Typed access to one table of a configuration file, in which every mistake becomes a sentence with file and
// line. read.cc interprets the values.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/config/read.h"
#include "proxy/config/toml.h"

namespace longhaul::config {

// A value and its line.
struct Text {
  std::string value;
  std::size_t line = 0;
};

[[noreturn]] void fail_at(std::string_view file, std::size_t line, std::string_view sentence);

// Borrows the parsed document, the file name and the list of keys; all outlive it.
class Section {
 public:
  // `title` is the name of the table in messages: "[link]", "[[peer]]"; empty for the top of the file. Fails
  // at the first key that is not in `known`; `otherwise` ends the message if no known key is similar.
  Section(std::string_view file, std::string title, const toml::table& table,
          std::span<const std::string_view> known, std::string_view otherwise = {});

  std::size_t line() const { return line_; }  // of the table's header
  bool has(std::string_view key) const { return table_.contains(key); }

  // Returns nullopt if the key is absent; `example` is shown if the type is wrong.
  std::optional<Text> text(std::string_view key, std::string_view example) const;
  Text required_text(std::string_view key, std::string_view example) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::uint64_t> integer(std::string_view key, std::uint64_t least, std::uint64_t most) const;
  std::vector<Text> texts(std::string_view key, std::string_view example) const;
  // One text or a list of texts; required, and not an empty list.
  std::vector<Text> required_texts(std::string_view key, std::string_view example) const;
  std::vector<std::uint16_t> ports(std::string_view key) const;
  // A feature's value in the form that `set_feature` accepts, whether typed as text, boolean or number. An
  // unquoted key "a.b", which TOML stores as b in the table a, is found, too.
  std::optional<Text> scalar(std::string_view key) const;
  // Whether the key is such a table; fails at the first key in it whose long name is not in `known`.
  bool is_group(std::string_view key, std::span<const std::string_view> known) const;

  template <class Enum>
  std::optional<Enum> choice(std::string_view key,
                             std::initializer_list<std::pair<std::string_view, Enum>> choices) const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : choices) names.push_back(name);
    const auto typed = text(key, names.front());
    if (!typed) return std::nullopt;
    for (const auto& [name, value] : choices)
      if (name == typed->value) return value;
    fail_choice(*typed, key, names);
  }

  std::optional<std::string> choice(std::string_view key, std::span<const std::string_view> words) const;

  // Sub-tables. A wrong number of brackets is reported as such.
  std::optional<Section> table(std::string_view key, std::span<const std::string_view> known,
                               std::string_view otherwise = {}) const;
  std::vector<Section> tables(std::string_view key, std::span<const std::string_view> known) const;

  // Throws with the message "FILE:LINE: [link] KEY CLAUSE". A line number of 0 and an empty key are omitted.
  [[noreturn]] void fail(std::size_t line, std::string_view key, std::string_view clause) const;
  // "FILE:LINE: SENTENCE", for mistakes that concern more than this table.
  [[noreturn]] void fail_plainly(std::size_t line, std::string_view sentence) const {
    fail_at(file_, line, sentence);
  }

 private:
  [[noreturn]] void fail_type(const toml::node& node, std::string_view key, std::string_view wanted,
                              std::string_view example) const;
  [[noreturn]] void fail_choice(const Text& typed, std::string_view key,
                                std::span<const std::string_view> names) const;
  const toml::array* array(std::string_view key, std::string_view example) const;

  std::string_view file_;
  std::string title_;
  const toml::table& table_;
  std::size_t line_;
};

}  // namespace longhaul::config
