// SPDX-License-Identifier: Apache-2.0
// One SMB2 message, and every parser on every element of it, whatever its command says: what they borrow lies
// in the element, and what we build from what was read is read as the same again.
#include <functional>
#include <map>
#include <string>

#include "codecs/little_endian.h"
#include "fuzz/choices.h"
#include "fuzz/target.h"
#include "proxy/modules/smb/notify_information.h"
#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/listing.h"
#include "proxy/modules/smb/smb2/opening_row.h"
#include "proxy/modules/smb/smb2/plain_open.h"
#include "proxy/modules/smb/smb2/question.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::fuzz::smb2_records_target {
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

void within(Bytes part, Bytes whole) {
  if (part.empty()) return;
  require(!std::less<>{}(part.data(), whole.data()));
  require(!std::less<>{}(whole.data() + whole.size(), part.data() + part.size()));
}

Bytes element_of(const Slice& frame) {
  const Bytes message = frame.bytes().subspan(kFrameHeadBytes);
  auto elements = parse_elements(message);
  require(elements && elements->size() == 1);
  return elements->front().bytes;
}

void read_session_records(Bytes e) {
  if (auto r = parse_negotiate_request(e))
    for (const auto& context : r->contexts) within(context.data, e);
  if (auto r = parse_negotiate_response(e)) {
    within(r->security, e);
    for (const auto& context : r->contexts) within(context.data, e);
  }
  if (auto r = parse_session_setup_request(e)) within(r->security, e);
  if (auto r = parse_session_setup_response(e)) within(r->security, e);
  if (auto r = parse_tree_connect_request(e)) within(r->path, e);
  (void)parse_tree_connect_response(e);
  (void)parse_empty(e);
  if (auto r = parse_error_response(e)) {
    within(r->data, e);
    for (const auto& context : r->contexts) within(context.data, r->data);
  }
}

// What a plain open says is said again, of any name, by the halves to each other and to the server.
void ask_again(const Header& header, const CreateRequest& request) {
  const auto plain = plain_open(header, request);
  if (!plain) return;
  const auto told = decode_plain_open(encode(*plain).bytes());
  require(told == plain && plain->folder().size() + plain->last().size() == plain->name.size());
  auto again = request_of(*told);
  require(again && as_text(again->name) == as_text(request.name) &&
          again->contexts.size() == request.contexts.size());
  require(again->desired_access == request.desired_access && again->share_access == request.share_access);
  require(plain_open(header, *again) == plain);
}

void read_create(const Header& header, const RequestHead& head, Bytes e) {
  if (auto r = parse_create_request(e)) {
    ask_again(header, *r);
    within(r->name, e);
    bool short_names = true;  // as all are; an offset of 16 bits points behind them
    for (const auto& context : r->contexts) {
      within(context.name, e);
      within(context.data, e);
      short_names &= context.name.size() <= 1000;
    }
    if (short_names) {
      const Slice frame = build_create_request(head, *r);
      auto again = parse_create_request(element_of(frame));
      require(again && as_text(again->name) == as_text(r->name) &&
              again->contexts.size() == r->contexts.size());
      for (std::size_t i = 0; i < r->contexts.size(); ++i) {
        require(as_text(again->contexts[i].name) == as_text(r->contexts[i].name));
        require(as_text(again->contexts[i].data) == as_text(r->contexts[i].data));
      }
      require(again->oplock == r->oplock && again->options == r->options && again->durable == r->durable);
      require(again->lease.has_value() == r->lease.has_value() && again->persistent == r->persistent);
    }
  }
  if (auto r = parse_create_response(e)) {
    for (const auto& context : r->contexts) within(context.data, e);
    require(r->caching() <= 7);
  }
}

