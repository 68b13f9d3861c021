// SPDX-License-Identifier: Apache-2.0
// Types, ranges and unknown keys; read.cc checks combinations.
#include "proxy/config/section.h"

#include <algorithm>

#include "proxy/config/suggest.h"

namespace longhaul::config {
namespace {

std::size_t line_of(const toml::node& node) { return node.source().begin.line; }

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "a number";
    case toml::node_type::floating_point:
      return "a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongestShown = 80;
  std::string shown = "\"";
  for (char c : text.substr(0, kLongestShown))
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return shown + (text.size() > kLongestShown ? "…\"" : "\"");
}

}  // namespace

void fail_at(std::string_view file, std::size_t line, std::string_view sentence) {
  std::string what(file);
  if (line != 0) what += ":" + std::to_string(line);
  (what += ": ") += sentence;
  // Values are quoted as typed; a line break or an escape sequence in one must not reach the terminal.
  for (char& c : what)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  throw ConfigError(what);
}

Section::Section(std::string_view file, std::string title, const toml::table& table,
                 std::span<const std::string_view> known, std::string_view otherwise)
    : file_(file), title_(std::move(title)), table_(table), line_(line_of(table)) {
  // The table is sorted by name; the first mistake in the file is reported.
  const toml::key* first = nullptr;
  for (const auto& [key, value] : table_) {
    bool found = false;
    for (std::string_view name : known) found = found || name == key.str();
    if (!found && (first == nullptr || key.source().begin.line < first->source().begin.line)) first = &key;
  }
  if (first == nullptr) return;
  const std::string where = title_.empty() ? "the file" : title_;
  fail_at(file_, first->source().begin.line,
          where + " has no key " + in_quotes(first->str()) + "." + did_you_mean(first->str(), known, otherwise));
}

void Section::fail(std::size_t line, std::string_view key, std::string_view clause) const {
  std::string sentence = title_;
  if (!sentence.empty() && !key.empty()) sentence += ' ';
  fail_at(file_, line, sentence + std::string(key) + " " + std::string(clause));
}

void Section::fail_type(const toml::node& node, std::string_view key, std::string_view wanted,
                        std::string_view example) const {
  std::string clause = "must be " + std::string(wanted);
  if (!example.empty()) clause += ", such as " + std::string(example);
  fail(line_of(node), key, clause + "; it is " + std::string(type_name(node)) + ".");
}

void Section::fail_choice(const Text& typed, std::string_view key,
                          std::span<const std::string_view> names) const {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? " or " : ", ";
    list += in_quotes(names[i]);
  }
  fail(typed.line, key, "cannot be " + in_quotes(typed.value) + "; it must be " + list + ".");
}

std::optional<Text> Section::text(std::string_view key, std::string_view example) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_string();
  if (value == nullptr) fail_type(*node, key, "a string in quotes", in_quotes(example));
  if (value->get().empty())
    fail(line_of(*node), key, "must not be empty; write for example " + in_quotes(example) + ".");
  if (value->get().find('\0') != std::string::npos) fail(line_of(*node), key, "must not contain a zero byte.");
  return Text{value->get(), line_of(*node)};
}

std::optional<std::string> Section::choice(std::string_view key, std::span<const std::string_view> words) const {
  const auto typed = text(key, words.front());
  if (!typed) return std::nullopt;
  if (std::ranges::find(words, typed->value) == words.end()) fail_choice(*typed, key, words);
  return typed->value;
}

Text Section::required_text(std::string_view key, std::string_view example) const {
  if (auto value = text(key, example)) return *std::move(value);
  const std::string where = title_.empty() ? "the file" : title_;
  fail_at(file_, line_,
          where + " needs the key " + std::string(key) + ", for example " + std::string(key) + " = " +
              in_quotes(example) + ".");
}

std::optional<bool> Section::boolean(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_boolean();
  if (value == nullptr) fail_type(*node, key, "true or false without quotes", "");
  return value->get();
}

std::optional<std::uint64_t> Section::integer(std::string_view key, std::uint64_t least,
                                              std::uint64_t most) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  const auto* value = node->as_integer();
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  if (value == nullptr) fail_type(*node, key, "a whole number from " + range, "");
  if (value->get() < 0 || static_cast<std::uint64_t>(value->get()) < least ||
      static_cast<std::uint64_t>(value->get()) > most)
    fail(line_of(*node), key, "cannot be " + std::to_string(value->get()) + "; it must be from " + range + ".");
  return static_cast<std::uint64_t>(value->get());
}

