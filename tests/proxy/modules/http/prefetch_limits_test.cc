// SPDX-License-Identifier: Apache-2.0
// HTTP/1 prefetch: when objects are discarded, when nothing is fetched, and hostile pages and peers.
#include <catch2/catch.hpp>

#include "proxy/modules/http/prefetch/asked.h"
#include "proxy/modules/http/prefetch/messages.h"
#include "proxy/modules/http/prefetch/pushed.h"
#include "tests/proxy/modules/http/prefetch_visit.h"

namespace longhaul::http::prefetch_visit {

TEST_CASE("http prefetch: after a request that changes something, what was fetched before it answers nothing") {
  const auto shared = instance();
  Twins twins(http::kWithPrefetch, 1, shared, ends_of(1)), second(http::kWithPrefetch, 2, shared, ends_of(1));
  Server site(twins), site_2(second);
  Browser browser(twins), browser_2(second);
  site.pages["/page"] = "<img src=a><img src=b>";
  browser.get(asks_page("/page"));
  browser_2.get("DELETE /x HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(browser.get(asks("/a")) == Server::content_of("/a"));
  CHECK_FALSE(browser.is_prefetched());
}

TEST_CASE("http prefetch: what nobody asks for is forgotten within seconds, and counted") {
  Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
  Server site(twins);
  Browser browser(twins);
  site.pages["/page"] = "<img src=a><img src=b>";
  browser.get(asks_page("/page"));
  twins.now += std::chrono::seconds(11);
  CHECK(browser.get(asks("/a")) == Server::content_of("/a"));
  CHECK_FALSE(browser.is_prefetched());
  CHECK(site.count("/a") == 2);
  twins.near.module.on_surroundings(twins.now, {});
  CHECK(twins.near.module.counters().objects_ahead_wasted == 2);
  CHECK(twins.near.module.counters().ahead_wasted_bytes == 2 * Server::content_of("/a").size());
}

TEST_CASE("http prefetch: a page visited again is not fetched for again, and what may be stored is") {
  const auto shared = instance();
  Twins twins(http::kWithPrefetch, 1, shared, ends_of(1)), other(http::kWithPrefetch, 2, shared, ends_of(2));
  Server site(twins), site_2(other);
  Browser browser(twins), browser_2(other);
  site.pages["/page"] = site_2.pages["/page"] = "<img src=a>";
  site.extra["/a"] = "Cache-Control: max-age=60\r\n";
  for (int i = 0; i < 2; ++i) browser.get(asks_page("/page"));
  CHECK(site.count("/a") == 1);
  browser_2.get(asks_page("/page"));
  CHECK(browser_2.get(asks("/a", "", "Cookie: you=1\r\n")) == Server::content_of("/a"));
  CHECK(site_2.count("/a") == 0);
  CHECK(browser_2.head.find("Cache-Status: longhaul;hit\r\n") != std::string::npos);
}

TEST_CASE("http prefetch: by default, nothing is fetched") {
  Twins twins(http::kDescriptor, 1, instance(), ends_of(1));
  Server site(twins);
  site.pages["/page"] = kPage;
  CHECK(Browser(twins).get(asks_page("/page")) == kPage);
  CHECK(site.asked.size() == 1);
}

TEST_CASE("http prefetch: switched off, nothing is fetched") {
  Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
  Server site(twins);
  site.pages["/page"] = kPage;
  for (kit::Watched* half : {&twins.near, &twins.far}) {
    modules::Surroundings told;
    static const config::FeatureTable table{http::kWithPrefetch.features};
    told.features.modules = config::ModuleFeatures::standard(table);
    told.features.modules.set("http.prefetch", 0);
    half->module.on_surroundings(twins.now, told), half->collect();
  }
  CHECK(Browser(twins).get(asks_page("/page")) == kPage);
  CHECK(site.asked.size() == 1);
}

TEST_CASE("http prefetch: a hostile page has a bounded number of objects") {
  Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
  Server site(twins);
  std::string page;
  for (int i = 0; i < 5000; ++i) page += "<img src=" + std::to_string(i) + ">";
  site.pages["/page"] = page;
  CHECK(Browser(twins).get(asks_page("/page")) == page);
  CHECK(site.asked.size() == 1 + 128);
}

TEST_CASE("http prefetch: a page that is asked for with very many fields leads to none, and cookies do not count") {
  for (const bool are_cookies : {false, true}) {
    Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
    Server site(twins);
    site.pages["/page"] = "<img src=a>";
    std::string more;
    for (int i = 0; i < 70; ++i) more += (are_cookies ? "Cookie: c" : "X-") + std::to_string(i) + (are_cookies ? "=1\r\n" : ": 1\r\n");
    CHECK(Browser(twins).get(asks_page("/page", more)) == "<img src=a>");
    CHECK(site.asked.size() == (are_cookies ? 2 : 1));
  }
}

TEST_CASE("http prefetch: requests are compared by all values of each name, in order") {
  const auto asks_with = [](std::initializer_list<std::pair<const char*, const char*>> fields) {
    RequestHead request{.method = "GET", .target = "/a", .minor = 1, .fields = {}};
    for (const auto& [name, value] : fields) request.fields.add({name, value});
    return request;
  };
  const RequestHead asked = asks_with({{"Host", "x"}, {"A", "1"}, {"B", "2"}, {"A", "3"}, {"Cookie", "c=1"}});
  CHECK(is_same_asked(asked, asks_with({{"host", "x"}, {"b", "2"}, {"a", "1, 3"}, {"cookie", "c=1"}, {"Accept", "image/png"}})));
  CHECK_FALSE(is_same_asked(asked, asks_with({{"host", "x"}, {"b", "2"}, {"a", "3, 1"}, {"cookie", "c=1"}})));
  CHECK_FALSE(is_same_asked(asked, asks_with({{"host", "x"}, {"b", "2"}, {"a", "1"}, {"cookie", "c=1"}})));
  CHECK_FALSE(is_same_asked(asked, asks_with({{"host", "x"}, {"a", "1, 3"}, {"cookie", "c=1"}})));
  CHECK_FALSE(is_same_asked(asked, asks_with({{"host", "x"}, {"a", "1, 3"}, {"b", "2"}, {"c", "4"}, {"cookie", "c=1"}})));
  CHECK_FALSE(is_same_asked(asked, asks_with({{"host", "x"}, {"a", "1, 3"}, {"b", "2"}})));
  RequestHead many = asked;
  for (int i = 0; i < 200; ++i) many.fields.add({"Accept", "image/png"});
  CHECK_FALSE(is_same_asked(asked, many));
  const std::string large = "c=" + std::string(9000, 'x');
  CHECK_FALSE(is_same_asked(asks_with({{"Host", "x"}, {"Cookie", large.c_str()}}),
                            asks_with({{"host", "x"}, {"cookie", large.c_str()}})));
}

TEST_CASE("http prefetch: a page with very large or very many cookies, before it or after, leads to none") {
  const auto cookies = [](int count, std::size_t size) {
    std::string text = "Cookie: ";
    for (int i = 0; i < count; ++i)
      text += (i > 0 ? "; c" : "c") + std::to_string(i) + '=' + std::string(size, 'x');
    return text + "\r\n";
  };
  const auto sets = [](std::size_t size) {
    return "Set-Cookie: s=" + std::string(size, 'x') + "; Path=/\r\n";
  };
  struct Case {
    std::string of_request, of_response;
    bool is_fetched;
  };
  for (const Case& is :
       {Case{cookies(1, 7000), "", true}, Case{cookies(1, 9000), "", false}, Case{cookies(150, 4), "", true},
        Case{cookies(250, 4), "", false}, Case{"", sets(7000), true}, Case{"", sets(9000), false},
        Case{cookies(1, 5000), sets(2000), true}, Case{cookies(1, 5000), sets(5000), false},
        Case{"X-Large: " + std::string(17'000, 'x') + "\r\n", "", false}}) {
    CAPTURE(is.of_request.size(), is.of_response.size());
    Twins twins(http::kWithPrefetch, 1, instance(), ends_of(1));
    Server site(twins);
    site.pages["/page"] = "<img src=a>";
    site.extra["/page"] = is.of_response;
    CHECK(Browser(twins).get(asks_page("/page", is.of_request)) == "<img src=a>");
    CHECK(site.asked.size() == (is.is_fetched ? 2 : 1));
  }
}

TEST_CASE("http prefetch: announced requests count as memory, and a client has half of it") {
  http::PushedStore pushed(1 << 20);
  const link::TimePoint now{std::chrono::hours(1)};
  const auto progress = std::make_shared<link::TimePoint>(now);
  RequestHead asked{.method = "GET", .target = "/a", .minor = 1, .fields = {}};
  asked.fields.add({"Cookie", std::string(10'000, 'x')});
  int accepted = 0;
  while (pushed.announce(now, ends_of(1).client, std::to_string(accepted), asked, progress)) ++accepted;
  CHECK(accepted > 40);
  CHECK(accepted < 53);
  CHECK(pushed.bytes() <= 512 << 10);
  // Again is not more, and another client has its own half.
  CHECK(pushed.announce(now, ends_of(1).client, "0", asked, progress));
  CHECK(pushed.announce(now, ends_of(2).client, "0", asked, progress));
  pushed.clear();
  CHECK(pushed.bytes() == 0);
}

TEST_CASE("http prefetch: objects that are announced with a very long request are not accepted") {
  for (const std::size_t size : {10'000, 20'000}) {
    const auto shared = instance();
    kit::Watched near(shared->make_near(ends_of(1)));
    const link::TimePoint now{std::chrono::hours(1)};
    modules::Surroundings told;
    static const config::FeatureTable table{http::kWithPrefetch.features};
    told.features.modules = config::ModuleFeatures::standard(table);
    near.module.on_surroundings(now, told), near.collect();
    const std::string head = "GET * HTTP/1.1\r\nHost: x\r\nCookie: " + std::string(size, 'x') + "\r\n\r\n";
    near.module.from_twin(now, twin::encode(http::Message(http::Announced{
                                   .asked = kit::slice_of(head), .targets = kit::slice_of("/a\n/b\n")})));
    near.collect();
    CHECK((shared->ahead_bytes() > 0) == (size == 10'000));
    for (const std::uint64_t number : {0, 1})
      near.module.from_twin(now, twin::encode(http::Message(http::Dropped{.number = number})));
    near.collect();
    CHECK(shared->ahead_bytes() == 0);
    CHECK_FALSE(near.aborted);
  }
}

TEST_CASE("http prefetch: a hostile twin resets its own flow, and no more") {
  const auto raw = [](const http::Message& message) { return twin::encode(message); };
  const http::Announced announced{.asked = kit::slice_of("GET * HTTP/1.1\r\nHost: x\r\n\r\n"), .targets = kit::slice_of("/a\n")};
  for (const auto& said : std::vector<std::vector<Slice>>{
           {kit::slice_of("nonsense")},
           {raw(http::Piece{.number = 0, .bytes = 5})},
           {raw(announced), raw(http::Piece{.number = 1, .bytes = 5})},
           {raw(announced), raw(http::Piece{.number = 0, .bytes = 1 << 20})},
           {raw(announced), raw(http::Piece{.number = 0, .bytes = 5}), raw(http::Dropped{.number = 0})},
           {raw(http::Dropped{.number = 7})},
           {raw(http::Announced{.asked = kit::slice_of("GET"), .targets = kit::slice_of("/a\n")})},
           {raw(http::Announced{.asked = announced.asked, .targets = kit::slice_of("/a")})},
           {raw(http::Announced{.asked = announced.asked, .targets = kit::slice_of("\n\n")})}}) {
    const auto shared = instance();
    kit::Watched near(shared->make_near(ends_of(1)));
    link::TimePoint now{std::chrono::hours(1)};
    modules::Surroundings told;
    static const config::FeatureTable table{http::kWithPrefetch.features};
    told.features.modules = config::ModuleFeatures::standard(table);
    near.module.on_surroundings(now, told), near.collect();
    for (const Slice& each : said) near.module.from_twin(now, each), near.collect();
    CHECK(near.aborted);
  }
}

}  // namespace longhaul::http::prefetch_visit
