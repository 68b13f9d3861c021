// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/module_links.h"

#include "proxy/modules/http/prefetch/links.h"
#include "proxy/modules/http/prefetch/reference.h"

namespace longhaul::http {
namespace {

constexpr std::size_t kMostWordBytes = 256;  // of a name that is imported

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}
// A byte order mark counts as white space, too.
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\xef' || c == '\xbb' || c == '\xbf';
}
bool has_path(std::string_view reference) {
  return reference.starts_with('/') || reference.starts_with("./") || reference.starts_with("../") ||
         reference.starts_with("http://") || reference.starts_with("https://");
}

}  // namespace

void ModuleLinks::feed(std::string_view text) {
  for (const char c : text) {
    if (state_ == State::over) return;
    take_char(c);
  }
}

void ModuleLinks::take_char(char c) {
  switch (state_) {
    case State::statement:
      if (is_blank(c) || c == ';') return;
      if (c == '/') {
        outside_ = std::exchange(state_, State::slash);
      } else if (c == '"' || c == '\'') {  // a directive ("use strict")
        quote_ = c;
        value_.clear();
        outside_ = std::exchange(state_, State::string);
      } else if (is_word(c)) {
        word_.assign(1, c);
        state_ = State::word;
      } else {
        state_ = State::over;
      }
      return;
    case State::word:
      if (is_word(c)) {
        word_ += c;
        if (word_.size() > std::string_view("import").size()) state_ = State::over;
        return;
      }
      word_done();
      return take_char(c);
    case State::clause:
      if (is_word(c)) {
        if (before_ != 'w') word_.clear();
        before_ = 'w';
        word_ += c;
        if (word_.size() > kMostWordBytes) state_ = State::over;
        // `export` is followed by a list or a star, or exports what is declared here.
        if (is_export_ && word_.size() == 1 && value_.empty()) state_ = State::over;
        return;
      }
      before_ = ' ';
      if (is_blank(c)) return;
      if (c == '/') {
        outside_ = std::exchange(state_, State::slash);
      } else if (c == '"' || c == '\'') {
        // Names may be strings, too, but nobody writes them so.
        const bool is_reference = word_ == "from" || (value_.empty() && word_.empty() && !is_export_);
        quote_ = c;
        value_.clear();
        outside_ = std::exchange(state_, is_reference ? State::string : State::over);
      } else if (c == '{' || c == '}' || c == ',' || c == '*') {
        value_ = c;  // the clause is not empty
        word_.clear();
      } else {
        state_ = c == ';' && is_export_ ? State::statement : State::over;
      }
      return;
    case State::string:
      if (c == quote_) return string_done();
      if (c == '\\' || c == '\n' || value_.size() == kMostTargetBytes) {
        state_ = State::over;
        return;
      }
      value_ += c;
      return;
    case State::slash:
      before_ = 0;
      state_ = c == '/' ? State::line_comment : c == '*' ? State::comment : State::over;
      return;
    case State::line_comment:
      if (c == '\n' || c == '\r') state_ = outside_;
      return;
    case State::comment:
      if (c == '/' && before_ == '*')
        state_ = outside_, before_ = ' ';
      else
        before_ = c;
      return;
    case State::over:
      return;
  }
}

void ModuleLinks::word_done() {
  is_export_ = word_ == "export";
  state_ = is_export_ || word_ == "import" ? State::clause : State::over;
  before_ = ' ';
  word_.clear(), value_.clear();
}

void ModuleLinks::string_done() {
  state_ = State::statement;
  if (outside_ == State::statement || !has_path(value_)) return;
  found_.push_back(std::exchange(value_, {}));
  if (++count_ == kMostLinks) state_ = State::over;
}

}  // namespace longhaul::http
