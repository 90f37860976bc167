/* SHA-256 (FIPS 180-4) and HMAC with the key's blocks hashed once. */
#ifndef SHA256_H
#define SHA256_H
#include <stddef.h>
#include <stdint.h>

struct sha256 {
  uint32_t state[8];
  uint64_t bytes;
  unsigned char block[64];
};

struct hmac_key {
  struct sha256 inner, outer;
};

void hmac_prepare(struct hmac_key *key, const unsigned char *secret, size_t length);
void hmac(const struct hmac_key *key, const void *data, size_t length, unsigned char digest[32]);
#endif
