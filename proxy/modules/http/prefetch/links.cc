// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/links.h"

#include <algorithm>
#include <array>

#include "proxy/modules/http/head.h"
#include "proxy/modules/http/prefetch/reference.h"
#include "proxy/modules/http/prefetch/words.h"

namespace longhaul::http {
namespace {

constexpr std::size_t kMostNameBytes = 16;
// Elements whose content is not markup, or is not displayed.
constexpr std::array<std::string_view, 9> kRaw{"script", "style", "noscript", "template", "textarea",
                                               "title",  "iframe", "xmp", "noframes"};

bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_white(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// By the file name's ending. Style sheets list several formats of a font; a browser loads one.
bool is_font(std::string_view reference) {
  static constexpr std::array<std::string_view, 5> kEndings{".woff", ".woff2", ".ttf", ".otf", ".eot"};
  const std::string path = lower(reference.substr(0, reference.find_first_of("?#")));
  return std::ranges::any_of(kEndings, [&](std::string_view each) { return path.ends_with(each); });
}

// Decodes &amp;, the one character reference that is common in addresses; empty: it contains others.
std::string unescaped(std::string_view value) {
  constexpr std::string_view kAmpersand = "&amp;";
  std::string result;
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (value.substr(at).starts_with(kAmpersand)) {
      result += '&';
      at += kAmpersand.size() - 1;
      continue;
    }
    if (value[at] == '&') {
      const std::size_t end = value.find_first_of(";=&", at + 1);
      if (end != std::string_view::npos && value[end] == ';') return {};
    }
    result += value[at];
  }
  return result;
}

}  // namespace

// ------------------------------------------------------------------------------------------------- style sheets

void StyleLinks::feed(std::string_view text) {
  for (const char c : text) {
    if (count_ == kMostLinks) return;
    take_char(c);
    before_ = c;
  }
}

void StyleLinks::take_char(char c) {
  switch (state_) {
    case State::text:
      if (c == '*' && before_ == '/') {
        state_ = State::comment;
      } else if (c == '"' || c == '\'') {
        // A string is a reference only after @import.
        state_ = State::string;
        quote_ = c;
        wanted_ = std::exchange(is_import_, false);
        value_.clear();
      } else if (is_ascii_letter(c) || c == '@') {
        state_ = State::name;
        name_.assign(1, lowered(c));
      } else if (c == ';' || c == '{' || c == '}') {
        is_import_ = false;
      }
      return;
    case State::comment:
      if (c == '/' && before_ == '*') state_ = State::text;
      return;
    case State::name:
      if (is_ascii_letter(c) || c == '-' || (c >= '0' && c <= '9')) {
        if (name_.size() < kMostNameBytes) name_ += lowered(c);
        return;
      }
      if (name_ == "@import") is_import_ = true;
      state_ = State::text;
      if (c == '(' && name_ == "url") {
        state_ = State::url;
        wanted_ = true;
        value_.clear();
        return;
      }
      return take_char(c);
    case State::url:
      if (is_white(c)) return;
      if (c == '"' || c == '\'') {
        state_ = State::string;
        quote_ = c;
        return;
      }
      state_ = State::url_text;
      [[fallthrough]];
    case State::url_text:
      if (c == ')') return found();
      break;
    case State::string:
      if (c == quote_) return found();
      break;
  }
  if (value_.size() <= kMostTargetBytes) value_ += c;
}

void StyleLinks::found() {
  state_ = State::text;
  const bool is_import = std::exchange(is_import_, false);
  const bool fits = std::exchange(wanted_, false) && !value_.empty() && value_.size() <= kMostTargetBytes &&
                    value_.find('\\') == std::string::npos && (is_import || !is_font(value_));
  if (!fits) return;
  ++count_;
  found_.push_back(std::exchange(value_, {}));
}

// -------------------------------------------------------------------------------------------------------- pages

void PageLinks::feed(std::string_view text) {
  for (const char c : text) {
    if (count_ >= kMostLinks) return;
    take_char(c);
  }
}

void PageLinks::take_char(char c) {
  switch (state_) {
    case State::text:
      if (c == '<') state_ = State::open;
      return;
    case State::open:
      tag_ = {};
      if (c == '!') {
        state_ = State::markup;
        dashes_ = 0;
      } else if (c == '/') {
        tag_.closes = true;
        state_ = State::name;
      } else if (is_ascii_letter(c)) {
        tag_.name.assign(1, lowered(c));
        state_ = State::name;
      } else {
        state_ = c == '<' ? State::open : State::text;
      }
      return;
    case State::markup:
      if (c == '-' && ++dashes_ == 2)
        state_ = State::comment;  // ">" ends it here too
      else if (c != '-')
        state_ = c == '>' ? State::text : State::declaration;
      return;
    case State::comment:
      if (c == '>' && dashes_ >= 2) state_ = State::text;
      dashes_ = c == '-' ? std::min(dashes_ + 1, 2) : 0;
      return;
    case State::declaration:
      if (c == '>') state_ = State::text;
      return;
    case State::name:
      if (c == '>') return tag_done();
      if (is_white(c) || c == '/')
        state_ = State::before_attribute;
      else if (tag_.name.size() < kMostNameBytes)
        tag_.name += lowered(c);
      return;
    case State::before_attribute:
      return begin_attribute(c);
    case State::attribute:
      if (c == '=')
        state_ = State::before_value;
      else if (c == '>' || is_white(c) || c == '/')
        state_ = State::after_attribute, take_char(c);
      else if (attribute_.size() < kMostNameBytes)
        attribute_ += lowered(c);
      return;
    case State::after_attribute:
      if (is_white(c)) return;
      if (c == '=') {
        state_ = State::before_value;
        return;
      }
      attribute_done();
      return begin_attribute(c);
    case State::before_value:
      if (is_white(c)) return;
      quote_ = c == '"' || c == '\'' ? c : '\0';
      state_ = State::value;
      if (quote_ != '\0') return;
      [[fallthrough]];
    case State::value: {
      const bool ends = quote_ != '\0' ? c == quote_ : is_white(c) || c == '>';
      if (!ends) {
        too_long_ |= value_.size() == kMostTargetBytes;
        if (!too_long_) value_ += c;
        return;
      }
      attribute_done();
      state_ = State::before_attribute;
      if (c == '>') tag_done();
      return;
    }
    case State::raw:
      if (c == '<')
        state_ = State::raw_end, raw_read_.clear(), raw_end_ = c;
      else
        read_raw({&c, 1});
      return;
    case State::raw_end: {
      // "/", the name, and a character that ends a name.
      const std::string wanted = '/' + raw_;
      if (raw_read_ == wanted && (is_white(c) || c == '/' || c == '>')) {
        tag_ = {};
        tag_.name = raw_;
        tag_.closes = true;
        if (raw_ == "style")
          for (std::string& each : style_.take()) found(std::move(each));
        for (std::string& each : module_.take()) found(std::move(each));
        state_ = State::before_attribute;
        return take_char(c);
      }
      raw_read_ += lowered(c);
      if (c != '<') raw_end_ += c;
      if (wanted.starts_with(raw_read_)) return;
      // It was content.
      read_raw(raw_end_);
      state_ = c == '<' ? State::raw_end : State::raw;
      raw_read_.clear(), raw_end_ = c;
      return;
    }
  }
}

void PageLinks::read_raw(std::string_view text) {
  if (raw_ == "style")
    style_.feed(text);
  else if (is_module_)
    module_.feed(text);
}

void PageLinks::begin_attribute(char c) {
  state_ = State::before_attribute;
  if (is_white(c) || c == '/') return;
  if (c == '>') return tag_done();
  attribute_.assign(1, lowered(c));
  value_.clear();
  too_long_ = false;
  state_ = State::attribute;
}

void PageLinks::attribute_done() {
  const std::string name = std::exchange(attribute_, {});
  std::string value = too_long_ ? std::string() : unescaped(std::exchange(value_, {}));
  value_.clear();
  // Of repeated attributes the first counts.
  const auto keep = [&](std::string& where) {
    if (where.empty()) where = std::move(value);
  };
  if (name == "src") keep(tag_.src);
  if (name == "href") keep(tag_.href);
  if (name == "poster") keep(tag_.poster);
  if (name == "rel") keep(tag_.rel), tag_.rel = lower(tag_.rel);
  if (name == "type") keep(tag_.type), tag_.type = lower(tag_.type);
  if (name == "crossorigin") keep(tag_.crossorigin);
  if (name == "as") keep(tag_.as), tag_.as = lower(tag_.as);
  if (name == "srcset" || name == "imagesrcset") tag_.has_srcset = true;
  if (name == "loading") tag_.is_lazy = same_name(value, "lazy");
  if (name == "nomodule") tag_.is_for_old_browsers = true;
  if (name == "disabled") tag_.is_disabled = true;
}

void PageLinks::tag_done() {
  state_ = State::text;
  const std::string& name = tag_.name;
  if (name == "picture") in_picture_ = !tag_.closes;
  if (tag_.closes) return;
  if (name == "script") {
    const bool runs = tag_.type.empty() || tag_.type == "module" || tag_.type.ends_with("/javascript") ||
                      tag_.type.ends_with("/ecmascript");
    if (runs && !tag_.is_for_old_browsers) found(tag_.src);
  } else if (name == "link") {
    read_link();
  } else if (name == "img") {
    // The browser selects one of several by the width of its window.
    if (!tag_.has_srcset && !tag_.is_lazy && !in_picture_) found(tag_.src);
  } else if (name == "video") {
    found(tag_.poster);
  } else if (name == "base" && base_.empty()) {
    base_ = tag_.href;
  }
  if (std::ranges::find(kRaw, name) != kRaw.end()) {
    raw_ = name;
    state_ = State::raw;
    style_ = {};
    is_module_ = name == "script" && tag_.type == "module" && tag_.src.empty();
    module_ = {};
  }
}

void PageLinks::read_link() {
  static constexpr std::array<std::string_view, 4> kPreloaded{"script", "style", "image", "font"};
  if (tag_.has_srcset || tag_.is_disabled) return;
  const bool is_style = has_word(tag_.rel, "stylesheet") && !has_word(tag_.rel, "alternate");
  const bool is_preloaded = has_word(tag_.rel, "preload") && std::ranges::find(kPreloaded, tag_.as) != kPreloaded.end();
  if (is_style || is_preloaded || has_word(tag_.rel, "modulepreload")) found(tag_.href);
  // The first counts.
  if (has_word(tag_.rel, "manifest") && !tag_.href.empty() && !std::exchange(has_manifest_, true))
    manifest_ =
        Manifest{.reference = tag_.href, .has_credentials = same_name(tag_.crossorigin, "use-credentials")};
}

void PageLinks::found(std::string reference) {
  if (reference.empty() || count_ >= kMostLinks) return;
  ++count_;
  found_.push_back(std::move(reference));
}

}  // namespace longhaul::http
