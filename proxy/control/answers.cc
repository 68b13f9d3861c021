// SPDX-License-Identifier: Apache-2.0
#include "proxy/control/answers.h"

#include <boost/json/serialize.hpp>

namespace longhaul::control {

namespace json = boost::json;

Answer refusal(boost::beast::http::status code, std::string_view sentence) {
  return {.status = code, .body = json::serialize(json::object{{"error", sentence}}) + "\n"};
}

Answer answer_json(const json::object& object) { return {.body = json::serialize(object) + "\n"}; }

}  // namespace longhaul::control
