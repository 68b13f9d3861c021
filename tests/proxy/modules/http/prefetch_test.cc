// SPDX-License-Identifier: Apache-2.0
// HTTP/1 prefetch: the objects of a page answer the browser, and no client gets a response that the server would not have given
// to its request.
#include <catch2/catch.hpp>

#include "proxy/modules/http/prefetch/cookies.h"
#include "tests/proxy/modules/http/prefetch_visit.h"

namespace longhaul::http::prefetch_visit {

TEST_CASE("http prefetch: what a page embeds is there when the browser asks, and is what the server would have said") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Twins twins(http::kWithPrefetch, seed, instance(), ends_of(1));
    Server site(twins);
    Browser browser(twins);
    site.is_chunked = seed % 2 == 1;
    site.pages["/page"] = kPage;
    site.pages["/a.css"] = "@import 'e.css'; p { background: url(f.png) }";
    site.pages["/b.js"] = std::string(200'000, 'b');
    REQUIRE(browser.get(asks_page("/page")) == kPage);
    REQUIRE(site.asked == std::vector<std::string>{"/page", "/a.css", "/b.js", "/c.png?x=1&y=2", "/e.css", "/f.png"});
    for (const std::string path : {"/a.css", "/f.png", "/b.js", "/e.css", "/c.png?x=1&y=2"}) {
      REQUIRE(browser.get(asks(path)) == (site.pages.contains(path) ? site.pages[path] : Server::content_of(path)));
      REQUIRE(browser.is_prefetched());
      REQUIRE(site.count(path) == 1);
    }
    // Each answers once.
    REQUIRE(browser.get(asks("/b.js")) == site.pages["/b.js"]);
    REQUIRE(site.count("/b.js") == 2);
    const modules::Counters& counters = twins.near.module.counters();
    CHECK(counters.objects_ahead == 5);
    CHECK(counters.objects_ahead_used == 5);
    CHECK(counters.ahead_used_bytes > 200'000);
    CHECK(twins.far.module.counters().injected == 5);
    twins.client_ends();
    twins.server_ends();
    twins.run();
    REQUIRE_FALSE(twins.is_reset());
  }
}

TEST_CASE("http prefetch: modules that import modules are followed, to a limited depth") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    Twins twins(http::kWithPrefetch, seed, instance(), ends_of(1));
    Server site(twins);
    Browser browser(twins);
    site.pages["/page"] = "<script type=module>import './m/0.js'</script>";
    for (int number = 0; number < 20; ++number) {
      const std::string path = "/m/" + std::to_string(number) + ".js";
      site.pages[path] =
          "import './" + std::to_string(number + 1) + ".js'; import 'bare'; import '../m/0.js'; run()";
      site.extra[path] = "Content-Type: text/javascript\r\n";
    }
    REQUIRE(browser.get(asks_page("/page")) == site.pages["/page"]);
    std::vector<std::string> expected{"/page"};
    for (int number = 0; number < 9; ++number) expected.push_back("/m/" + std::to_string(number) + ".js");
    REQUIRE(site.asked == expected);
    for (std::size_t number = 1; number < expected.size(); ++number) {
      REQUIRE(browser.get(asks(expected[number])) == site.pages[expected[number]]);
      REQUIRE(browser.is_prefetched());
    }
  }
}

TEST_CASE("http prefetch: another connection of the same client is answered, one of another client is not") {
  const auto shared = instance();
  Twins first(http::kWithPrefetch, 1, shared, ends_of(1)), second(http::kWithPrefetch, 2, shared, ends_of(1)),
      other(http::kWithPrefetch, 3, shared, ends_of(2));
  Server site(first), site_2(second), site_3(other);
  Browser browser(first), browser_2(second), browser_3(other);
  site.pages["/page"] = kPage;
  REQUIRE(browser.get(asks_page("/page")) == kPage);
  CHECK(browser_3.get(asks("/b.js")) == Server::content_of("/b.js"));
  CHECK(site_3.count("/b.js") == 1);
  CHECK(browser_2.get(asks("/b.js")) == Server::content_of("/b.js"));
  CHECK(site_2.asked.empty());
  // Of the same client with other cookies, language or credentials, or what is asked for otherwise.
  for (const char* more : {"Accept-Language: de\r\n", "Authorization: Basic eDp5\r\n", "Range: bytes=0-1\r\n", "X-Token: 1\r\n",
                           "If-None-Match: \"a\"\r\n", "Cache-Control: no-cache\r\n", "Origin: http://y\r\n"}) {
    INFO(more);
    const std::size_t before = site_2.count("/a.css");
    CHECK(browser_2.get(asks("/a.css", more)) == Server::content_of("/a.css"));
    CHECK(site_2.count("/a.css") == before + 1);
  }
  for (const char* browser_fields : {"User-Agent: b\r\nAccept-Encoding: gzip\r\nCookie: me=2\r\n", "User-Agent: b\r\nAccept-Encoding: gzip\r\n",
                              "User-Agent: c\r\nAccept-Encoding: gzip\r\nCookie: me=1\r\n", "User-Agent: b\r\nCookie: me=1\r\n"})
    CHECK((browser_2.get(asks("/a.css", "", browser_fields)), !browser_2.is_prefetched()));
  CHECK(browser_2.get(asks("/a.css")) == Server::content_of("/a.css"));
  CHECK(browser_2.is_prefetched());
}

