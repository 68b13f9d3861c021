// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/h2/blocks.h"

#include <algorithm>
#include <array>

namespace longhaul::http::h2 {

std::optional<RequestHead> request_of(const Fields& block, std::string_view scheme) {
  RequestHead request{.method = block.value(":method"), .target = block.value(":path"), .fields = {}};
  const std::string authority = block.value(":authority");
  const bool is_here = block.value(":scheme") + "://" == scheme && !block.has(":protocol");
  const bool has_one_name =
      authority.empty() || !block.has("host") || same_name(block.value("host"), authority);
  if (!is_here || !has_one_name) return std::nullopt;
  if (!authority.empty()) request.fields.add({"host", authority});
  for (const Field& field : block.all()) {
    const bool is_known =
        field.name.starts_with(':') || (!authority.empty() && same_name(field.name, "host"));
    if (!is_known) request.fields.add(field);
  }
  return request;
}

std::optional<ResponseHead> response_of(const Fields& block) {
  const std::string status = block.value(":status");
  const bool is_number =
      status.size() == 3 && std::ranges::all_of(status, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return std::nullopt;
  ResponseHead response{.status = static_cast<unsigned>(std::stoul(status)), .fields = {}};
  if (response.status == 200) response.phrase = "OK";  // for HTTP/1, if it is stored
  for (const Field& field : block.all())
    if (!field.name.starts_with(':')) response.fields.add(field);
  return response;
}

Fields block_of(const ResponseHead& response) {
  Fields block;
  block.add({":status", std::to_string(response.status)});
  for (const Field& field : response.fields.all()) block.add(field);
  return block;
}

Fields block_of(const RequestHead& request, std::string_view scheme) {
  Fields block;
  block.add({":method", request.method});
  block.add({":scheme", std::string(scheme.substr(0, scheme.find(':')))});
  block.add({":authority", request.fields.value("host")});
  block.add({":path", request.target});
  for (const Field& field : request.fields.all())
    if (!same_name(field.name, "host")) block.add(field);
  return block;
}

}  // namespace longhaul::http::h2
