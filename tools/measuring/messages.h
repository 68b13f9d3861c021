// SPDX-License-Identifier: Apache-2.0
// Messages of the control connection: a length of four bytes, big-endian, then that many bytes of a JSON
// object. Leaves what they mean to the tools, and sockets to connection.h.
#pragma once
#include <boost/json/object.hpp>
#include <boost/system/result.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "codecs/byte_writer.h"

namespace longhaul::measuring {

inline constexpr std::size_t kLongestMessage = 1024 * 1024;  // bytes; what is longer is sent in several

enum class MessageError { too_long, not_an_object };

// Throws Trouble where the message is too long: the sender's own mistake.
std::string encode(const boost::json::object& message);

// Cuts a stream of bytes from outside into messages. Holds one message at most beside what was fed.
class MessageReader {
 public:
  explicit MessageReader(std::size_t longest) : longest_(longest) {}

  void allow(std::size_t longest) { longest_ = longest; }
  void feed(Bytes bytes) { append(held_, bytes); }
  // Nothing: more bytes are needed. After an error the stream is of no use any more.
  boost::system::result<std::optional<boost::json::object>, MessageError> next();

 private:
  std::size_t longest_;
  Buffer held_;
};

// A member of a message, of the type and in the bounds that it must have; otherwise Trouble that names it.
std::int64_t number(const boost::json::object& message, std::string_view name, std::int64_t least,
                    std::int64_t most);
std::string text(const boost::json::object& message, std::string_view name, std::size_t longest);
bool truth(const boost::json::object& message, std::string_view name);
const boost::json::object& object(const boost::json::object& message, std::string_view name);
const boost::json::array& array(const boost::json::object& message, std::string_view name,
                                std::size_t longest);

}  // namespace longhaul::measuring
