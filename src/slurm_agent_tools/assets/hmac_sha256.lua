
-- ---------------------------------------------------------------------------------------------------------------
-- SHA-256 (FIPS 180-4) and HMAC (RFC 2104) for every Lua that Slurm may be built with: 5.1 to 5.4 and LuaJIT.

local sha256, signer, ARITHMETIC

do
  local WORD, POWER = 2 ^ 32, {}
  for n = 0, 32 do POWER[n] = 2 ^ n end
  local xor, xor3, band, rotate -- of numbers from 0 to 2^32 - 1

  local function native() -- the operators of 5.3 and later are no Lua for those before
    local compile = loadstring or load
    local made = compile([[
      return function(a, b) return a ~ b end, function(a, b, c) return a ~ b ~ c end, function(a, b) return a & b end,
        function(a, n) return (a >> n | a << (32 - n)) & 0xffffffff end
    ]])
    if made == nil then return false end
    xor, xor3, band, rotate = made()
    return true
  end

  local function library(name, right) -- `bit` answers with numbers from -2^31 on
    local present, bits = pcall(require, name)
    if not present or type(bits) ~= "table" then return false end
    local of_xor, of_and, of_rotate = bits.bxor, bits.band, bits[right]
    function xor(a, b) return of_xor(a, b) % WORD end
    function xor3(a, b, c) return of_xor(a, b, c) % WORD end
    function band(a, b) return of_and(a, b) % WORD end
    function rotate(a, n) return of_rotate(a, n) % WORD end
    return true
  end

  local function arithmetic() -- by a table of all pairs of bytes
    local pairs_of, size = { [0] = 0 }, 1
    local row = { [0] = { [0] = 0 } }
    while size < 256 do -- from the table of n bits to that of n + 1
      for a = 0, size - 1 do
        row[a + size] = {}
        for b = 0, size - 1 do
          local value = row[a][b]
          row[a][b + size], row[a + size][b], row[a + size][b + size] = value + size, value + size, value
        end
      end
      size = size * 2
    end
    for a = 0, 255 do
      for b = 0, 255 do pairs_of[a * 256 + b] = row[a][b] end
    end
    function xor(a, b)
      local a0, b0 = a % 256, b % 256
      a, b = (a - a0) / 256, (b - b0) / 256
      local a1, b1 = a % 256, b % 256
      a, b = (a - a1) / 256, (b - b1) / 256
      local a2, b2 = a % 256, b % 256
      return pairs_of[a0 * 256 + b0] + pairs_of[a1 * 256 + b1] * 256 + pairs_of[a2 * 256 + b2] * 65536
        + pairs_of[(a - a2) + (b - b2) / 256] * 16777216
    end
    function xor3(a, b, c)
      local a0, b0, c0 = a % 256, b % 256, c % 256
      a, b, c = (a - a0) / 256, (b - b0) / 256, (c - c0) / 256
      local a1, b1, c1 = a % 256, b % 256, c % 256
      a, b, c = (a - a1) / 256, (b - b1) / 256, (c - c1) / 256
      local a2, b2, c2 = a % 256, b % 256, c % 256
      return pairs_of[pairs_of[a0 * 256 + b0] * 256 + c0] + pairs_of[pairs_of[a1 * 256 + b1] * 256 + c1] * 256
        + pairs_of[pairs_of[a2 * 256 + b2] * 256 + c2] * 65536
        + pairs_of[pairs_of[(a - a2) + (b - b2) / 256] * 256 + (c - c2) / 256] * 16777216
    end
    function band(a, b) return (a + b - xor(a, b)) / 2 end
    function rotate(a, n)
      local low = a % POWER[n]
      return (a - low) / POWER[n] + low * POWER[32 - n]
    end
  end

  if native() then
    ARITHMETIC = "operators"
  elseif library("bit32", "rrotate") then
    ARITHMETIC = "bit32"
  elseif library("bit", "ror") then
    ARITHMETIC = "bit"
  else
    arithmetic()
    ARITHMETIC = "a table"
  end

  local START = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
  }
  local ROUND = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  }

  local function shifted(value, bits)
    return (value - value % POWER[bits]) / POWER[bits]
  end

  local words = {}

  -- The state after one more block of 64 bytes, which begins behind `offset`.
  local function compress(state, text, offset)
    for i = 1, 16 do
      local place = offset + 4 * i
      local a, b, c, d = string.byte(text, place - 3, place)
      words[i] = a * 16777216 + b * 65536 + c * 256 + d
    end
    for i = 17, 64 do
      local early, late = words[i - 15], words[i - 2]
      local s0 = xor3(rotate(early, 7), rotate(early, 18), shifted(early, 3))
      local s1 = xor3(rotate(late, 17), rotate(late, 19), shifted(late, 10))
      words[i] = (words[i - 16] + s0 + words[i - 7] + s1) % WORD
    end
    local a, b, c, d, e, f, g, h = state[1], state[2], state[3], state[4], state[5], state[6], state[7], state[8]
    for i = 1, 64 do
      local s1 = xor3(rotate(e, 6), rotate(e, 11), rotate(e, 25))
      local chosen = band(e, f) + g - band(e, g) -- of f where e has a bit, else of g
      local one = h + s1 + chosen + ROUND[i] + words[i]
      local s0 = xor3(rotate(a, 2), rotate(a, 13), rotate(a, 22))
      local differ = xor(a, b)
      local majority = (a + b - differ) / 2 + band(c, differ)
      h, g, f, e, d, c, b, a = g, f, e, (d + one) % WORD, c, b, a, (one + s0 + majority) % WORD
    end
    return {
      (state[1] + a) % WORD, (state[2] + b) % WORD, (state[3] + c) % WORD, (state[4] + d) % WORD,
      (state[5] + e) % WORD, (state[6] + f) % WORD, (state[7] + g) % WORD, (state[8] + h) % WORD,
    }
  end

  -- The state at the end of a message, of which `before` bytes are in `state` already.
  local function finish(state, text, before)
    local bits, length = (before + #text) * 8, {}
    for i = 8, 1, -1 do
      length[i] = string.char(bits % 256)
      bits = shifted(bits, 8)
    end
    local padded = text .. "\128" .. string.rep("\0", (55 - #text) % 64) .. table.concat(length)
    for offset = 0, #padded - 64, 64 do state = compress(state, padded, offset) end
    return state
  end

  local function written(state, form)
    local parts = {}
    for i = 1, 8 do parts[i] = form(state[i]) end
    return table.concat(parts)
  end

  local function hex(word)
    return string.format("%04x%04x", shifted(word, 16), word % 65536)
  end

  local function bytes(word)
    return string.char(shifted(word, 24), shifted(word, 16) % 256, shifted(word, 8) % 256, word % 256)
  end

  -- 64 hexadecimal digits.
  function sha256(text)
    return written(finish(START, text, 0), hex)
  end

  -- What gives the HMAC of a message under this key, in 64 hexadecimal digits. The key's own blocks are hashed once.
  function signer(key)
    if #key > 64 then key = written(finish(START, key, 0), bytes) end
    key = key .. string.rep("\0", 64 - #key)
    local function state_with(pad)
      local block = {}
      for i = 1, 64 do block[i] = string.char(xor(string.byte(key, i), pad)) end
      return compress(START, table.concat(block), 0)
    end
    local inner, outer = state_with(0x36), state_with(0x5c)
    return function(message)
      return written(finish(outer, written(finish(inner, message, 64), bytes), 64), hex)
    end
  end
end
