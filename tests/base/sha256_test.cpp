// SHA-256 against published vectors, in one piece and in many.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include "base/sha256_blocks.h"

namespace tandem {
namespace {

struct Vector {
  std::string text;
  std::string_view hex;
};

// FIPS 180-2, appendix B, and the empty message.
const Vector vectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST(Sha256, PublishedVectors) {
  for (const Vector& vector : vectors) {
    EXPECT_EQ(sha256(vector.text).hex(), vector.hex) << vector.text.size() << " bytes";
  }
}

TEST(Sha256, PiecesGiveTheSameDigestAndFinishStartsAnew) {
  Sha256 hash;
  for (const size_t piece : {1, 63, 64, 65, 1000}) {
    for (const Vector& vector : vectors) {
      std::string_view rest = vector.text;
      while (!rest.empty()) {
        hash.update(rest.substr(0, piece));
        rest.remove_prefix(std::min(piece, rest.size()));
      }
      EXPECT_EQ(hash.finish().hex(), vector.hex) << "in pieces of " << piece;
    }
  }
}

TEST(Sha256Blocks, HashesAsTheLibraryDoes) {
  for (const Vector& vector : vectors) {
    Sha256Blocks hash;
    hash.update(std::as_bytes(std::span<const char>(vector.text)));
    EXPECT_EQ(hash.finish().hex(), vector.hex) << vector.text.size() << " bytes";
  }
  // Every length of the last block.
  std::string text;
  for (size_t length = 0; length < 200; ++length, text += static_cast<char>(length)) {
    Sha256Blocks hash;
    hash.update(std::as_bytes(std::span<const char>(text).first(length / 2)));
    hash.update(std::as_bytes(std::span<const char>(text).subspan(length / 2)));
    EXPECT_EQ(hash.finish(), sha256(text)) << length << " bytes";
  }
}

TEST(Digest, HexReadsBack) {
  const Digest digest = sha256("abc");
  EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
}

TEST(Digest, OnlySixtyFourLowerCaseDigitsAreHex) {
  const std::string good = sha256("abc").hex();
  std::string upper = good, foreign = good;
  upper[0] = 'B';
  foreign[63] = 'g';
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", upper, foreign}) {
    EXPECT_FALSE(Digest::from_hex(bad)) << bad;
  }
}

TEST(Digest, OneBitDiffersAndTheZeroDigestEqualsNothing) {
  Digest digest = sha256("abc");
  digest.bytes[31] ^= 1;
  EXPECT_FALSE(digest == sha256("abc"));
  EXPECT_FALSE(Digest{} == Digest{});
}

}  // namespace
}  // namespace tandem
