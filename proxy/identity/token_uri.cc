// SPDX-License-Identifier: Apache-2.0
#include "proxy/identity/token_uri.h"

#include <new>
#include <string_view>

namespace longhaul::identity {
namespace {

// In RFC 7512, section 2.4, a file is "file:/path" or a path; "|program" is not run.
std::filesystem::path file_of(std::string_view source) {
  if (source.starts_with("file://"))
    source.remove_prefix(7);
  else if (source.starts_with("file:"))
    source.remove_prefix(5);
  return source.starts_with('/') ? std::filesystem::path(source) : std::filesystem::path();
}

}  // namespace

config::TextResult<TokenUri> TokenUri::parse(const std::string& text) {
  TokenUri made;
  made.uri_.reset(p11_kit_uri_new());
  if (!made.uri_) throw std::bad_alloc();
  P11KitUri* const uri = made.uri_.get();
  made.text_ = text.substr(0, text.find('?'));
  if (const int result = p11_kit_uri_parse(text.c_str(), P11_KIT_URI_FOR_ANY, uri); result != P11_KIT_URI_OK)
    return config::TextError{std::string("is not a PKCS#11 URI (RFC 7512): ") + p11_kit_uri_message(result)};
  if (p11_kit_uri_any_unrecognized(uri) != 0)
    return config::TextError{"has an attribute that is not one of RFC 7512"};
  if (p11_kit_uri_get_pin_value(uri))
    return config::TextError{
        "contains the PIN itself, which must not be in this file; write it to a file with mode 0600 and name "
        "that file in pin-source="};
  const CK_TOKEN_INFO* const token = p11_kit_uri_get_token_info(uri);
  if (token->label[0] == 0 && token->serialNumber[0] == 0)
    return config::TextError{"needs token= or serial=, so that no other token gets the PIN"};
  const auto* const type = p11_kit_uri_get_attribute(uri, CKA_CLASS);
  if (type && *static_cast<const CK_OBJECT_CLASS*>(type->pValue) != CKO_PRIVATE_KEY)
    return config::TextError{"names an object that is not a private key; write type=private"};
  if (!p11_kit_uri_get_attribute(uri, CKA_LABEL) && !p11_kit_uri_get_attribute(uri, CKA_ID))
    return config::TextError{"needs object= or id=, which name the key"};
  if (const char* const source = p11_kit_uri_get_pin_source(uri)) {
    made.pin_file_ = file_of(source);
    if (made.pin_file_.empty())
      return config::TextError{"must have the absolute path of a file in pin-source="};
  }
  if (const char* const module = p11_kit_uri_get_module_path(uri)) {
    made.module_ = module;
    if (!made.module_.is_absolute()) return config::TextError{"must have an absolute path in module-path="};
  }
  if (p11_kit_uri_get_module_name(uri))
    return config::TextError{"has module-name=, which is not supported; use module-path="};
  return made;
}

}  // namespace longhaul::identity