TEST_CASE("http prefetch: requests of a prefetch are those that the browser would send") {
  Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
  Server site(twins);
  Browser browser(twins);
  site.pages["/page"] = "<img src=a.png>";
  browser.get(asks_page("/page", "Authorization: Basic eDp5\r\nCache-Control: max-age=0\r\n"));
  CHECK(site.heads["/a.png"] == "GET /a.png HTTP/1.1\r\nHost: x\r\nUser-Agent: b\r\nAccept-Encoding: gzip\r\nCookie: me=1\r\n"
                                "Authorization: Basic eDp5\r\nAccept: */*\r\nReferer: http://x/page\r\n\r\n");
  CHECK(browser.get(asks("/a.png", "Authorization: Basic eDp5\r\n")) == Server::content_of("/a.png"));
  CHECK(browser.is_prefetched());
}

TEST_CASE("http prefetch: a page that sets cookies is followed by requests with those") {
  Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
  Server site(twins);
  Browser browser(twins);
  site.pages["/page"] = "<img src=a.png>";
  site.extra["/page"] = "Set-Cookie: session=7; Path=/; HttpOnly; SameSite=Lax\r\nSet-Cookie: old=; Path=/; Max-Age=0\r\n"
                        "Set-Cookie: me=2; path=/; Max-Age=3600\r\n";
  browser.get(asks_page("/page", "Cookie: old=1\r\n"));
  CHECK(site.heads["/a.png"].find("\r\nCookie: me=2; session=7\r\n") != std::string::npos);
  CHECK(browser.get(asks("/a.png")) == Server::content_of("/a.png"));
  CHECK_FALSE(browser.is_prefetched());
  CHECK(browser.get(asks("/a.png", "", "User-Agent: b\r\nAccept-Encoding: gzip\r\nCookie: me=2; session=7\r\n")) ==
        Server::content_of("/a.png"));
  CHECK(browser.is_prefetched());
}

