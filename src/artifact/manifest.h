// manifest.json: what an artifact is, as C++ values and as canonical JSON, strict in both
// directions. docs/artifact.md describes every field. Whether the fields agree with one another is
// checked by load_plan.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/sha256.h"
#include "spec/config.h"
#include "spec/layout.h"
#include "spec/tensors.h"

namespace tandem::artifact {

inline constexpr uint32_t schema_version = 4;
inline constexpr uint64_t piece_bytes = 4 << 20;
inline constexpr uint32_t default_input_bound = 512;
inline constexpr uint32_t default_context_bound = 8960;

inline constexpr std::string_view target_role = "target";
inline constexpr std::string_view assistant_role = "assistant";

// A part of an artifact that can be loaded: the target alone, or with its assistant.
enum class View { plain, mtp };

std::string_view name(View view);

// The names of an artifact's files.
inline constexpr std::string_view manifest_file = "manifest.json";
inline constexpr std::string_view receipt_file = "receipt.json";
inline constexpr std::string_view tokenizer_table_file = "tokenizer.bin";
inline constexpr std::string_view template_file = "chat_template.jinja";
inline constexpr std::string_view generation_file = "generation_config.json";
std::string shard_file(size_t index);  // "shard-00000.safetensors"

struct BoundFile {
  std::string file;
  uint64_t bytes = 0;
  Digest sha256;
  bool operator==(const BoundFile&) const = default;
};

// Which type each tensor is stored as.
struct Recipe {
  spec::WeightType matrix = spec::WeightType::q4_0;
  spec::WeightType table = spec::WeightType::q4_0;
  spec::WeightType vector = spec::WeightType::f32;
  std::map<std::string, spec::WeightType>
      overrides;  // by tensor, only where it differs from its class
  bool operator==(const Recipe&) const = default;

  spec::WeightType of_class(spec::TensorClass tensor_class) const;
  spec::WeightType of(const spec::Tensor& tensor) const;
};

struct Plane {
  std::string name;     // "quants", "scales" or "values"
  uint32_t shard = 0;   // index
  uint64_t offset = 0;  // in the shard's file
};

struct TensorEntry {
  std::string name;
  spec::WeightType type = spec::WeightType::f32;
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<Plane> planes;
};

struct Shard {
  std::string file;
  std::string role;  // target_role or assistant_role, that of all its tensors
  uint64_t bytes = 0;
  std::vector<Digest>
      pieces;  // the sha256 of each piece_bytes of the file; the last may be shorter
};
// Refuses bytes that are not the file's.
Result<void> check_bytes(const BoundFile& expected, std::string_view bytes);
// What stands for a whole shard: the sha256 of the concatenated digests of its pieces.
Digest shard_digest(const Shard& shard);

// What the view `mtp` adds. All else that the manifest says of it follows from the two configs.
struct Mtp {
  spec::AssistantConfig config;
  Digest origin;  // origin_digest of what the assistant was made from
  // With ordered embeddings: of the plane's bytes, which TokenOrderingCheck has passed.
  std::optional<Digest> token_ordering;
};

struct Manifest {
  spec::Config config;
  Digest origin;  // origin_digest of what the target was made from
  std::optional<Mtp> mtp;
  // In an attached artifact: the digest of the plain one that it belongs to. The manifest speaks of
  // both, but its folder holds the assistant's shards only.
  std::optional<Digest> attached_to;
  Recipe recipe;
  std::vector<TensorEntry> tensors;  // in the registry's order, the assistant's last
  std::vector<Shard> shards;
  BoundFile tokenizer;
  Digest tokenizer_source;  // of the tokenizer.json that it was compiled from
  std::optional<BoundFile> chat_template;
  std::optional<BoundFile> generation_config;
  uint32_t input_bound = default_input_bound;  // rows of one step
  uint32_t context_bound = default_context_bound;
};

// The registry of all tensors that an artifact with these configs holds.
std::vector<spec::Tensor> registry(const Manifest& manifest);

// The manifest of the target alone: for an attached artifact, that of the plain one.
Manifest plain_part(Manifest manifest);

std::string manifest_text(const Manifest& manifest);
// Refuses text that is not the manifest_text of its result.
Result<Manifest> read_manifest(std::string_view text);

// Fields that the receipt has in common.
Json to_json(const BoundFile& file);
Json to_json(const std::vector<BoundFile>& files);
Json to_json(const Recipe& recipe);
Result<BoundFile> read_bound_file(JsonObject object);
Result<Recipe> read_recipe(JsonObject object);
Result<Digest> read_digest(JsonObject& object, std::string_view key);
// A key that must be there and may be null.
template <class T>
Result<std::optional<T>> read_nullable(JsonObject& object, std::string_view key) {
  TRY(object.get<JsonValue>(key));
  return object.nullable<T>(key);
}
// Refuses a key that has another value, or one of another type: 1.0 and true are not 1.
Result<void> expect(JsonObject& object, std::string_view key, const Json& expected);

}  // namespace tandem::artifact
