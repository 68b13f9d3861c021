// SPDX-License-Identifier: Apache-2.0
// Finds what a JavaScript module imports (ECMA-262, section 16.2): the declarations at its beginning, where
// people and bundlers put them. It stops at the first other statement, so that it need not understand the
// language. Each byte is examined once, in pieces of any size.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhaul::http {

class ModuleLinks {
 public:
  void feed(std::string_view text);
  // References as written. Names without a path ("react") are not among them: they mean what a page says they
  // mean.
  std::vector<std::string> take() { return std::exchange(found_, {}); }
  // Nothing more will be found.
  bool is_over() const { return state_ == State::over; }

 private:
  // A clause is what is between `import` or `export` and the string.
  enum class State : std::uint8_t { statement, word, clause, string, slash, line_comment, comment, over };
  void take_char(char c);
  void word_done();
  void string_done();

  State state_ = State::statement;
  State outside_ = State::statement;  // of the comment or string
  bool is_export_ = false;
  char quote_ = 0, before_ = 0;
  std::string word_, value_;
  std::size_t count_ = 0;
  std::vector<std::string> found_;
};

}  // namespace longhaul::http
