// Hashes of one block by each thread, in what CUDA C++, C and OpenCL C have in common: straight code, no tables, no loops.
// MD5 is RFC 1321's, SHA-256 and SHA-512 are FIPS 180-4's; work.h checks them beside loops over tables that it computes.
//
// HASH_FUNCTION, HASH_U32 and HASH_U64 are what the language has for a function that is inlined, and for its words; HASH_U32_OF and
// HASH_U64_OF make words of numbers.
#ifndef PEERS_HASH_H
#define PEERS_HASH_H

#define LEFT(x, by, bits) ((x) << (by) | (x) >> ((bits) - (by)))
#define RIGHT(x, by, bits) LEFT(x, (bits) - (by), bits)

#define MD5_F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define MD5_G(x, y, z) MD5_F(z, x, y)
#define MD5_H(x, y, z) ((x) ^ (y) ^ (z))
#define MD5_I(x, y, z) ((y) ^ ((x) | ~(z)))
#define MD5_STEP(f, a, b, c, d, word, by, k) a += f(b, c, d) + m[word] + k##u; a = LEFT(a, by, 32) + b;
#define MD5_4(f, i, j, k, l, p, q, r, s, ka, kb, kc, kd) \
    MD5_STEP(f, a, b, c, d, i, p, ka) MD5_STEP(f, d, a, b, c, j, q, kb) MD5_STEP(f, c, d, a, b, k, r, kc) MD5_STEP(f, b, c, d, a, l, s, kd)

// All words of the hash of sixteen words, in one.
HASH_FUNCTION HASH_U32 md5_of(const HASH_U32 *m)
{
    HASH_U32 a = HASH_U32_OF(0x67452301u), b = HASH_U32_OF(0xefcdab89u), c = HASH_U32_OF(0x98badcfeu), d = HASH_U32_OF(0x10325476u);
    MD5_4(MD5_F, 0, 1, 2, 3, 7, 12, 17, 22, 0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee)
    MD5_4(MD5_F, 4, 5, 6, 7, 7, 12, 17, 22, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501)
    MD5_4(MD5_F, 8, 9, 10, 11, 7, 12, 17, 22, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be)
    MD5_4(MD5_F, 12, 13, 14, 15, 7, 12, 17, 22, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821)
    MD5_4(MD5_G, 1, 6, 11, 0, 5, 9, 14, 20, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa)
    MD5_4(MD5_G, 5, 10, 15, 4, 5, 9, 14, 20, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8)
    MD5_4(MD5_G, 9, 14, 3, 8, 5, 9, 14, 20, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed)
    MD5_4(MD5_G, 13, 2, 7, 12, 5, 9, 14, 20, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a)
    MD5_4(MD5_H, 5, 8, 11, 14, 4, 11, 16, 23, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c)
    MD5_4(MD5_H, 1, 4, 7, 10, 4, 11, 16, 23, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70)
    MD5_4(MD5_H, 13, 0, 3, 6, 4, 11, 16, 23, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05)
    MD5_4(MD5_H, 9, 12, 15, 2, 4, 11, 16, 23, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665)
    MD5_4(MD5_I, 0, 7, 14, 5, 6, 10, 15, 21, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039)
    MD5_4(MD5_I, 12, 3, 10, 1, 6, 10, 15, 21, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1)
    MD5_4(MD5_I, 8, 15, 6, 13, 6, 10, 15, 21, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1)
    MD5_4(MD5_I, 4, 11, 2, 9, 6, 10, 15, 21, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391)
    return (a + 0x67452301u) ^ (b + 0xefcdab89u) ^ (c + 0x98badcfeu) ^ (d + 0x10325476u);
}

#define SHA_CHOICE(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define SHA_MAJORITY(x, y, z) (((x) & (y)) | ((z) & ((x) | (y))))
#define SHA_SUM(x, p, q, r, bits) (RIGHT(x, p, bits) ^ RIGHT(x, q, bits) ^ RIGHT(x, r, bits))
#define SHA_MIX(x, p, q, shift, bits) (RIGHT(x, p, bits) ^ RIGHT(x, q, bits) ^ (x) >> (shift))
#define SHA_STEP(a, b, c, d, e, f, g, h, word, k) \
    h += SHA_SUM1(e) + SHA_CHOICE(e, f, g) + (k) + (word); d += h; h += SHA_SUM0(a) + SHA_MAJORITY(a, b, c);
