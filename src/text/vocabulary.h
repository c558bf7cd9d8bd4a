// What the compilers of tokenizers have in common: the tokens by spelling, and the parts of the
// table that follow from them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/table.h"

namespace tandem::text {

using Vocabulary = std::unordered_map<std::string_view, uint32_t>;  // spelling to id

// The parts of a merge that is written "a b".
std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view merge);

// All pieces, from the spellings by id, and the tokens of bytes. `where` names the file in
// messages.
Result<void> add_pieces(Table& table, const std::vector<std::string_view>& spellings,
                        const Vocabulary& vocabulary, const std::string& where);

// The next merge, whose parts and result must be tokens. `where` names the list in messages.
Result<void> add_merge(Table& table, const Vocabulary& vocabulary, std::string_view left,
                       std::string_view right, const std::string& where);

// The table's bytes, if the tokenizer takes them.
Result<std::vector<std::byte>> write_checked(const Table& table, const std::string& where);

}  // namespace tandem::text
