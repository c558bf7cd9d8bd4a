// A tokenizer as GGUF files hold it, as lists by id, compiled to the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"

namespace tandem::text {

enum class PieceKind {
  normal,        // also a byte's token, which is known by its spelling
  user_defined,  // found in the text before anything else, but no control token
  control,
};

struct PieceList {
  std::vector<std::string_view> spellings;
  std::vector<PieceKind> kinds;
  // What merges, "a b", the first with precedence; or none, and scores, as SentencePiece has them.
  std::optional<std::vector<std::string_view>> merges;
  std::vector<double> scores;
  uint32_t bos = 0;
};

// The table, with zeros for the digest of its source. From scores it makes the merges that Hugging
// Face's converter writes to tokenizer.json: every way to make a token of two. The token with the
// larger score comes first, where user-defined ones have 0, the largest there is; of equal scores,
// and so of one token's ways, the one whose left part has more characters. `where` names the file
// in messages.
Result<std::vector<std::byte>> compile_pieces(const PieceList& list, std::string_view where);

// A table with another source digest.
Result<std::vector<std::byte>> with_source(std::string_view table, const Digest& source);

}  // namespace tandem::text
