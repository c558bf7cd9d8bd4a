// receipt.json: where an artifact comes from and what it consists of. It is written last, so an
// artifact without it was never finished. It carries the digest of its own content, and the
// manifest binds or repeats every field of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/manifest.h"

namespace tandem::artifact {

struct ReceiptShard {
  std::string file;
  uint64_t bytes = 0;
  Digest digest;  // shard_digest
  bool operator==(const ReceiptShard&) const = default;
};

struct IgnoredTensor {
  std::string name;  // in the checkpoint
  std::string rule;
  bool operator==(const IgnoredTensor&) const = default;
};

// Where a checkpoint was published.
struct Published {
  std::string repository;
  std::string revision;
  bool operator==(const Published&) const = default;
};

// What the target, or the assistant, was made from.
struct Origin {
  std::string exporter;  // "tandem 0.1.0"
  Digest config;         // of spec::canonical_config
  std::optional<Published> published;
  std::vector<BoundFile> sources;  // the checkpoint's files, by name
  std::vector<IgnoredTensor> ignored;
  // Set where the weights are random numbers of this seed: there are no sources then, so nothing
  // that the artifact could ever be verified against.
  std::optional<uint64_t> synthetic_seed;
};

// What the manifest binds an origin by: the sha256 of its canonical text.
Digest origin_digest(const Origin& origin);

struct Receipt {
  Recipe recipe;
  std::vector<BoundFile> files;  // all but shards and the receipt itself, by name
  std::vector<ReceiptShard> shards;
  std::optional<Origin> target;     // none in an attached artifact
  std::optional<Origin> assistant;  // if the artifact has one
};

std::string receipt_text(const Receipt& receipt);
// Refuses text that is not the receipt_text of its result.
Result<Receipt> read_receipt(std::string_view text);

// The files and shards that a receipt must list for this manifest: those of its folder.
std::vector<BoundFile> bound_files(const Manifest& manifest);
std::vector<ReceiptShard> bound_shards(const Manifest& manifest);

// Refuses a receipt that is not the manifest's, and texts that are not those of its sources:
// chat template, generation config and tokenizer have the sha256 of the source files of their
// names. What was inside a GGUF file has no source file to compare with.
Result<void> check_receipt(const Receipt& receipt, const Manifest& manifest);

Json to_json(const std::optional<Origin>& origin);
// Fields that the list of pins has in common.
Json to_json(const std::optional<Published>& published);
Result<std::optional<Published>> read_published(JsonObject& object);

}  // namespace tandem::artifact
