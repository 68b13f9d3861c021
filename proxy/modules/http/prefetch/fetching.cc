// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/fetching.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "proxy/modules/http/prefetch/asked.h"

namespace longhaul::http {
namespace {

constexpr Seconds kLeastKnown = 3600, kMostKnown = 24 * 3600;
constexpr unsigned kMostModuleDepth = 8;
constexpr link::Duration kJustSent = std::chrono::seconds(10);

std::string_view chars_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::optional<Gunzip> decoder_of(const ResponseHead& response) {
  if (!same_name(response.fields.value("content-encoding"), "gzip")) return std::nullopt;
  return Gunzip(Fetching::kMostReadBytes);
}

// What a page consists of. Other content may be the answer to a question with an effect, or about the client.
bool is_part_of_page(const ResponseHead& response) {
  static constexpr std::array<std::string_view, 6> kTypes{
      "text/css", "text/javascript", "application/javascript", "image/", "font/", "application/wasm"};
  const std::string type = lower(response.fields.value("content-type"));
  return std::ranges::any_of(kTypes, [&](std::string_view each) { return type.starts_with(each); });
}

// Browsers based on Chromium do, for the document of a tab.
bool loads_manifest(const RequestHead& page) {
  const std::string dest = page.fields.value("sec-fetch-dest");
  return page.fields.value("user-agent").find("Chrome/") != std::string::npos &&
         (dest.empty() || same_name(dest, "document"));
}

// Files stored by a server have a tag, a date or a lifetime; responses made for each request usually have
// none.
bool is_kept_by_server(const ResponseHead& response, const Stored& stored) {
  const bool forbids = response.fields.has("set-cookie") || directives_of(response.fields).no_store;
  return !forbids && (stored.can_be_asked_about() || stored.lifetime > 0);
}

}  // namespace

Fetching::Fetching(const modules::Ends& ends, std::shared_ptr<Site> site, const std::string& owner, std::string_view verified_name)
    : site_(std::move(site)), place_(ends, verified_name),
      client_("client " + std::string(reinterpret_cast<const char*>(ends.client.data()), ends.client.size()) + ' '),
      owner_("site " + owner + ' ') {}

void Fetching::on_surroundings(const modules::Surroundings& told) {
  is_on_ = told.features.modules.value("http") != 0 && told.features.modules.value("http.prefetch") != 0;
  line_bytes_per_second_ = told.line_bytes_per_second;
  if (!is_on_) drop_all();
}

std::optional<Fetching::Document> Fetching::begins(TimePoint now, const RequestHead& request, const ResponseHead& response) {
  if (!is_on_ || gave_up_) return std::nullopt;
  if (authenticates_connection(request.fields) || authenticates_connection(response.fields)) {
    drop_all();
    give_up();
    return std::nullopt;
  }
  if (!may_lead_to_prefetch(request) || !is_page_to_read(response)) {
    if (const auto stored = note(now, request, response)) learn(now, request, response, *stored);
    return std::nullopt;
  }
  // The client has left the previous page.
  drop_all();
  auto asked = asked_for_page(request, response, place_.scheme(), site_->wall());
  if (!asked || closes(response.fields, response.minor)) return std::nullopt;
  objects_left_ = kMostObjects;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(kMostLineTime).count();
  bytes_left_ = line_bytes_per_second_ == 0
                    ? kLeastPageBytes
                    : std::clamp(line_bytes_per_second_ * static_cast<std::uint64_t>(seconds), kLeastPageBytes, kMostPageBytes);
  return Document{.asked = std::make_shared<const RequestHead>(*std::move(asked)),
                  .origin = origin_of(request),
                  .gunzip = decoder_of(response),
                  .links = PageLinks(),
                  .loads_manifest = loads_manifest(request),
                  .related = site_->relations.of(now, known_to_site(place_.key_of(request)))};
}

// Records what the client or its site now has in a cache. Browsers also keep responses that have only a tag
// or a date.
std::optional<Stored> Fetching::note(TimePoint now, const RequestHead& request,
                                     const ResponseHead& response) {
  if (request.method != "GET" || response.status != 200) return std::nullopt;
  const std::string key = place_.key_of(request);
  const Seconds wall = site_->wall();
  Stored stored = to_store(request, response, now, wall);
  const auto until = now + std::chrono::seconds(std::clamp(stored.lifetime, kLeastKnown, kMostKnown));
  if (may_store(request, response, wall))
    site_->known.note(known_to_site(key), until);
  else if (!directives_of(response.fields).no_store)
    site_->known.note(known_to_client(key), until);
  return stored;
}

// Only what any browser may fetch: a file of the server, at a plain target.
void Fetching::learn(TimePoint now, const RequestHead& request, const ResponseHead& response,
                     const Stored& stored) {
  if (!is_part_of_page(response) || !is_kept_by_server(response, stored)) return;
  if (resolve(origin_of(request), "/", request.target) != request.target) return;
  if (const auto page = referring_page(request)) site_->relations.learn(now, *page, request.target, client_);
}

Origin Fetching::origin_of(const RequestHead& request) const {
  return {.scheme = std::string(place_.scheme()), .authority = lower(request.fields.value("host"))};
}

std::optional<std::string> Fetching::referring_page(const RequestHead& request) const {
  if (request.fields.count("referer") != 1 || request.fields.count("host") != 1) return std::nullopt;
  auto target = resolve(origin_of(request), "/", request.fields.value("referer"));
  if (!target) return std::nullopt;
  RequestHead page{.method = "GET", .target = *std::move(target), .minor = 1, .fields = {}};
  page.fields.add({"Host", request.fields.value("host")});
  return known_to_site(place_.key_of(page));
}

std::vector<Announced> Fetching::read(TimePoint now, Document& document, Bytes content) {
  if (document.is_over) return {};
  const std::string decoded = document.gunzip ? document.gunzip->take(content) : std::string();
  std::string_view text = document.gunzip ? std::string_view(decoded) : chars_of(content);
  text = text.substr(0, kMostReadBytes - std::min(kMostReadBytes, document.read));
  document.read += text.size();
  return std::visit(
      [&](auto& links) {
        links.feed(text);
        if constexpr (requires { links.is_over(); }) document.is_over = links.is_over();
        std::vector<std::string> targets;
        std::optional<std::string> base =
            document.asked->target;  // nothing: all references are relative to another origin
        if constexpr (requires { links.base(); }) {
          if (!links.base().empty()) base = resolve(document.origin, *base, links.base());
        }
        for (const std::string& each : links.take())
          if (auto target = base ? resolve(document.origin, *base, each) : std::nullopt)
            targets.push_back(*std::move(target));
        // Requests of scripts come after what the page names.
        std::ranges::move(std::exchange(document.related, {}), std::back_inserter(targets));
        std::vector<Announced> said;
        if (auto objects = announce(now, document, targets, document.asked))
          said.push_back(*std::move(objects));
        if constexpr (requires { links.take_manifest(); }) {
          const auto manifest = links.take_manifest();
          if (auto one = manifest && base ? announce_manifest(now, document, *manifest, *base) : std::nullopt)
            said.push_back(*std::move(one));
        }
        return said;
      },
      document.links);
}

std::optional<Announced> Fetching::announce_manifest(TimePoint now, Document& document,
                                                     const PageLinks::Manifest& manifest,
                                                     const std::string& base) {
  auto target = document.loads_manifest ? resolve(document.origin, base, manifest.reference) : std::nullopt;
  if (!target) return std::nullopt;
  auto asked = document.asked;
  if (!manifest.has_credentials) {
    RequestHead bare{.method = asked->method, .target = asked->target, .minor = asked->minor, .fields = {}};
    for (const Field& field : asked->fields.all())
      if (!same_name(field.name, "cookie") && !same_name(field.name, "authorization")) bare.fields.add(field);
    asked = std::make_shared<const RequestHead>(std::move(bare));
  }
  return announce(now, document, {*std::move(target)}, asked, document.asked);
}

std::optional<Announced> Fetching::announce(TimePoint now, Document& document,
                                            const std::vector<std::string>& found,
                                            const std::shared_ptr<const RequestHead>& asked,
                                            const std::shared_ptr<const RequestHead>& asked_for_icon) {
  if (found.empty()) return std::nullopt;
  Announced said;
  std::string targets;
  RequestHead request = *asked;
  const std::size_t most = document.depth == 0 ? kMostObjects : kMostOfObject;
  for (const std::string& target : found) {
    if (target == document.asked->target || objects_left_ == 0 || document.found == most) continue;
    if (targets.size() + target.size() + 1 > Announced::kMostBytes) break;
    request.target = target;
    const std::string key = place_.key_of(request);
    if (site_->known.has(known_to_client(key), now) || site_->known.has(known_to_site(key), now)) continue;
    site_->known.note(known_to_client(key), now + kJustSent);
    --objects_left_;
    ++document.found;
    waiting_.push_back({.number = numbers_++,
                        .asked = asked,
                        .target = target,
                        .depth = document.depth + 1,
                        .asked_for_icon = asked_for_icon});
    (targets += target) += '\n';
  }
  if (targets.empty()) return std::nullopt;
  request.target = "*";
  const std::string head = head_text(request);
  said.asked = Slice::copy_of(std::as_bytes(std::span(head)));
  said.targets = Slice::copy_of(std::as_bytes(std::span(targets)));
  return said;
}

std::optional<Fetching::Next> Fetching::next() {
  if (bytes_left_ == 0 || gave_up_) drop_all();
  if (waiting_.empty()) return std::nullopt;
  Waiting& first = waiting_.front();
  Next next{.number = first.number,
            .asked = *first.asked,
            .depth = first.depth,
            .asked_for_icon = std::move(first.asked_for_icon)};
  next.asked.target = std::move(first.target);
  waiting_.pop_front();
  return next;
}

std::optional<Fetching::Document> Fetching::begins(const Next& object, const ResponseHead& response) {
  const std::string type = lower(response.fields.value("content-type")), coding = lower(response.fields.value("content-encoding"));
  // What they import may import more, to a limited depth. Modules import each other in longer chains.
  const bool is_style = type.starts_with("text/css") && object.depth <= 2;
  const bool is_script =
      (type.starts_with("text/javascript") || type.starts_with("application/javascript")) &&
      object.depth <= kMostModuleDepth;
  // Only with a page from a secure origin does Chromium load the icon.
  const bool is_manifest = object.asked_for_icon && place_.scheme() == "https://";
  const bool is_readable = coding.empty() || coding == "gzip";
  if (!is_readable || !(is_style || is_script || is_manifest)) return std::nullopt;
  RequestHead asked = is_manifest ? *object.asked_for_icon : object.asked;
  asked.target = object.asked.target;
  Document document{.asked = std::make_shared<const RequestHead>(std::move(asked)),
                    .origin = origin_of(object.asked),
                    .depth = object.depth,
                    .gunzip = decoder_of(response),
                    .links = StyleLinks()};
  if (is_manifest)
    document.links = ManifestLinks();
  else if (is_script)
    document.links = ModuleLinks();
  return document;
}

void Fetching::fetched(TimePoint now, const Next& object, const ResponseHead& response) {
  if (note(now, object.asked, response)) return;
  if (const auto page = referring_page(object.asked)) site_->relations.forget(*page, object.asked.target);
}

void Fetching::drop_all() {
  for (const Waiting& each : waiting_) dropped_.push_back(each.number);
  waiting_.clear();
}

}  // namespace longhaul::http