void read_file_records(const RequestHead& head, const Header& answer, Bytes e) {
  if (auto r = parse_close_request(e)) {
    const Slice frame = build_close_request(head, *r);
    auto again = parse_close_request(element_of(frame));
    require(again && again->file == r->file && again->flags == r->flags);
  }
  if (auto r = parse_close_response(e)) {
    const Slice frame = build_close_response(answer, *r);
    auto again = parse_close_response(element_of(frame));
    require(again && again->end_of_file == r->end_of_file && again->times.change == r->times.change);
  }
  (void)parse_flush_request(e);
  if (auto r = parse_read_request(e)) {
    const Slice frame = build_read_request(head, *r);
    auto again = parse_read_request(element_of(frame));
    require(again && again->offset == r->offset && again->length == r->length && again->file == r->file);
  }
  if (auto r = parse_read_response(e)) {
    within(r->data, e);
    const Slice frame = build_read_response(answer, r->data);
    auto again = parse_read_response(element_of(frame));
    require(again && as_text(again->data) == as_text(r->data));
  }
  if (auto r = parse_write_request(e)) within(r->data, e);
  if (auto r = parse_write_response(e)) {
    const Slice frame = build_write_response(answer, r->count);
    auto again = parse_write_response(element_of(frame));
    require(again && again->count == r->count);
  }
  if (auto r = parse_lock_request(e)) require(r->ranges.size() * 24 <= e.size());
  if (auto r = parse_ioctl_request(e)) within(r->input, e);
  if (auto r = parse_ioctl_response(e)) {
    within(r->input, e);
    within(r->output, e);
  }
  if (auto r = parse_break(e)) {
    if (const auto* oplock = std::get_if<OplockBreak>(&*r)) {
      const Slice frame = build_oplock_acknowledgement(head, *oplock);
      auto again = parse_break(element_of(frame));
      require(again && std::get<OplockBreak>(*again).file == oplock->file);
    } else if (const auto* lease = std::get_if<LeaseBreakAcknowledgement>(&*r)) {
      const Slice frame = build_lease_acknowledgement(head, *lease);
      auto again = parse_break(element_of(frame));
      require(again && std::get<LeaseBreakAcknowledgement>(*again).key == lease->key);
    }
  }
}

// What is listed comes out once, in any portions.
void list(std::uint8_t info_class, Bytes buffer) {
  const Slice all = Slice::copy_of(buffer);
  auto entries = parse_listing(info_class, all);
  if (!entries) return;
  ListingQueue queue;
  for (const ListingEntry& entry : *entries) {
    within(entry.bytes.bytes(), all.bytes());
    queue.add(entry.bytes);
  }
  std::size_t taken = 0;
  for (std::uint32_t most = 100; !queue.empty(); most *= 2) {
    const ListingQueue::Part part = queue.take(most, most / 100 % 3 == 1);
    require(part.buffer.size() <= most && (part.entries == 0) == part.buffer.empty());
    if (part.entries != 0) require(parse_listing(info_class, Slice::copy_of(part.buffer)).has_value());
    taken += part.entries;
  }
  require(taken == entries->size());
}

std::u16string utf16(Bytes bytes) {
  std::u16string text;
  for (std::size_t at = 0; at + 2 <= bytes.size(); at += 2) text += load_le<char16_t>(bytes, at);
  return text;
}

// Whatever a folder is said to hold: who opens its first files as they are listed is offered the next ones,
// each once.
void open_in_a_row(std::uint8_t info_class, Bytes entries) {
  Open directory;
  directory.name.path.clear();
  OpeningRow row;
  row.listed(directory, MessageId{1}, info_class, entries);
  std::map<std::u16string, int> names;  // and how often each is listed
  for (Bytes rest = entries;;) {
    const auto entry = take_directory_entry(info_class, rest);
    if (!entry || !*entry) break;
    ++names[utf16((*entry)->name)];
  }
  for (int opened = 0; opened < 3; ++opened) {
    const auto entry = take_directory_entry(info_class, entries);
    if (!entry || !*entry) return;
    OpeningRow::Opened next{.open = {.how = "as before", .name = std::string(as_text((*entry)->name))}};
    next.name.path = utf16((*entry)->name);
    row.opened(next);
  }
  std::size_t ahead = 0;
  for (; const NextFiles::File* file = row.next(); row.given_out()) {
    const auto found = names.find(file->name);
    require(found != names.end() && found->second-- > 0 && ++ahead <= OpeningRow::kMostAhead);
  }
}