// Word t of the message, made of those before it in their places.
#define SHA_WORD(t) (m[(t) & 15] += SHA_MIX0(m[((t) + 1) & 15]) + m[((t) + 9) & 15] + SHA_MIX1(m[((t) + 14) & 15]))
#define SHA_8(word, t, k0, k1, k2, k3, k4, k5, k6, k7) \
    SHA_STEP(a, b, c, d, e, f, g, h, word(t), k0) SHA_STEP(h, a, b, c, d, e, f, g, word(t + 1), k1) \
    SHA_STEP(g, h, a, b, c, d, e, f, word(t + 2), k2) SHA_STEP(f, g, h, a, b, c, d, e, word(t + 3), k3) \
    SHA_STEP(e, f, g, h, a, b, c, d, word(t + 4), k4) SHA_STEP(d, e, f, g, h, a, b, c, word(t + 5), k5) \
    SHA_STEP(c, d, e, f, g, h, a, b, word(t + 6), k6) SHA_STEP(b, c, d, e, f, g, h, a, word(t + 7), k7)
#define SHA_GIVEN(t) m[t]

#define SHA_SUM0(x) SHA_SUM(x, 2, 13, 22, 32)
#define SHA_SUM1(x) SHA_SUM(x, 6, 11, 25, 32)
#define SHA_MIX0(x) SHA_MIX(x, 7, 18, 3, 32)
#define SHA_MIX1(x) SHA_MIX(x, 17, 19, 10, 32)

// All words of the hash of sixteen words, in one; the message's words are lost.
HASH_FUNCTION HASH_U32 sha256_of(HASH_U32 *m)
{
    HASH_U32 a = HASH_U32_OF(0x6a09e667u), b = HASH_U32_OF(0xbb67ae85u), c = HASH_U32_OF(0x3c6ef372u), d = HASH_U32_OF(0xa54ff53au);
    HASH_U32 e = HASH_U32_OF(0x510e527fu), f = HASH_U32_OF(0x9b05688cu), g = HASH_U32_OF(0x1f83d9abu), h = HASH_U32_OF(0x5be0cd19u);
    SHA_8(SHA_GIVEN, 0, 0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u)
    SHA_8(SHA_GIVEN, 8, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u)
    SHA_8(SHA_WORD, 16, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau)
    SHA_8(SHA_WORD, 24, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u)
    SHA_8(SHA_WORD, 32, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u)
    SHA_8(SHA_WORD, 40, 0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u)
    SHA_8(SHA_WORD, 48, 0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u)
    SHA_8(SHA_WORD, 56, 0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u)
    const HASH_U32 low = (a + 0x6a09e667u) ^ (b + 0xbb67ae85u) ^ (c + 0x3c6ef372u) ^ (d + 0xa54ff53au);
    const HASH_U32 high = (e + 0x510e527fu) ^ (f + 0x9b05688cu) ^ (g + 0x1f83d9abu) ^ (h + 0x5be0cd19u);
    return low ^ high;
}

#undef SHA_SUM0
#undef SHA_SUM1
#undef SHA_MIX0
#undef SHA_MIX1

#define SHA_SUM0(x) SHA_SUM(x, 28, 34, 39, 64)
#define SHA_SUM1(x) SHA_SUM(x, 14, 18, 41, 64)
#define SHA_MIX0(x) SHA_MIX(x, 1, 8, 7, 64)
#define SHA_MIX1(x) SHA_MIX(x, 19, 61, 6, 64)

