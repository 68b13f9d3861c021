// SPDX-License-Identifier: Apache-2.0
#include "examples/modules/redis/resp.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace longhaul::redis {
namespace {

constexpr std::size_t kMaxDepth = 32, kMaxLineBytes = 64 * 1024;
constexpr std::int64_t kNull = -1;

std::string_view text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::optional<std::int64_t> number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool fits = error == std::errc{} && end == digits.data() + digits.size() && value >= kNull;
  return fits ? std::optional(value) : std::nullopt;
}

}  // namespace

Result<std::optional<Frame>> Splitter::next(Direction direction) {
  switch (scan(direction)) {
    case Step::wrong:
      return make_error_code(boost::system::errc::bad_message);
    case Step::more:
      return std::optional<Frame>{};
    case Step::done:
      break;
  }
  Frame frame{Slice::copy_of(Bytes(bytes_).subspan(begin_, at_))};
  begin_ += std::exchange(at_, 0);
  searched_ = 0;
  if (begin_ == bytes_.size() || begin_ > kMaxFrameBytes) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
  return std::optional(std::move(frame));
}

std::vector<Slice> Splitter::take_rest() {
  std::vector<Slice> rest;
  if (held_bytes() != 0) rest.push_back(Slice::copy_of(Bytes(bytes_).subspan(begin_)));
  *this = Splitter();
  return rest;
}

Splitter::Step Splitter::scan(Direction direction) {
  do {
    if (const Step step = scan_element(direction); step != Step::done) return step;
    while (!missing_.empty() && missing_.back() == 0) missing_.pop_back();
  } while (!missing_.empty());
  return Step::done;
}

Splitter::Step Splitter::scan_element(Direction direction) {
  const std::string_view rest = text(Bytes(bytes_).subspan(begin_ + at_));
  if (at_ > kMaxFrameBytes) return Step::wrong;
  const bool outermost = missing_.empty();
  const char type = rest.empty() ? '\0' : rest[0];
  const std::string_view types = direction == Direction::replies ? "+-:_#,($=!*~>%" : outermost ? "*" : "$";
  if (!rest.empty() && types.find(type) == types.npos) return Step::wrong;
  const std::size_t end = rest.find("\r\n", searched_);
  if (end == rest.npos) {
    searched_ = rest.empty() ? 0 : rest.size() - 1;
    return searched_ > kMaxLineBytes ? Step::wrong : Step::more;
  }
  const std::size_t line = end + 2;
  if (std::string_view("+-:_#,(").find(type) != std::string_view::npos) {
    take_element(line);
    return Step::done;
  }
  const auto size = number(rest.substr(1, end - 1));
  const bool is_bulk = std::string_view("$=!").find(type) != std::string_view::npos;
  if (!size || *size > static_cast<std::int64_t>(kMaxFrameBytes)) return Step::wrong;
  if (direction == Direction::requests && *size < (outermost ? 1 : 0)) return Step::wrong;
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(*size, 0));
  if (is_bulk && *size != kNull) {
    if (rest.size() < line + count + 2) return Step::more;
    if (rest.substr(line + count, 2) != "\r\n") return Step::wrong;
    take_element(line + count + 2);
  } else {
    take_element(line);
    if (!is_bulk && count != 0) {
      if (missing_.size() == kMaxDepth) return Step::wrong;
      missing_.push_back(type == '%' ? 2 * count : count);
    }
  }
  return Step::done;
}

void Splitter::take_element(std::size_t bytes) {
  at_ += bytes;
  searched_ = 0;
  if (!missing_.empty()) --missing_.back();
}

Command command_of(const Frame& request) {
  const std::string_view all = text(request.bytes.bytes());
  const std::size_t first = all.find("\r\n"), second = all.find("\r\n", first + 2);
  const auto arguments = number(all.substr(1, first - 1));
  const auto size = number(all.substr(first + 3, second - first - 3));
  if (!arguments || !size) return {};
  Command command{.name = std::string(all.substr(second + 2, static_cast<std::size_t>(*size))),
                  .arguments = static_cast<std::uint64_t>(*arguments)};
  std::ranges::transform(command.name, command.name.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return command;
}

}  // namespace longhaul::redis
