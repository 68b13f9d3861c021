-- SPDX-License-Identifier: Apache-2.0
-- What decrypts packets of Longhaul's UDP carrier: SHA-256, HKDF-Expand-Label, and the key streams of AES-128-GCM and
-- ChaCha20-Poly1305. Tags are not checked: a wrong key shows as frames that make no sense.

-- Lua 5.2 has bit32; later versions have operators, which Lua 5.2 cannot read.
local bit = bit32 or load([[
  local m = 0xffffffff
  return {
    band = function(a, b) return a & b end,
    bnot = function(a) return ~a & m end,
    bxor = function(a, ...) for _, b in ipairs({...}) do a = a ~ b end return a & m end,
    lshift = function(a, n) return (a << n) & m end,
    rshift = function(a, n) return (a & m) >> n end,
    rrotate = function(a, n) a = a & m return ((a >> n) | (a << (32 - n))) & m end,
    lrotate = function(a, n) a = a & m return ((a << n) | (a >> (32 - n))) & m end,
  }]])()
local band, bnot, bxor, lshift, rshift, lrotate, rrotate =
  bit.band, bit.bnot, bit.bxor, bit.lshift, bit.rshift, bit.lrotate, bit.rrotate
local crypto = {}

local function word_be(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

local function word_le(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  return ((d * 256 + c) * 256 + b) * 256 + a
end

local function be_word(value)
  return string.char(rshift(value, 24), band(rshift(value, 16), 255), band(rshift(value, 8), 255), band(value, 255))
end

function crypto.from_hex(text)
  return (text:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end))
end

-- SHA-256 (FIPS 180-4).

local constants = {}
local initial = {}
do
  -- The fractions of the cube roots and the square roots of the first primes.
  local found, candidate = 0, 2
  while found < 64 do
    local prime = true
    for divisor = 2, math.floor(math.sqrt(candidate)) do
      if candidate % divisor == 0 then prime = false break end
    end
    if prime then
      found = found + 1
      local root = candidate ^ (1 / 3)
      -- One step of Newton's method, since the power is not exact to the last bit.
      root = root - (root * root * root - candidate) / (3 * root * root)
      constants[found] = math.floor((root % 1) * 2 ^ 32)
      if found <= 8 then initial[found] = math.floor((math.sqrt(candidate) % 1) * 2 ^ 32) end
    end
    candidate = candidate + 1
  end
end

function crypto.sha256(text)
  local length = #text
  local bits = length * 8
  text = text .. "\128" .. ("\0"):rep((55 - length) % 64) .. be_word(math.floor(bits / 2 ^ 32)) .. be_word(bits % 2 ^ 32)
  local h = {table.unpack(initial)}
  local w = {}
  for block = 1, #text, 64 do
    for i = 1, 16 do w[i] = word_be(text, block + 4 * (i - 1)) end
    for i = 17, 64 do
      local x, y = w[i - 15], w[i - 2]
      local s0 = bxor(rrotate(x, 7), rrotate(x, 18), rshift(x, 3))
      local s1 = bxor(rrotate(y, 17), rrotate(y, 19), rshift(y, 10))
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) % 2 ^ 32
    end
    local a, b, c, d, e, f, g, k = table.unpack(h)
    for i = 1, 64 do
      local s1 = bxor(rrotate(e, 6), rrotate(e, 11), rrotate(e, 25))
      local choice = bxor(band(e, f), band(bnot(e), g))
      local t1 = (k + s1 + choice + constants[i] + w[i]) % 2 ^ 32
      local s0 = bxor(rrotate(a, 2), rrotate(a, 13), rrotate(a, 22))
      local majority = bxor(band(a, b), band(a, c), band(b, c))
      local t2 = (s0 + majority) % 2 ^ 32
      k, g, f, e, d, c, b, a = g, f, e, (d + t1) % 2 ^ 32, c, b, a, (t1 + t2) % 2 ^ 32
    end
    local added = {a, b, c, d, e, f, g, k}
    for i = 1, 8 do h[i] = (h[i] + added[i]) % 2 ^ 32 end
  end
  local out = {}
  for i = 1, 8 do out[i] = be_word(h[i]) end
  return table.concat(out)