// All words of the hash of sixteen words, in one; the message's words are lost.
HASH_FUNCTION HASH_U64 sha512_of(HASH_U64 *m)
{
    HASH_U64 a = HASH_U64_OF(0x6a09e667f3bcc908UL), b = HASH_U64_OF(0xbb67ae8584caa73bUL), c = HASH_U64_OF(0x3c6ef372fe94f82bUL), d = HASH_U64_OF(0xa54ff53a5f1d36f1UL);
    HASH_U64 e = HASH_U64_OF(0x510e527fade682d1UL), f = HASH_U64_OF(0x9b05688c2b3e6c1fUL), g = HASH_U64_OF(0x1f83d9abfb41bd6bUL), h = HASH_U64_OF(0x5be0cd19137e2179UL);
    SHA_8(SHA_GIVEN, 0, 0x428a2f98d728ae22UL, 0x7137449123ef65cdUL, 0xb5c0fbcfec4d3b2fUL, 0xe9b5dba58189dbbcUL,
          0x3956c25bf348b538UL, 0x59f111f1b605d019UL, 0x923f82a4af194f9bUL, 0xab1c5ed5da6d8118UL)
    SHA_8(SHA_GIVEN, 8, 0xd807aa98a3030242UL, 0x12835b0145706fbeUL, 0x243185be4ee4b28cUL, 0x550c7dc3d5ffb4e2UL,
          0x72be5d74f27b896fUL, 0x80deb1fe3b1696b1UL, 0x9bdc06a725c71235UL, 0xc19bf174cf692694UL)
    SHA_8(SHA_WORD, 16, 0xe49b69c19ef14ad2UL, 0xefbe4786384f25e3UL, 0x0fc19dc68b8cd5b5UL, 0x240ca1cc77ac9c65UL,
          0x2de92c6f592b0275UL, 0x4a7484aa6ea6e483UL, 0x5cb0a9dcbd41fbd4UL, 0x76f988da831153b5UL)
    SHA_8(SHA_WORD, 24, 0x983e5152ee66dfabUL, 0xa831c66d2db43210UL, 0xb00327c898fb213fUL, 0xbf597fc7beef0ee4UL,
          0xc6e00bf33da88fc2UL, 0xd5a79147930aa725UL, 0x06ca6351e003826fUL, 0x142929670a0e6e70UL)
    SHA_8(SHA_WORD, 32, 0x27b70a8546d22ffcUL, 0x2e1b21385c26c926UL, 0x4d2c6dfc5ac42aedUL, 0x53380d139d95b3dfUL,
          0x650a73548baf63deUL, 0x766a0abb3c77b2a8UL, 0x81c2c92e47edaee6UL, 0x92722c851482353bUL)
    SHA_8(SHA_WORD, 40, 0xa2bfe8a14cf10364UL, 0xa81a664bbc423001UL, 0xc24b8b70d0f89791UL, 0xc76c51a30654be30UL,
          0xd192e819d6ef5218UL, 0xd69906245565a910UL, 0xf40e35855771202aUL, 0x106aa07032bbd1b8UL)
    SHA_8(SHA_WORD, 48, 0x19a4c116b8d2d0c8UL, 0x1e376c085141ab53UL, 0x2748774cdf8eeb99UL, 0x34b0bcb5e19b48a8UL,
          0x391c0cb3c5c95a63UL, 0x4ed8aa4ae3418acbUL, 0x5b9cca4f7763e373UL, 0x682e6ff3d6b2b8a3UL)
    SHA_8(SHA_WORD, 56, 0x748f82ee5defb2fcUL, 0x78a5636f43172f60UL, 0x84c87814a1f0ab72UL, 0x8cc702081a6439ecUL,
          0x90befffa23631e28UL, 0xa4506cebde82bde9UL, 0xbef9a3f7b2c67915UL, 0xc67178f2e372532bUL)
    SHA_8(SHA_WORD, 64, 0xca273eceea26619cUL, 0xd186b8c721c0c207UL, 0xeada7dd6cde0eb1eUL, 0xf57d4f7fee6ed178UL,
          0x06f067aa72176fbaUL, 0x0a637dc5a2c898a6UL, 0x113f9804bef90daeUL, 0x1b710b35131c471bUL)
    SHA_8(SHA_WORD, 72, 0x28db77f523047d84UL, 0x32caab7b40c72493UL, 0x3c9ebe0a15c9bebcUL, 0x431d67c49c100d4cUL,
          0x4cc5d4becb3e42b6UL, 0x597f299cfc657e2aUL, 0x5fcb6fab3ad6faecUL, 0x6c44198c4a475817UL)
    const HASH_U64 low = (a + 0x6a09e667f3bcc908UL) ^ (b + 0xbb67ae8584caa73bUL) ^ (c + 0x3c6ef372fe94f82bUL) ^ (d + 0xa54ff53a5f1d36f1UL);
    const HASH_U64 high = (e + 0x510e527fade682d1UL) ^ (f + 0x9b05688c2b3e6c1fUL) ^ (g + 0x1f83d9abfb41bd6bUL) ^ (h + 0x5be0cd19137e2179UL);
    return low ^ high;
}

#undef SHA_SUM0
#undef SHA_SUM1
#undef SHA_MIX0
#undef SHA_MIX1

// Message number i of a row: two words, the bit that ends a message, and how long it was (32-bit words say so in the last two, MD5
// the low one first).
#define HASH_MESSAGE(type, i) {(type)(i), (type)(i) * 2654435761u, (type)1 << (sizeof(type) * 8 - 1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, sizeof(type) * 16}
#define HASH_MESSAGE_MD5(i) {(HASH_U32)(i), (HASH_U32)(i) * 2654435761u, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0}

#endif
