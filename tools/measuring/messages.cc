// SPDX-License-Identifier: Apache-2.0
// Framing and the careful reading of members.
#include "tools/measuring/messages.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>

#include "tools/measuring/trouble.h"

namespace longhaul::measuring {
namespace {

constexpr std::size_t kHead = 4;
constexpr std::size_t kDeepest = 8;  // objects in objects; ours have three

const boost::json::value& member(const boost::json::object& message, std::string_view name) {
  if (const auto* value = message.if_contains(name)) return *value;
  throw Trouble("the other side sent a message without '" + std::string(name) + "'");
}

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw Trouble("the other side sent a message whose '" + std::string(name) + "' is " + why);
}

}  // namespace

std::string encode(const boost::json::object& message) {
  std::string encoded(kHead, '\0');
  encoded += boost::json::serialize(message);
  const std::size_t size = encoded.size() - kHead;
  if (size > kLongestMessage)
    throw Trouble("a message of " + std::to_string(size) + " bytes is too long to send");
  for (std::size_t i = 0; i < kHead; ++i) encoded[i] = static_cast<char>(size >> (8 * (kHead - 1 - i)));
  return encoded;
}

boost::system::result<std::optional<boost::json::object>, MessageError> MessageReader::next() {
  if (held_.size() < kHead) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < kHead; ++i) size = size << 8 | std::to_integer<std::size_t>(held_[i]);
  if (size > longest_) return MessageError::too_long;  // before anything is kept for it
  if (held_.size() - kHead < size) return std::nullopt;
  boost::json::parse_options options;
  options.max_depth = kDeepest;
  boost::system::error_code error;
  auto value = boost::json::parse(as_text(Bytes(held_).subspan(kHead, size)), error, {}, options);
  if (error || !value.is_object()) return MessageError::not_an_object;
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(kHead + size));
  return std::optional(std::move(value.get_object()));
}

std::int64_t number(const boost::json::object& message, std::string_view name, std::int64_t least,
                    std::int64_t most) {
  boost::system::error_code error;
  const auto value = member(message, name).to_number<std::int64_t>(error);
  if (error) refuse(name, "not a whole number");
  if (value < least || value > most)
    refuse(name,
           std::to_string(value) + ", not between " + std::to_string(least) + " and " + std::to_string(most));
  return value;
}

std::string text(const boost::json::object& message, std::string_view name, std::size_t longest) {
  const auto* value = member(message, name).if_string();
  if (!value) refuse(name, "not a string");
  if (value->size() > longest) refuse(name, "longer than " + std::to_string(longest) + " bytes");
  return std::string(*value);
}

bool truth(const boost::json::object& message, std::string_view name) {
  const auto* value = member(message, name).if_bool();
  if (!value) refuse(name, "neither true nor false");
  return *value;
}

const boost::json::object& object(const boost::json::object& message, std::string_view name) {
  const auto* value = member(message, name).if_object();
  if (!value) refuse(name, "not an object");
  return *value;
}

const boost::json::array& array(const boost::json::object& message, std::string_view name,
                                std::size_t longest) {
  const auto* value = member(message, name).if_array();
  if (!value) refuse(name, "not a list");
  if (value->size() > longest) refuse(name, "longer than " + std::to_string(longest) + " entries");
  return *value;
}

}  // namespace longhaul::measuring