void read_query_records(const RequestHead& head, const Header& answer, Bytes e) {
  if (auto r = parse_query_directory_request(e)) {
    within(r->pattern, e);
    const Slice frame = build_query_directory_request(head, *r);
    auto again = parse_query_directory_request(element_of(frame));
    require(again && as_text(again->pattern) == as_text(r->pattern) && again->file == r->file);
  }
  if (auto r = parse_buffer_response(e)) {
    within(r->buffer, e);
    const Slice frame = build_buffer_response(answer, r->buffer);
    auto again = parse_buffer_response(element_of(frame));
    require(again && as_text(again->buffer) == as_text(r->buffer));
    for (unsigned info_class = 0; info_class < 70; ++info_class) {
      Bytes rest = r->buffer;
      while (true) {
        const std::size_t before = rest.size();
        auto entry = take_directory_entry(static_cast<std::uint8_t>(info_class), rest);
        if (!entry || !*entry) break;
        require(rest.size() < before);
        within((*entry)->name, r->buffer);
      }
      list(static_cast<std::uint8_t>(info_class), r->buffer);
      open_in_a_row(static_cast<std::uint8_t>(info_class), r->buffer);
    }
  }
  (void)parse_change_notify_request(e);
  if (auto entries = parse_notify_information(e))
    for (const NotifyEntry& entry : *entries) within(entry.name, e);
  if (auto r = parse_query_info_request(e)) {
    within(r->input, e);
    const Slice frame = build_query_info_request(head, *r);
    auto again = parse_query_info_request(element_of(frame));
    require(again && as_text(again->input) == as_text(r->input) && again->info_class == r->info_class);
    if (const auto question = question_of(*r)) {
      const auto asked = request_of(question->bytes());
      require(asked && asked->info_class == r->info_class && asked->type == r->type);
    }
  }
  // What comes from a twin.
  (void)request_of(e);
  if (const auto told = decode_plain_open(e)) {
    require(as_text(encode(*told).bytes()) == as_text(e));
    (void)request_of(*told);
  }
  const auto questions = questions_in(e);
  require(questions.size() == e.size() / kQuestionKeyBytes);
  require(as_text(joined(questions).bytes()) == as_text(e.first(questions.size() * kQuestionKeyBytes)));
  if (auto r = parse_set_info_request(e)) within(r->buffer, e);
}

void edit(Bytes message, const Elements& elements) {
  Buffer bytes(kFrameHeadBytes);
  write_frame_head(message.size(), bytes.data());
  append(bytes, message);
  EditedFrame frame(Slice::copy_of(bytes));
  for (const Element& element : elements) frame.set_message_id(MessageId{element.offset}, element.offset);
  const Slice edited = std::move(frame).whole();
  require(edited.size() == bytes.size());
  auto again = parse_elements(edited.bytes().subspan(kFrameHeadBytes));
  require(again && again->size() == elements.size());
  for (const Element& element : *again) require(element.header.message_id == MessageId{element.offset});
}

}  // namespace

FUZZ_TARGET(smb2_records) {
  const Bytes message = std::as_bytes(std::span(data, size));
  require(!describe(message).empty());
  (void)parse_multi_protocol_negotiate(message);
  (void)parse_transform_header(message);
  (void)parse_compression_header(message);
  auto elements = parse_elements(message);
  if (!elements) return 0;
  require(!elements->empty());
  std::size_t covered = 0;
  for (const Element& element : *elements) {
    require(element.offset == covered && element.bytes.size() >= kHeaderBytes);
    within(element.bytes, message);
    covered += element.bytes.size();
    Buffer header;
    write_header(element.header, header);
    require(header.size() == kHeaderBytes);
    auto again = parse_header(header);
    require(again && again->message_id == element.header.message_id && again->flags == element.header.flags);
    require(again->status == element.header.status && again->tree_id == element.header.tree_id);
    (void)has_answer(element);
    const RequestHead head{.message_id = element.header.message_id, .tree_id = element.header.tree_id};
    const Header answer = answer_to(element.header, Status::success);
    read_session_records(element.bytes);
    read_create(element.header, head, element.bytes);
    read_file_records(head, answer, element.bytes);
    read_query_records(head, answer, element.bytes);
  }
  require(covered == message.size());
  edit(message, *elements);
  return 0;
}

}  // namespace longhaul::fuzz::smb2_records_target
