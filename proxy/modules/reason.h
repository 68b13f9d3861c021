// SPDX-License-Identifier: Apache-2.0
// Why a flow is, or is not, fully optimised, as reported by a module and its host: a row of a table with a
// short code, a sentence and a remedy. Each module has its own rows (descriptor.h), as does
// proxy/flows/reason.h.
#pragma once
#include <functional>
#include <string_view>

namespace longhaul::modules {

// A row. It lives as long as the program and is identified by its address, so it cannot be copied.
struct ReasonText {
  constexpr ReasonText(std::string_view c, std::string_view s, std::string_view r)
      : code(c), sentence(s), remedy(r) {}
  ReasonText(const ReasonText&) = delete;

  std::string_view
      code;  // printed by `longhaul flows` and used as a metrics label: its meaning never changes
  std::string_view sentence;  // what happened
  std::string_view remedy;    // what an operator can do about it; "none needed" if nothing is wrong
};

namespace reasons {
inline constexpr ReasonText optimised{"optimised", "The flow uses the link with the features shown.",
                                      "none needed"};
inline constexpr ReasonText memory_limit{
    "memory_limit",
    "The memory limit is reached: new flows bypass the link, and flows with an application module "
    "continue without it.",
    "raise [limits] memory, or use longhaul flows to find receivers that have stopped reading; new flows "
    "use the link again when memory is free"};
}  // namespace reasons

class Reason {
 public:
  constexpr Reason() = default;                               // optimised: nothing to explain
  constexpr Reason(const ReasonText& text) : text_(&text) {}  // NOLINT: implicit on purpose
  Reason(const ReasonText&&) = delete;
  constexpr const ReasonText* operator->() const { return text_; }

  friend constexpr bool operator==(Reason a, Reason b) { return a.text_ == b.text_; }
  friend bool operator<(Reason a, Reason b) {
    return std::less<>{}(a.text_, b.text_);
  }  // for maps: any order

 private:
  const ReasonText* text_ = &reasons::optimised;
};

}  // namespace longhaul::modules
