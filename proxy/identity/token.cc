// SPDX-License-Identifier: Apache-2.0
// PKCS #11 Cryptographic Token Interface 2.40. p11-kit loads modules, and shares them with other users in
// this process.
#include "proxy/identity/token.h"

#include <algorithm>
#include <array>
#include <vector>

namespace longhaul::identity {
namespace {

std::string words_of(CK_RV result) { return p11_kit_strerror(result); }

CK_UTF8CHAR* chars(Bytes pin) { return reinterpret_cast<CK_UTF8CHAR*>(const_cast<std::byte*>(pin.data())); }

// The length without the zero byte.
CK_ULONG length(Bytes pin) { return pin.empty() ? 0 : pin.size() - 1; }

}  // namespace

// One initialized module, or all that this host has registered.
struct Token::Modules {
  CK_FUNCTION_LIST* one = nullptr;
  CK_FUNCTION_LIST** all = nullptr;

  Modules() = default;
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;
  ~Modules() {
    if (all) p11_kit_modules_finalize_and_release(all);
    if (!one) return;
    p11_kit_module_finalize(one);
    p11_kit_module_release(one);
  }

  bool load(const std::filesystem::path& path, Failure& failure) {
    if (path.empty()) {
      all = p11_kit_modules_load_and_initialize(0);
      if (!all)
        failure.why = "the PKCS#11 modules of this host cannot be loaded: " + message("unknown reason");
      else if (!*all)
        failure.why =
            "this host has no PKCS#11 module registered (/usr/share/p11-kit/modules); install the token's, "
            "or name it in module-path=";
      return failure.why.empty();
    }
    CK_FUNCTION_LIST* const loaded = p11_kit_module_load(path.c_str(), 0);
    if (!loaded) {
      failure.why = "the PKCS#11 module " + path.string() + " cannot be loaded: " + message("unknown reason");
      return false;
    }
    if (const CK_RV result = p11_kit_module_initialize(loaded); result != CKR_OK) {
      p11_kit_module_release(loaded);
      failure.why = "the PKCS#11 module " + path.string() + " cannot be initialized: " + words_of(result);
      return false;
    }
    one = loaded;
    return true;
  }

  std::vector<CK_FUNCTION_LIST*> each() const {
    if (one) return {one};
    std::vector<CK_FUNCTION_LIST*> found;
    for (CK_FUNCTION_LIST** at = all; at && *at; ++at) found.push_back(*at);
    return found;
  }

