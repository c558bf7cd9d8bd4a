#include "artifact/receipt.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::artifact {
namespace {

constexpr std::string_view schema = "tandem.receipt";

Json files_json(const std::vector<BoundFile>& files) {
  Json result = Json::array();
  for (const BoundFile& file : files) result.push_back(to_json(file));
  return result;
}

Result<std::vector<BoundFile>> read_files(JsonObject& object, std::string_view key) {
  TRY_ASSIGN(const std::vector<JsonObject> entries, object.get<std::vector<JsonObject>>(key));
  std::vector<BoundFile> files;
  for (const JsonObject& entry : entries) {
    TRY_ASSIGN(BoundFile file, read_bound_file(entry));
    files.push_back(std::move(file));
  }
  return files;
}

Result<ReceiptShard> read_shard(JsonObject object) {
  ReceiptShard shard;
  TRY_ASSIGN(shard.file, object.get<std::string>("file"));
  TRY_ASSIGN(shard.bytes, object.get<uint64_t>("bytes"));
  TRY_ASSIGN(shard.digest, read_digest(object, "digest"));
  TRY(object.finish());
  return shard;
}

Result<IgnoredTensor> read_ignored(JsonObject object) {
  IgnoredTensor tensor;
  TRY_ASSIGN(tensor.name, object.get<std::string>("name"));
  TRY_ASSIGN(tensor.rule, object.get<std::string>("rule"));
  TRY(object.finish());
  return tensor;
}

Result<std::vector<IgnoredTensor>> read_all_ignored(JsonObject& object) {
  TRY_ASSIGN(const std::vector<JsonObject> entries, object.get<std::vector<JsonObject>>("ignored"));
  std::vector<IgnoredTensor> ignored;
  for (const JsonObject& entry : entries) {
    TRY_ASSIGN(IgnoredTensor tensor, read_ignored(entry));
    ignored.push_back(std::move(tensor));
  }
  return ignored;
}

Result<std::optional<ReceiptAssistant>> read_assistant(JsonObject& receipt) {
  if (!receipt.has("assistant")) {
    return fail(ErrorCode::missing_key, "{}: expected an object or null, found nothing",
                receipt.where("assistant"));
  }
  TRY_ASSIGN(std::optional<JsonObject> object, receipt.nullable<JsonObject>("assistant"));
  if (!object) return std::nullopt;
  ReceiptAssistant assistant;
  TRY_ASSIGN(assistant.config, read_digest(*object, "config_sha256"));
  TRY_ASSIGN(assistant.sources, read_files(*object, "sources"));
  TRY_ASSIGN(assistant.ignored, read_all_ignored(*object));
  TRY(object->finish());
  return assistant;
}

Result<Receipt> read_fields(JsonObject object) {
  Receipt receipt;
  TRY(expect(object, "schema", schema));
  TRY(expect(object, "schema_version", schema_version));
  TRY_ASSIGN(receipt.exporter, object.get<std::string>("exporter"));
  TRY_ASSIGN(receipt.config, read_digest(object, "config_sha256"));
  TRY_ASSIGN(const JsonObject recipe, object.get<JsonObject>("recipe"));
  TRY_ASSIGN(receipt.recipe, read_recipe(recipe));
  TRY_ASSIGN(receipt.files, read_files(object, "files"));
  TRY_ASSIGN(receipt.sources, read_files(object, "sources"));
  TRY_ASSIGN(const std::vector<JsonObject> shards, object.get<std::vector<JsonObject>>("shards"));
  for (const JsonObject& entry : shards) {
    TRY_ASSIGN(ReceiptShard shard, read_shard(entry));
    receipt.shards.push_back(std::move(shard));
  }
  TRY_ASSIGN(receipt.ignored, read_all_ignored(object));
  TRY_ASSIGN(receipt.assistant, read_assistant(object));
  TRY_ASSIGN(receipt.synthetic_seed, object.find<uint64_t>("synthetic_seed"));
  TRY(object.finish());
  if (receipt.synthetic_seed && !receipt.sources.empty()) {
    return fail(ErrorCode::bad_value, "{}: expected none beside synthetic_seed, found {}",
                object.where("sources"), receipt.sources.size());
  }
  return receipt;
}

Json ignored_json(const std::vector<IgnoredTensor>& tensors) {
  Json result = Json::array();
  for (const IgnoredTensor& tensor : tensors)
    result.push_back({{"name", tensor.name}, {"rule", tensor.rule}});
  return result;
}

Json to_json(const std::optional<ReceiptAssistant>& assistant) {
  if (!assistant) return nullptr;
  return {{"config_sha256", assistant->config.hex()},
          {"sources", files_json(assistant->sources)},
          {"ignored", ignored_json(assistant->ignored)}};
}

// All fields but the digest, which is the sha256 of their canonical form.
Json body(const Receipt& receipt) {
  Json shards = Json::array();
  for (const ReceiptShard& shard : receipt.shards) {
    shards.push_back(
        {{"file", shard.file}, {"bytes", shard.bytes}, {"digest", shard.digest.hex()}});
  }
  Json json = {{"schema", schema},
               {"schema_version", schema_version},
               {"exporter", receipt.exporter},
               {"config_sha256", receipt.config.hex()},
               {"recipe", to_json(receipt.recipe)},
               {"files", files_json(receipt.files)},
               {"shards", shards},
               {"sources", files_json(receipt.sources)},
               {"ignored", ignored_json(receipt.ignored)},
               {"assistant", to_json(receipt.assistant)}};
  if (receipt.synthetic_seed) json["synthetic_seed"] = *receipt.synthetic_seed;
  return json;
}

Digest body_digest(const Receipt& receipt) { return sha256(canonical_json(body(receipt))); }

}  // namespace

std::string receipt_text(const Receipt& receipt) {
  Json json = body(receipt);
  json["digest"] = body_digest(receipt).hex();
  return canonical_json(json);
}

Result<Receipt> read_receipt(std::string_view text) {
  const std::string file(receipt_file);
  Json json;
  TRY_ASSIGN(JsonObject object, open_json_object(text, file, json));
  TRY_ASSIGN(const Digest digest, read_digest(object, "digest"));
  TRY_ASSIGN(Receipt receipt, read_fields(std::move(object)));
  if (digest != body_digest(receipt)) {
    return fail(ErrorCode::hash_mismatch,
                "{}: digest: expected {}, found {}; fetch or export it again", file,
                body_digest(receipt).hex(), digest.hex());
  }
  if (receipt_text(receipt) != text) {
    return fail(ErrorCode::malformed_artifact,
                "{}: not in its canonical form; export the artifact again", file);
  }
  return receipt;
}

std::vector<BoundFile> bound_files(const Manifest& manifest) {
  const std::string text = manifest_text(manifest);
  std::vector<BoundFile> files = {{std::string(manifest_file), text.size(), sha256(text)},
                                  manifest.tokenizer};
  if (manifest.chat_template) files.push_back(*manifest.chat_template);
  if (manifest.generation_config) files.push_back(*manifest.generation_config);
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.file < b.file; });
  return files;
}

std::vector<ReceiptShard> bound_shards(const Manifest& manifest) {
  std::vector<ReceiptShard> shards;
  for (const Shard& shard : manifest.shards)
    shards.push_back({shard.file, shard.bytes, shard_digest(shard)});
  return shards;
}

}  // namespace tandem::artifact
