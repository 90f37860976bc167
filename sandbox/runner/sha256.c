#include "sha256.h"
#include <string.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t word, int by) { return (word >> by) | (word << (32 - by)); }

static uint32_t big_endian(const unsigned char *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress(uint32_t state[8], const unsigned char block[64]) {
  uint32_t w[64], s[8];
  for (int i = 0; i < 16; i++) w[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 64; i++) {
    uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i++) {
    uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
    uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + K[i] + w[i];
    uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
    uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    memmove(s + 1, s, 7 * sizeof *s);
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) state[i] += s[i];
}

static void start(struct sha256 *h) {
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(h->state, initial, sizeof initial);
  h->bytes = 0;
}

static void add(struct sha256 *h, const unsigned char *data, size_t length) {
  size_t used = h->bytes % 64;
  h->bytes += length;
  if (used > 0) {
    size_t take = 64 - used < length ? 64 - used : length;
    memcpy(h->block + used, data, take);
    if (used + take < 64) return;
    compress(h->state, h->block);
    data += take;
    length -= take;
  }
  for (; length >= 64; data += 64, length -= 64) compress(h->state, data);
  if (length > 0) memcpy(h->block, data, length);
}

static void finish(struct sha256 *h, unsigned char digest[32]) {
  uint64_t bits = h->bytes * 8;
  unsigned char pad[72] = {0x80};
  size_t used = h->bytes % 64;
  size_t fill = (used < 56 ? 56 : 120) - used;
  for (int i = 0; i < 8; i++) pad[fill + i] = (unsigned char)(bits >> (56 - 8 * i));
  add(h, pad, fill + 8);
  for (int i = 0; i < 32; i++) digest[i] = (unsigned char)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void hmac_prepare(struct hmac_key *key, const unsigned char *secret, size_t length) {
  unsigned char block[64];
  memset(block, 0x36, sizeof block);
  for (size_t i = 0; i < length; i++) block[i] ^= secret[i];
  start(&key->inner);
  add(&key->inner, block, sizeof block);
  for (size_t i = 0; i < sizeof block; i++) block[i] ^= 0x36 ^ 0x5c;
  start(&key->outer);
  add(&key->outer, block, sizeof block);
  explicit_bzero(block, sizeof block);
}

void hmac(const struct hmac_key *key, const void *data, size_t length, unsigned char digest[32]) {
  struct sha256 h = key->inner;
  add(&h, data, length);
  finish(&h, digest);
  h = key->outer;
  add(&h, digest, 32);
  finish(&h, digest);
}