const toml::array* Section::array(std::string_view key, std::string_view example) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return nullptr;
  const toml::array* list = node->as_array();
  if (list == nullptr) fail_type(*node, key, "a list", "[" + std::string(example) + "]");
  return list;
}

std::vector<Text> Section::texts(std::string_view key, std::string_view example) const {
  std::vector<Text> values;
  const toml::array* list = array(key, in_quotes(example));
  if (list == nullptr) return values;
  for (const toml::node& node : *list) {
    const auto* value = node.as_string();
    if (value == nullptr)
      fail(line_of(node), key,
           "must be a list of strings, such as [" + in_quotes(example) + "]; one of them is " +
               std::string(type_name(node)) + ".");
    values.push_back({value->get(), line_of(node)});
  }
  return values;
}

std::vector<Text> Section::required_texts(std::string_view key, std::string_view example) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr || !node->is_array()) return {required_text(key, example)};
  auto values = texts(key, example);
  if (values.empty()) fail(line_of(*node), key, "must not be empty; write for example [" + in_quotes(example) + "].");
  return values;
}

std::vector<std::uint16_t> Section::ports(std::string_view key) const {
  std::vector<std::uint16_t> values;
  const toml::array* list = array(key, "445, 139");
  if (list == nullptr) return values;
  for (const toml::node& node : *list) {
    const auto* value = node.as_integer();
    if (value == nullptr)
      fail(line_of(node), key,
           "must be a list of port numbers, such as [445, 139]; one of them is " +
               std::string(type_name(node)) + ".");
    if (value->get() < 1 || value->get() > 65535)
      fail(line_of(node), key,
           "cannot have port " + std::to_string(value->get()) + "; ports are 1 to 65535.");
    values.push_back(static_cast<std::uint16_t>(value->get()));
  }
  return values;
}

bool Section::is_group(std::string_view key, std::span<const std::string_view> known) const {
  const toml::node* node = table_.get(key);
  const toml::table* group = node ? node->as_table() : nullptr;
  if (group == nullptr) return false;
  for (const auto& [inner, value] : *group) {
    const std::string name = std::string(key) + "." + std::string(inner.str());
    bool found = false;
    for (std::string_view each : known) found = found || each == name;
    if (!found)
      fail_at(file_, inner.source().begin.line,
              title_ + " has no key " + in_quotes(name) + "." + did_you_mean(name, known));
  }
  return true;
}

std::optional<Text> Section::scalar(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (const auto dot = key.find('.'); node == nullptr && dot != key.npos) {
    const toml::node* group = table_.get(key.substr(0, dot));
    if (group != nullptr && group->is_table()) node = group->as_table()->get(key.substr(dot + 1));
  }
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_string()) return Text{value->get(), line_of(*node)};
  if (const auto* value = node->as_boolean()) return Text{value->get() ? "true" : "false", line_of(*node)};
  if (const auto* value = node->as_integer()) return Text{std::to_string(value->get()), line_of(*node)};
  fail_type(*node, key, "true, false, a number or a string", "");
}

std::optional<Section> Section::table(std::string_view key, std::span<const std::string_view> known,
                                      std::string_view otherwise) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return std::nullopt;
  const std::string name(key);
  if (node->is_array_of_tables())
    fail_at(file_, line_of(*node->as_array()->get(0)),
            "there can be only one [" + name + "]; write it with single brackets.");
  const toml::table* inner = node->as_table();
  if (inner == nullptr) fail_type(*node, key, "a table", "[" + name + "]");
  return Section(file_, title_.empty() ? "[" + name + "]" : title_ + " " + name, *inner, known, otherwise);
}

std::vector<Section> Section::tables(std::string_view key, std::span<const std::string_view> known) const {
  std::vector<Section> sections;
  const toml::node* node = table_.get(key);
  if (node == nullptr) return sections;
  // For a table inside [[peer]]: "peer.path".
  const bool is_inside = title_.starts_with("[[");
  const std::string name = (is_inside ? title_.substr(2, title_.size() - 4) + "." : "") + std::string(key);
  if (node->is_table())
    fail_at(file_, line_of(*node),
            "there can be several of this table; write [[" + name + "]] with double brackets, not [" + name + "].");
  const toml::array* list = node->as_array();
  if (list == nullptr) fail_type(*node, key, "a table", "[[" + name + "]]");
  for (const toml::node& entry : *list) {
    if (!entry.is_table()) fail_type(entry, key, "a table", "[[" + name + "]]");
    sections.emplace_back(file_, "[[" + name + "]]", *entry.as_table(), known);
  }
  return sections;
}

}  // namespace longhaul::config