end

local function xor_each(text, value)
  return (text:gsub(".", function(c) return string.char(bxor(c:byte(), value)) end))
end

function crypto.hmac(key, text)
  key = key .. ("\0"):rep(64 - #key)
  return crypto.sha256(xor_each(key, 0x5c) .. crypto.sha256(xor_each(key, 0x36) .. text))
end

-- RFC 8446, section 7.1, with an empty context and at most 32 bytes.
function crypto.expand_label(secret, label, size)
  label = "tls13 " .. label
  local info = string.char(0, size, #label) .. label .. "\0"
  return crypto.hmac(secret, info .. "\1"):sub(1, size)
end

-- AES-128 (FIPS 197), with the four tables that join SubBytes, ShiftRows and MixColumns.

local sbox, te = {}, {{}, {}, {}, {}}
do
  local function double(x) return x < 128 and 2 * x or bxor(2 * x, 0x11b) end
  local p, q = 1, 1
  repeat
    p = bxor(p, double(p))  -- times 3
    q = bxor(q, lshift(q, 1))  -- divided by 3
    q = bxor(q, lshift(q, 2))
    q = band(bxor(q, lshift(q, 4)), 255)
    if q >= 128 then q = bxor(q, 0x09) end
    local function turned(n) return band(bxor(lshift(q, n), rshift(q, 8 - n)), 255) end
    sbox[p] = bxor(q, turned(1), turned(2), turned(3), turned(4), 0x63)
  until p == 1
  sbox[0] = 0x63
  for i = 0, 255 do
    local s = sbox[i]
    local two = double(s)
    local word = ((two * 256 + s) * 256 + s) * 256 + bxor(two, s)
    for table_number = 1, 4 do
      te[table_number][i] = word
      word = rrotate(word, 8)
    end
  end
end
local te0, te1, te2, te3 = te[1], te[2], te[3], te[4]

local function aes_key(key)
  local words = {}
  for i = 1, 4 do words[i] = word_be(key, 4 * i - 3) end
  local constant = 1
  for i = 5, 44 do
    local t = words[i - 1]
    if i % 4 == 1 then
      t = lrotate(t, 8)
      t = ((sbox[rshift(t, 24)] * 256 + sbox[band(rshift(t, 16), 255)]) * 256 + sbox[band(rshift(t, 8), 255)]) * 256 +
          sbox[band(t, 255)]
      t = bxor(t, lshift(constant, 24))
      constant = constant < 128 and 2 * constant or bxor(2 * constant, 0x11b)
    end
    words[i] = bxor(words[i - 4], t)
  end
  return words
end

-- Four words of one block.
local function aes_block(k, a, b, c, d)
  a, b, c, d = bxor(a, k[1]), bxor(b, k[2]), bxor(c, k[3]), bxor(d, k[4])
  for i = 5, 40, 4 do
    a, b, c, d =
      bxor(te0[rshift(a, 24)], te1[band(rshift(b, 16), 255)], te2[band(rshift(c, 8), 255)], te3[band(d, 255)], k[i]),
      bxor(te0[rshift(b, 24)], te1[band(rshift(c, 16), 255)], te2[band(rshift(d, 8), 255)], te3[band(a, 255)], k[i + 1]),
      bxor(te0[rshift(c, 24)], te1[band(rshift(d, 16), 255)], te2[band(rshift(a, 8), 255)], te3[band(b, 255)], k[i + 2]),
      bxor(te0[rshift(d, 24)], te1[band(rshift(a, 16), 255)], te2[band(rshift(b, 8), 255)], te3[band(c, 255)], k[i + 3])
  end
  local function last(w, x, y, z, key)
    return bxor(((sbox[rshift(w, 24)] * 256 + sbox[band(rshift(x, 16), 255)]) * 256 + sbox[band(rshift(y, 8), 255)]) * 256 +
                sbox[band(z, 255)], key)
  end
  return last(a, b, c, d, k[41]), last(b, c, d, a, k[42]), last(c, d, a, b, k[43]), last(d, a, b, c, k[44])
end

-- The text XORed with what `block` gives for the counters from `counter` on; `word` reads the text as the cipher does.
local function xor_stream(text, size, block, counter)
  local out = {}
  for at = 1, #text, size do
    local piece = text:sub(at, at + size - 1)
    local stream = block(counter)
    local bytes = {piece:byte(1, -1)}
    for i = 1, #bytes do bytes[i] = bxor(bytes[i], stream:byte(i)) end
    out[#out + 1] = string.char(table.unpack(bytes))
    counter = counter + 1
  end
  return table.concat(out)
end

-- GCM (NIST SP 800-38D): the first counter is for the tag.
function crypto.aes_128_gcm(key, nonce, text)
  local words = aes_key(key)
  local a, b, c = word_be(nonce, 1), word_be(nonce, 5), word_be(nonce, 9)
  return xor_stream(text, 16, function(counter)
    local w, x, y, z = aes_block(words, a, b, c, counter)
    return be_word(w) .. be_word(x) .. be_word(y) .. be_word(z)
  end, 2)
end

-- RFC 8439, section 2.8: the first block is for the tag.
function crypto.chacha20_poly1305(key, nonce, text)
  local start = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}
  for i = 0, 7 do start[5 + i] = word_le(key, 4 * i + 1) end
  for i = 0, 2 do start[14 + i] = word_le(nonce, 4 * i + 1) end
  local function quarter(s, a, b, c, d)
    s[a] = (s[a] + s[b]) % 2 ^ 32; s[d] = lrotate(bxor(s[d], s[a]), 16)
    s[c] = (s[c] + s[d]) % 2 ^ 32; s[b] = lrotate(bxor(s[b], s[c]), 12)
    s[a] = (s[a] + s[b]) % 2 ^ 32; s[d] = lrotate(bxor(s[d], s[a]), 8)
    s[c] = (s[c] + s[d]) % 2 ^ 32; s[b] = lrotate(bxor(s[b], s[c]), 7)
  end
  return xor_stream(text, 64, function(counter)
    start[13] = counter
    local s = {table.unpack(start)}
    for _ = 1, 10 do
      quarter(s, 1, 5, 9, 13) quarter(s, 2, 6, 10, 14) quarter(s, 3, 7, 11, 15) quarter(s, 4, 8, 12, 16)
      quarter(s, 1, 6, 11, 16) quarter(s, 2, 7, 12, 13) quarter(s, 3, 8, 9, 14) quarter(s, 4, 5, 10, 15)
    end
    local out = {}
    for i = 1, 16 do out[i] = be_word((s[i] + start[i]) % 2 ^ 32):reverse() end
    return table.concat(out)
  end, 1)
end

-- Keys of packets: link/PROTOCOL.md, section 11.

local ciphers = {
  AES_128_GCM = {key_bytes = 16, decrypt = crypto.aes_128_gcm},
  CHACHA20_POLY1305 = {key_bytes = 32, decrypt = crypto.chacha20_poly1305},
}

-- One direction of a carrier; nil: the cipher is not known.
function crypto.direction(cipher_name, secret)
  local cipher = ciphers[cipher_name]
  return cipher and {cipher = cipher, secrets = {[0] = secret}, keys = {}}
end

function crypto.decrypt(direction, generation, number, text)
  for i = #direction.secrets + 1, generation do
    direction.secrets[i] = crypto.expand_label(direction.secrets[i - 1], "longhaul ku", 32)
  end
  local key = direction.keys[generation]
  if not key then
    local secret = direction.secrets[generation]
    key = {crypto.expand_label(secret, "longhaul key", direction.cipher.key_bytes), crypto.expand_label(secret, "longhaul iv", 12)}
    direction.keys[generation] = key
  end
  local high, low = math.floor(number / 2 ^ 32), number % 2 ^ 32
  local iv = key[2]
  local nonce = iv:sub(1, 4) .. be_word(bxor(word_be(iv, 5), high)) .. be_word(bxor(word_be(iv, 9), low))
  return direction.cipher.decrypt(key[1], nonce, text)
end

return crypto
