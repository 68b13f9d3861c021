// SPDX-License-Identifier: Apache-2.0
// A response of the control API, and functions for the two most frequent forms.
#pragma once
#include <boost/beast/http/status.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>

namespace longhaul::control {

struct Answer {
  boost::beast::http::status status = boost::beast::http::status::ok;
  std::string body{};
  std::string content_type = "application/json";
  std::string allow{};          // methods, with 405
  bool asks_for_token = false;  // with 401
};

// {"error": sentence}
Answer refusal(boost::beast::http::status status, std::string_view sentence);
Answer answer_json(const boost::json::object& object);
inline std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

}  // namespace longhaul::control
