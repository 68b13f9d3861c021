// SPDX-License-Identifier: Apache-2.0
// A browser and an HTTP/1 server for tests of prefetch, on both sides of the module's halves.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/proxy/modules/http/with_prefetch.h"
#include "tests/proxy/modules/kit/twins.h"

namespace longhaul::http::prefetch_visit {

using kit::Twins;

inline constexpr std::string_view kBrowser = "User-Agent: b\r\nAccept-Encoding: gzip\r\nCookie: me=1\r\n";

inline std::string asks_page(std::string_view path, std::string_view more = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nAccept: text/html,*/*\r\nUpgrade-Insecure-Requests: 1\r\n" +
         std::string(kBrowser) + std::string(more) + "\r\n";
}
inline std::string asks(std::string_view path, std::string_view more = "", std::string_view browser = kBrowser) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\nAccept: image/png\r\nReferer: http://x/page\r\n" +
         std::string(browser) + std::string(more) + "\r\n";
}

// Answers each request with what `pages` has, or with its path and cookie. `answers` false: says nothing.
struct Server {
  explicit Server(Twins& all) : twins(all) {
    twins.on_server_bytes = [this] { answer(); };
    twins.on_redial = [this] { read = 0, ++connections; };
  }
  void answer() {
    for (std::size_t end; answers && (end = twins.at_server.find("\r\n\r\n", read)) != std::string::npos;) {
      const std::string head = twins.at_server.substr(read, end + 4 - read);
      read = end + 4;
      const std::string path = head.substr(head.find(' ') + 1, head.find(" HTTP") - head.find(' ') - 1);
      asked.push_back(path);
      heads[path] = head;
      const bool is_html = path.starts_with("/page"), is_style = path.ends_with(".css");
      const std::string content = pages.contains(path) ? pages[path] : content_of(path);
      std::string fields = is_html ? "Content-Type: text/html\r\n" : is_style ? "Content-Type: text/css\r\n" : "";
      if (extra.contains(path)) fields += extra[path];
      const std::string status = statuses.contains(path) ? statuses[path] : "200 OK";
      if (is_chunked) {
        std::ostringstream size;
        size << std::hex << content.size();
        twins.server_sends("HTTP/1.1 " + status + "\r\nTransfer-Encoding: chunked\r\n" + fields + "\r\n" +
                           (content.empty() ? "" : size.str() + "\r\n" + content + "\r\n") + "0\r\n\r\n");
      } else {
        twins.server_sends("HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(content.size()) + "\r\n" + fields +
                           "\r\n" + content);
      }
      if (after) after(path);
    }
  }
  static std::string content_of(const std::string& path) { return "content of " + path; }
  std::size_t count(const std::string& path) const { return static_cast<std::size_t>(std::ranges::count(asked, path)); }

  Twins& twins;
  std::map<std::string, std::string> pages, extra, statuses, heads;
  std::function<void(const std::string&)> after;
  std::vector<std::string> asked;
  std::size_t read = 0;
  int connections = 1;
  bool is_chunked = false, answers = true;
};

// What has come to the client since it was called before: content and head of the next response.
struct Browser {
  explicit Browser(Twins& all) : twins(all) {}
  std::string next() {
    const std::size_t end = twins.at_client.find("\r\n\r\n", read);
    if (end == std::string::npos) return "nothing";
    head = twins.at_client.substr(read, end + 4 - read);
    read = end + 4;
    std::string content;
    const auto take = [&](std::size_t size) {
      content += twins.at_client.substr(read, size);
      read += size;
    };
    if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos) {
      take(std::stoul(head.substr(at + 16)));
    } else {
      for (std::size_t size = 1; size != 0;) {
        size = std::stoul(twins.at_client.substr(read), nullptr, 16);
        read = twins.at_client.find("\r\n", read) + 2;
        take(size);
        read += 2;
      }
    }
    return content;
  }
  std::string get(const std::string& text) {
    twins.client_sends(text);
    twins.run();
    return next();
  }
  bool is_prefetched() const { return head.find("Cache-Status: longhaul;hit;detail=prefetched\r\n") != std::string::npos; }
  Twins& twins;
  std::string head;
  std::size_t read = 0;
};

inline modules::Ends ends_of(int client) {
  modules::Ends ends{.server_port = 80};
  ends.client[15] = std::byte(client);
  return ends;
}

inline std::shared_ptr<modules::Instance> instance() { return http::kWithPrefetch.make({.ahead_bytes = 8 << 20, .cache_bytes = 8 << 20, .daemon_number = 1}); }

inline constexpr std::string_view kPage = "<link rel=stylesheet href=a.css><script src=/b.js></script><img src='c.png?x=1&amp;y=2'><a href=/d.html>";

}  // namespace longhaul::http::prefetch_visit