TEST_CASE("http prefetch: cookies are those that a browser would send, or not said") {
  const auto after = [](std::string_view sent, std::vector<std::string> set, bool is_secure = false) -> std::string {
    http::RequestHead page;
    if (!sent.empty()) page.fields.add({"Cookie", std::string(sent)});
    http::ResponseHead response;
    for (std::string& each : set) response.fields.add({"Set-Cookie", std::move(each)});
    const auto cookies = http::cookies_after(page, response, is_secure, 1'700'000'000);
    if (!cookies) return "none";
    std::string line;
    for (const std::string& each : *cookies) line += each + '|';
    return line;
  };
  CHECK(after("a=1; b=2", {}) == "a=1|b=2|");
  CHECK(after("", {"a=1; Path=/"}) == "a=1|");
  CHECK(after("a=1; b=2", {"a=3; path=/; httponly", "c = 4 ;Path=/"}) == "a=3|b=2|c=4|");
  CHECK(after("a=1", {"a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}) == "");
  CHECK(after("a=1", {"a=2; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60"}) == "a=2|");
  CHECK(after("a=1", {"a=2; Path=/; Max-Age=-1"}) == "");
  CHECK(after("", {"a=1; Path=/; Secure"}, true) == "a=1|");
  for (const char* unclear : {"a=1", "a=1; Path=/x", "a=1; Path=/; Domain=x", "a=1; Path=/; Secure", "a; Path=/", "=1; Path=/", "",
                              "__Host-a=1; Path=/; Secure", "a=1; Path=/; Partitioned", "a=1; Path=/; Expires=soon", "a=1; Path=/; Max-Age=x"})
    CHECK(after("b=2", {unclear}) == "none");
}

TEST_CASE("http prefetch: nothing is fetched for who is no browser, has been there, or authenticates the connection") {
  for (const std::string& request :
       {asks("/page"), asks_page("/page", "If-None-Match: \"a\"\r\n"), asks_page("/page", "Authorization: Negotiate abc\r\n"),
        asks_page("/page", "Authorization: NTLM abc\r\n"), asks_page("/page", "Cache-Control: no-cache\r\n"),
        asks_page("/page", "Range: bytes=0-\r\n"), asks_page("/page", "X-Requested-With: XMLHttpRequest\r\n"),
        asks_page("/page", "Sec-Fetch-Dest: empty\r\n"), asks_page("/page", "Connection: close\r\n")}) {
    INFO(request);
    Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
    Server site(twins);
    site.pages["/page"] = kPage;
    CHECK(Browser(twins).get(request) == kPage);
    CHECK(site.asked.size() == 1);
  }
  for (const char* field : {"Set-Cookie: a=b\r\n", "Set-Cookie: a=b; Path=/; Domain=y\r\n", "Set-Cookie: a=b; Path=/; Secure\r\n", "WWW-Authenticate: Negotiate\r\n", "Content-Encoding: br\r\n", "Connection: close\r\n"}) {
    INFO(field);
    Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
    Server site(twins);
    site.pages["/page"] = kPage;
    site.extra["/page"] = field;
    CHECK(Browser(twins).get(asks_page("/page")) == kPage);
    CHECK(site.asked.size() == 1);
  }
}

TEST_CASE("http prefetch: a response that is no plain success, or varies with what is not known, answers nobody") {
  Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
  Server site(twins);
  Browser browser(twins);
  site.pages["/page"] = "<img src=a><img src=b><img src=c><img src=d>";
  site.statuses["/a"] = "404 Not Found";
  site.extra["/b"] = "Vary: *\r\n";
  site.extra["/c"] = "Vary: Accept\r\n";
  site.extra["/d"] = "Vary: Cookie\r\nSet-Cookie: a=b\r\n";
  browser.get(asks_page("/page"));
  for (const std::string path : {"/a", "/b", "/c"}) {
    CHECK(browser.get(asks(path)) == Server::content_of(path));
    CHECK_FALSE(browser.is_prefetched());
    CHECK(site.count(path) == 2);
  }
  CHECK(browser.get(asks("/d")) == Server::content_of("/d"));
  CHECK(browser.is_prefetched());
  CHECK(browser.head.find("Set-Cookie: a=b\r\n") != std::string::npos);
}

TEST_CASE("http prefetch: the client's request comes before the next object") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    Twins twins(http::kWithPrefetch, seed, instance(), ends_of(1));
    Server site(twins);
    Browser browser(twins);
    site.pages["/page"] = "<img src=a><img src=b><img src=c>";
    // It asks as soon as it has the page, whatever has come.
    twins.on_client_bytes = [&, is_said = false]() mutable {
      if (twins.at_client.size() > 40 && !std::exchange(is_said, true)) twins.client_sends(asks("/other") + asks("/b"));
    };
    CHECK(browser.get(asks_page("/page")) == site.pages["/page"]);
    CHECK(browser.next() == Server::content_of("/other"));
    CHECK(browser.next() == Server::content_of("/b"));
    CHECK(browser.next() == "nothing");
    CHECK(site.count("/other") == 1);
  }
}

TEST_CASE("http prefetch: a server that does not answer in time, or closes, costs the client a connection and no answer") {
  for (const int how : {0, 1, 2, 3}) {
    INFO("how " << how);
    Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
    Server site(twins);
    Browser browser(twins);
    site.pages["/page"] = "<img src=a><img src=b>";
    if (how == 1) site.statuses["/a"] = "101 Switching Protocols";
    if (how == 2) site.extra["/a"] = "Connection: close\r\n";
    site.after = [&](const std::string& path) {
      if (path == "/page") site.answers = how != 0 && how != 3;
    };
    browser.get(asks_page("/page"));
    if (how == 0 || how == 3) {
      twins.client_sends(asks("/c"));
      twins.run();
      CHECK(site.connections == 1);
      site.answers = true;
      if (how == 3) {
        twins.server_ends();
        twins.run();
      } else {
        const auto at = twins.far.module.next_timeout();
        REQUIRE(at);
        twins.far.module.on_timeout(*at), twins.far.collect();
        REQUIRE(std::exchange(twins.far.redialled, false));
        twins.at_server.clear();
        twins.on_redial();
      }
      twins.run();
    } else {
      twins.client_sends(asks("/c"));
      twins.run();
    }
    CHECK(site.connections == 2);
    CHECK(browser.next() == Server::content_of("/c"));
    CHECK(browser.get(asks("/a")) == Server::content_of("/a"));
    CHECK(browser.is_prefetched() == (how == 2));
    CHECK(browser.get(asks("/b")) == Server::content_of("/b"));
    CHECK_FALSE(browser.is_prefetched());
    CHECK_FALSE(twins.is_reset());
  }
}

}  // namespace longhaul::http::prefetch_visit