 private:
  static std::string message(const char* otherwise) {
    const char* const text = p11_kit_message();
    return text && *text ? text : otherwise;
  }
};

namespace {

struct Slot {
  CK_FUNCTION_LIST* module;
  CK_SLOT_ID number;
  CK_TOKEN_INFO about;
};

// The slots of present tokens that match the URI.
std::vector<Slot> slots_of(const std::vector<CK_FUNCTION_LIST*>& modules, P11KitUri* uri) {
  std::vector<Slot> found;
  for (CK_FUNCTION_LIST* const module : modules) {
    CK_ULONG count = 0;
    // Called without a list, modules update their list of tokens.
    if (module->C_GetSlotList(CK_TRUE, nullptr, &count) != CKR_OK || count > 4096) continue;
    std::vector<CK_SLOT_ID> numbers(count);
    if (module->C_GetSlotList(CK_TRUE, numbers.data(), &count) != CKR_OK) continue;
    numbers.resize(count);
    for (const CK_SLOT_ID number : numbers) {
      CK_TOKEN_INFO about{};
      if (module->C_GetTokenInfo(number, &about) == CKR_OK && p11_kit_uri_match_token_info(uri, &about) == 1)
        found.push_back({module, number, about});
    }
  }
  return found;
}

bool is_about_pin(CK_RV result) {
  return result == CKR_PIN_INCORRECT || result == CKR_PIN_INVALID || result == CKR_PIN_LEN_RANGE ||
         result == CKR_PIN_LOCKED || result == CKR_PIN_EXPIRED;
}

}  // namespace

Token::Token(std::unique_ptr<Modules> modules, Bytes pin) : modules_(std::move(modules)), pin_(pin) {}

Token::~Token() {
  if (has_session_) (void)module_->C_CloseSession(session_);  // the session may have ended with the token
}

std::unique_ptr<Token> Token::open(const TokenUri& uri, Bytes pin, Failure& failure) {
  failure = {};
  auto modules = std::make_unique<Modules>();
  if (!modules->load(uri.module(), failure)) return nullptr;
  const std::vector<Slot> slots = slots_of(modules->each(), uri.get());
  if (slots.size() != 1) {
    failure.why = slots.empty() ? "no token is present that it describes"
                                : "it describes more than one token; add serial=, or module-path=";
    return nullptr;
  }
  std::unique_ptr<Token> token(new Token(std::move(modules), pin));
  token->module_ = slots[0].module;
  token->slot_ = slots[0].number;
  if (const CK_RV result = token->module_->C_OpenSession(slots[0].number, CKF_SERIAL_SESSION, nullptr,
                                                         nullptr, &token->session_);
      result != CKR_OK) {
    failure.why = "no session with the token can be opened: " + words_of(result);
    return nullptr;
  }
  token->has_session_ = true;
  if (!token->log_in(slots[0].about, failure) || !token->find(uri, failure)) return nullptr;
  return token;
}

bool Token::log_in(const CK_TOKEN_INFO& about, Failure& failure) {
  if (pin_.empty()) return true;  // some keys need no PIN; others are not found by find()
  failure.is_final = true;
  if ((about.flags & CKF_USER_PIN_LOCKED) != 0)
    failure.why = "the token is locked after too many wrong PINs; its administrator can unlock it";
  else if ((about.flags & CKF_USER_PIN_FINAL_TRY) != 0)
    failure.why =
        "another wrong PIN would lock the token: log in with another program first (pkcs11-tool --login "
        "--test)";
  if (!failure.why.empty()) return false;
  const CK_RV result = module_->C_Login(session_, CKU_USER, chars(pin_), length(pin_));
  if (result == CKR_OK || result == CKR_USER_ALREADY_LOGGED_IN) return failure = {}, true;
  failure.is_final = is_about_pin(result);
  failure.why = (failure.is_final ? "the token refuses the PIN: " : "the login to the token failed: ") +
                words_of(result);
  return false;
}

bool Token::find(const TokenUri& uri, Failure& failure) {
  CK_OBJECT_CLASS type = CKO_PRIVATE_KEY;
  std::vector<CK_ATTRIBUTE> wanted{{CKA_CLASS, &type, sizeof type}};
  for (const CK_ATTRIBUTE_TYPE each : {CKA_LABEL, CKA_ID})
    if (const CK_ATTRIBUTE* const attribute = p11_kit_uri_get_attribute(uri.get(), each))
      wanted.push_back(*attribute);
  std::array<CK_OBJECT_HANDLE, 2> found{};
  CK_ULONG count = 0;
  CK_RV result = module_->C_FindObjectsInit(session_, wanted.data(), wanted.size());
  if (result == CKR_OK) {
    result = module_->C_FindObjects(session_, found.data(), found.size(), &count);
    (void)module_->C_FindObjectsFinal(session_);
  }
  if (result != CKR_OK)
    failure.why = "the token cannot be searched: " + words_of(result);
  else if (count == 0)
    failure.why = std::string("the token has no such private key") +
                  (pin_.empty() ? ", or shows it only with a PIN (pin-source=)" : "");
  else if (count > 1)
    failure.why = "the token has more than one such private key; add id=";
  if (!failure.why.empty()) return false;
  key_ = found[0];
  CK_BBOOL each_time = CK_FALSE;
  CK_ATTRIBUTE asked{CKA_ALWAYS_AUTHENTICATE, &each_time, sizeof each_time};
  asks_each_time_ = module_->C_GetAttributeValue(session_, key_, &asked, 1) == CKR_OK && each_time == CK_TRUE;
  return true;
}

bool Token::has(CK_MECHANISM_TYPE mechanism) const {
  CK_ULONG count = 0;
  if (module_->C_GetMechanismList(slot_, nullptr, &count) != CKR_OK || count > 4096) return false;
  std::vector<CK_MECHANISM_TYPE> all(count);
  if (module_->C_GetMechanismList(slot_, all.data(), &count) != CKR_OK) return false;
  all.resize(std::min<std::size_t>(count, all.size()));
  CK_MECHANISM_INFO about{};
  return std::ranges::find(all, mechanism) != all.end() &&
         module_->C_GetMechanismInfo(slot_, mechanism, &about) == CKR_OK && (about.flags & CKF_SIGN) != 0;
}

std::string Token::sign(CK_MECHANISM mechanism, Bytes data, std::span<unsigned char> out, std::size_t& size) {
  CK_RV result = module_->C_SignInit(session_, &mechanism, key_);
  if (result == CKR_OK && asks_each_time_)
    result = module_->C_Login(session_, CKU_CONTEXT_SPECIFIC, chars(pin_), length(pin_));
  CK_ULONG made = out.size();
  if (result == CKR_OK)
    result = module_->C_Sign(session_, reinterpret_cast<CK_BYTE*>(const_cast<std::byte*>(data.data())),
                             data.size(), out.data(), &made);
  size = std::min<std::size_t>(made, out.size());
  return result == CKR_OK ? std::string() : "the token failed to sign: " + words_of(result);
}

}  // namespace longhaul::identity
