// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/protection.h"

#include <algorithm>

#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::seal {

using smb2::Command;
using smb2::Header;

namespace {

constexpr std::size_t kSessionBytes = 2048, kEntryBytes = 96;

// Servers cannot sign for a session that is gone, and answer a login before they know its key.
bool may_be_weaker(const Header& answer) {
  return answer.is_interim() || Protection::says_ended(answer) ||
         (answer.command == Command::session_setup && answer.status != Status::success);
}

}  // namespace

Protection::Session::Session(const Agreement& agreement, const SessionKeys& keys, To to)
    : signer(agreement.signing, keys.signing),
      least(agreement.must_sign ? Form::with_signature : Form::plain),
      latest(least) {
  if (agreement.cipher == Cipher::none) return;
  const bool client = to == To::client;
  in.emplace(agreement.cipher, client ? keys.to_server : keys.to_client);
  out.emplace(agreement.cipher, client ? keys.to_client : keys.to_server);
}

bool Protection::begin(smb2::SessionId session, const Agreement& agreement, const SessionKeys& keys, To to) {
  sessions_.erase(session);
  if (sessions_.size() >= kMostSessions) return false;
  sessions_.try_emplace(session, agreement, keys, to);
  return true;
}

void Protection::end(smb2::SessionId session) {
  sessions_.erase(session);
  trees_.erase(trees_.lower_bound({session, 0}), trees_.upper_bound({session, ~smb2::TreeId{0}}));
}

// 3.2.5.4: its answer is the last message with the session's key.
bool Protection::ends_session(const Header& answer) {
  return answer.command == Command::logoff && answer.is_response() && answer.status == Status::success;
}

Protection::Session* Protection::find(smb2::SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

bool Protection::says_ended(const Header& answer) {
  return answer.is_response() && says_expired(answer.status);
}

void Protection::answer_passes(const Header& header) {
  if (header.is_response() && !header.is_interim()) requests_.erase(header.message_id);
}

Result<void> Protection::request_arrived(const Header& header, smb2::SessionId session, Form form) {
  const Session* const known = find(session);
  if (!known) return {};
  if (header.is_response()) return Error::forged;
  // The server decides about these, which nothing here answers.
  if (header.command == Command::session_setup || header.command == Command::cancel) return {};
  Form least = known->least;
  if (const auto tree = trees_.find({session, header.tree_id}); !header.is_async() && tree != trees_.end())
    least = std::max(least, tree->second.least);
  if (form < least) return Error::unprotected;
  if (requests_.size() >= kMostRequests) return Error::unprotected;
  requests_[header.message_id] = {session, form};
  return {};
}

// The request decides how its answer must be protected, and with whose keys: not the session that the answer
// names. A copy of an earlier answer has a valid signature, but the number of no request that the server has.
Result<void> Protection::answer_arrived(const Header& header, smb2::SessionId session, Form form) {
  if (!header.is_response()) return find(session) ? Result<void>(Error::forged) : Result<void>();
  if (header.is_unsolicited()) return {};
  const auto request = requests_.find(header.message_id);
  if (request == requests_.end()) return tells_stranger(header, form) ? Result<void>() : Error::forged;
  const Sent asked = request->second;
  if (form < asked.form && !may_be_weaker(header)) return Error::unprotected;
  // 3.3.5.5.3: the last answer to a login has the keys of the session that it begins.
  const bool begins = header.command == Command::session_setup && !find(asked.session);
  if (form > Form::plain && session != asked.session && !begins) return Error::forged;
  if (!header.is_interim()) requests_.erase(request);
  if (ends_session(header)) end(asked.session);
  return {};
}

// 3.3.5.2.9: a server that does not know the session on this connection cannot encrypt its refusal. The
// client judges it, as it would without the pair: nothing here is added to it, and none of our requests has
// its number.
bool Protection::tells_stranger(const Header& answer, Form form) const {
  return form == Form::plain && says_expired(answer.status) && !sessions_.contains(answer.session_id) &&
         strangers_.contains(answer.session_id);
}

void Protection::encrypted_passes(Bytes front) {
  const auto header = smb2::parse_transform_header(front);
  if (header && strangers_.size() < kMostSessions) strangers_.insert(header->session_id);
}

Protection::Sent Protection::with_keys(Sent sent, smb2::SessionId outer) {
  if (sent.form == Form::encrypted && !find(sent.session)) sent.session = outer;
  return sent;
}

// Requests of sessions without keys are kept, too: any other number is in no answer of the server.
Result<Protection::Sent> Protection::request_sent(const Header& header, smb2::SessionId session,
                                                  smb2::SessionId outer) {
  const auto form = form_of_request(header, session);
  if (!form) return form.error();
  const Sent sent = with_keys({session, *form}, outer);
  if (header.command == Command::cancel || header.is_response()) return sent;
  if (requests_.size() < kMostRequests)
    requests_[header.message_id] = sent;
  else if (!sessions_.empty())
    return Error::unprotected;
  return sent;
}

// A request of ours is protected like the client's last one of the same tree.
Result<Form> Protection::form_of_request(const Header& header, smb2::SessionId id) {
  Session* const session = find(id);
  if (!session) return form_in(header.arrival);
  Form form = session->latest;
  const TreeKey key{id, header.tree_id};
  if (header.arrival & arrival_flags::arrived) {
    form = form_in(header.arrival);
    if (header.command != Command::cancel && header.command != Command::session_setup) {
      session->latest = form;
      if (!header.is_async()) {
        if (!trees_.contains(key) && trees_.size() >= kMostTrees) return Error::unprotected;
        trees_[key].latest = form;
      }
    }
  } else if (const auto tree = trees_.find(key); tree != trees_.end()) {
    form = tree->second.latest;
  }
  if (header.command == Command::tree_disconnect) trees_.erase(key);
  return form;
}

// An answer of the server keeps its form; one that was made here has that of its request.
Protection::Sent Protection::answer_sent(const Header& header, smb2::SessionId session,
                                         smb2::SessionId outer) {
  Sent sent{session, Form::plain};
  const auto request = requests_.find(header.message_id);
  if (header.arrival & arrival_flags::arrived) {
    sent.form = form_in(header.arrival);
  } else if (request != requests_.end()) {
    sent = request->second;
  }
  if (request != requests_.end() && !header.is_interim()) requests_.erase(request);
  return with_keys(sent, outer);
}

// 3.3.5.5.3, 3.3.5.7: what must be encrypted from now on. Servers give a tree's number to another one later.
Result<void> Protection::learn(const smb2::Element& answer) {
  const Header& header = answer.header;
  if (header.status != Status::success) return {};
  Session* const session = find(header.session_id);
  if (!session) return {};
  const TreeKey tree{header.session_id, header.tree_id};
  if (header.command == Command::session_setup) {
    const auto setup = smb2::parse_session_setup_response(answer.bytes);
    if (setup && setup->flags & smb2::session_flags::encrypt_data) session->least = Form::encrypted;
  } else if (header.command == Command::tree_connect) {
    trees_.erase(tree);
    const auto connect = smb2::parse_tree_connect_response(answer.bytes);
    if (!connect || !(connect->flags & smb2::share_flags::encrypt_data)) return {};
    if (trees_.size() >= kMostTrees) return Error::unprotected;
    trees_[tree].least = Form::encrypted;
  } else if (header.command == Command::tree_disconnect) {
    trees_.erase(tree);
  }
  return {};
}

std::size_t Protection::state_bytes() const {
  return sessions_.size() * kSessionBytes +
         (trees_.size() + requests_.size() + strangers_.size()) * kEntryBytes;
}

}  // namespace longhaul::smb::seal
