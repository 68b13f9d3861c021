// SPDX-License-Identifier: Apache-2.0
// Finds the references in a page that a browser will load with it, and those in a style sheet. Each byte is
// examined once, in pieces of any size. It is not a full parser: a false reference costs an unnecessary
// request, and the browser requests what this misses.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/modules/http/prefetch/module_links.h"

namespace longhaul::http {

inline constexpr std::size_t kMostLinks = 256;  // of one document

// url(…) of images, and @import.
class StyleLinks {
 public:
  void feed(std::string_view text);
  // References as written.
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
  // From <base href>, to which all references of the page are relative; empty: the page's own address.
  const std::string& base() const { return base_; }

  // Of the web application that the page belongs to. Browsers request it without credentials (cookies,
  // Authorization), unless the page demands them.
  struct Manifest {
    std::string reference;
    bool has_credentials = false;
  };
  std::optional<Manifest> take_manifest() { return std::exchange(manifest_, std::nullopt); }

 private:
  enum class State : std::uint8_t {
    text, open, markup, comment, declaration, name, before_attribute, attribute, after_attribute, before_value, value, raw, raw_end
  };
  // The relevant attributes of the current tag.
  struct Tag {
    std::string name;
    bool closes = false;
    std::string src, href, rel, type, as, poster, crossorigin;
    bool has_srcset = false, is_lazy = false, is_for_old_browsers = false, is_disabled = false;
  };

  void take_char(char c);
  void read_raw(std::string_view text);
  void begin_attribute(char c);
  void attribute_done();
  void tag_done();
  void found(std::string reference);
  void read_link();

  State state_ = State::text;
  Tag tag_;
  std::string attribute_, value_, raw_, raw_read_, raw_end_;
  char quote_ = 0;
  bool too_long_ = false, in_picture_ = false;
  int dashes_ = 0;
  StyleLinks style_;
  bool is_module_ = false;  // the script that is being read
  ModuleLinks module_;
  std::string base_;
  std::optional<Manifest> manifest_;
  bool has_manifest_ = false;
  std::size_t count_ = 0;
  std::vector<std::string> found_;
};

}  // namespace longhaul::http
