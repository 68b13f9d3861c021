// SPDX-License-Identifier: Apache-2.0
// Finds in a page what a browser will load with it, and in a style sheet what that needs. Each byte is looked at once, in
// whatever pieces it comes. It is no parser: what it takes for a reference and is none costs a request that nobody uses,
// what it overlooks the browser asks for itself.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhaul::http {

inline constexpr std::size_t kMostLinks = 256;  // of one document

// url(…) of pictures, and @import.
class StyleLinks {
 public:
  void feed(std::string_view text);
  // References, as they stand there.
  std::vector<std::string> take() { return std::exchange(found_, {}); }

 private:
  enum class State : std::uint8_t { text, comment, name, url, url_text, string };
  void take_char(char c);
  void found();

  State state_ = State::text;
  char quote_ = 0, before_ = 0;
  bool is_import_ = false, wanted_ = false;
  std::string name_, value_;
  std::size_t count_ = 0;
  std::vector<std::string> found_;
};

class PageLinks {
 public:
  void feed(std::string_view text);
  std::vector<std::string> take() { return std::exchange(found_, {}); }
  // Of <base href>, which later and earlier references of the page are relative to; empty: the page's own address.
  const std::string& base() const { return base_; }

 private:
  enum class State : std::uint8_t {
    text, open, markup, comment, declaration, name, before_attribute, attribute, after_attribute, before_value, value, raw, raw_end
  };
  // Of the tag that is being read, what matters here.
  struct Tag {
    std::string name;
    bool closes = false;
    std::string src, href, rel, type, as, poster;
    bool has_srcset = false, is_lazy = false, is_for_old_browsers = false, is_disabled = false;
  };

  void take_char(char c);
  void begin_attribute(char c);
  void attribute_done();
  void tag_done();
  void found(std::string reference);
  void read_link();

  State state_ = State::text;
  Tag tag_;
  std::string attribute_, value_, raw_, raw_read_;
  char quote_ = 0;
  bool too_long_ = false, in_picture_ = false;
  int dashes_ = 0;
  StyleLinks style_;
  std::string base_;
  std::size_t count_ = 0;
  std::vector<std::string> found_;
};

}  // namespace longhaul::http
