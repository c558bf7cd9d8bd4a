// A tokenizer for models of random weights.
#pragma once

#include <string>

#include "spec/config.h"

namespace tandem::exporter {

// The text of a tokenizer.json with a token for every id of the vocabulary. The config's special
// tokens have their ids; with more than one stop token, the last of them is "<turn|>" and the id
// before it "<|turn>". Every byte is a token, and so is the space; nothing is merged, so a text has
// as many tokens as bytes. All other ids are filler: a space and the id, which no text becomes.
std::string synthetic_tokenizer(const spec::Config& config);

}  // namespace tandem::exporter
