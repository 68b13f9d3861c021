// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/seal/spnego.h"

#include <algorithm>
#include <array>

#include "proxy/modules/smb/seal/der.h"

namespace longhaul::smb::seal {
namespace {

using Kind = MechanismToken::Kind;

struct NamedMechanism {
  std::string_view oid;  // encoded
  std::string_view name;
  Kind kind;
};
// RFC 4178 and 4121; [MS-SPNG] 1.9: the second Kerberos OID is a mistake of Windows 2000 that clients still
// offer.
constexpr std::string_view kSpnegoOid = "\x2b\x06\x01\x05\x05\x02";
constexpr std::array kMechanisms{
    NamedMechanism{"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02", "Kerberos", Kind::kerberos},
    NamedMechanism{"\x2a\x86\x48\x82\xf7\x12\x01\x02\x02", "Kerberos", Kind::kerberos},
    NamedMechanism{"\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x0a", "NTLM", Kind::ntlm},
    NamedMechanism{"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x03", "Kerberos user-to-user", Kind::other},
    NamedMechanism{"\x2b\x06\x01\x05\x02\x05", "IAKerb", Kind::other},
    NamedMechanism{"\x2b\x06\x01\x05\x02\x07", "PKU2U", Kind::other},
    NamedMechanism{"\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x1e", "NegoEx", Kind::other},
};
constexpr std::string_view kUnknownName = "an unknown mechanism";

bool begins(Bytes bytes, std::string_view with) { return as_text(bytes).starts_with(with); }

MechanismToken malformed() { return {.kind = Kind::malformed, .name = "a malformed token"}; }

// RFC 2743, section 3.1: [APPLICATION 0] { mechanism, token }, where the token is the mechanism's own.
MechanismToken framed(Bytes content) {
  DerReader reader(content);
  const auto oid = reader.take(der::kOid);
  if (!oid) return malformed();
  for (const NamedMechanism& known : kMechanisms)
    if (as_text(*oid) == known.oid) return {.kind = known.kind, .token = reader.rest(), .name = known.name};
  return {.kind = Kind::other, .name = kUnknownName};
}

// A mechanism's own token, either inside SPNEGO or alone.
MechanismToken bare(Bytes token) {
  if (token.empty()) return {};
  if (begins(token, std::string_view("NTLMSSP\0", 8)))
    return {.kind = Kind::ntlm, .token = token, .name = "NTLM"};
  if (begins(token, "NEGOEXTS")) return {.kind = Kind::other, .name = "NegoEx"};
  DerReader reader(token);
  if (reader.tag() == der::application(0)) {
    const auto content = reader.next();
    return content ? framed(*content) : malformed();
  }
  return {.kind = Kind::other, .name = kUnknownName};
}

// RFC 4178, section 4.2.1: [0] SEQUENCE { mechTypes [0], reqFlags [1], mechToken [2], mechListMIC [3] }, and
// section 4.2.2: [1] SEQUENCE { negState [0], supportedMech [1], responseToken [2], mechListMIC [3] }.
MechanismToken negotiation(Bytes content) {
  const auto sequence = DerReader(content).take(der::kSequence);
  if (!sequence) return malformed();
  DerReader fields(*sequence);
  const auto token = fields.field(2, der::kOctetString);
  return token ? bare(*token) : MechanismToken{};
}

}  // namespace

MechanismToken unwrap(Bytes buffer) {
  DerReader reader(buffer);
  const auto tag = reader.tag();
  if (tag == der::application(0)) {
    const auto content = reader.next();
    if (!content) return malformed();
    DerReader inner(*content);
    const auto oid = inner.take(der::kOid);
    if (!oid) return malformed();
    if (as_text(*oid) != kSpnegoOid) return framed(*content);
    const auto init = inner.take(der::context(0));
    return init ? negotiation(*init) : malformed();
  }
  if (tag == der::context(0) || tag == der::context(1)) {
    const auto content = reader.next();
    return content ? negotiation(*content) : malformed();
  }
  return bare(buffer);
}

}  // namespace longhaul::smb::seal
