#include "artifact/receipt.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::artifact {
namespace {

constexpr std::string_view schema = "tandem.receipt";

Result<std::vector<BoundFile>> read_files(JsonObject& object, std::string_view key) {
  TRY_ASSIGN(const std::vector<JsonObject> entries, object.get<std::vector<JsonObject>>(key));
  std::vector<BoundFile> files;
  for (const JsonObject& entry : entries) {
    TRY_ASSIGN(BoundFile file, read_bound_file(entry));
    if (!files.empty() && files.back().file >= file.file) {
      return fail(ErrorCode::bad_value, "{}: expected files by name, each once, found {} after {}",
                  object.where(key), file.file, files.back().file);
    }
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

Result<std::optional<Origin>> read_origin(JsonObject& receipt, std::string_view key) {
  TRY_ASSIGN(std::optional<JsonObject> object, read_nullable<JsonObject>(receipt, key));
  if (!object) return std::nullopt;
  Origin origin;
  TRY_ASSIGN(origin.config, read_digest(*object, "config_sha256"));
  TRY_ASSIGN(origin.published, read_published(*object));
  TRY_ASSIGN(origin.sources, read_files(*object, "sources"));
  TRY_ASSIGN(const std::vector<JsonObject> ignored,
             object->get<std::vector<JsonObject>>("ignored"));
  for (const JsonObject& entry : ignored) {
    TRY_ASSIGN(IgnoredTensor tensor, read_ignored(entry));
    origin.ignored.push_back(std::move(tensor));
  }
  TRY(object->finish());
  return origin;
}

// All that an artifact holds comes from sources, or all of it from a seed.
Result<void> check_seed(const Receipt& receipt, const JsonObject& object) {
  const std::pair<std::string_view, const std::optional<Origin>&> parts[] = {
      {"target", receipt.target}, {"assistant", receipt.assistant}};
  for (const auto& [name, part] : parts) {
    if (!part || part->sources.empty() == receipt.synthetic_seed.has_value()) continue;
    return fail(ErrorCode::bad_value, "{}: expected {}, found {} beside {} files in {}.sources",
                object.where("synthetic_seed"),
                part->sources.empty() ? "the seed of random weights" : "null",
                receipt.synthetic_seed ? "a seed" : "null", part->sources.size(), name);
  }
  return {};
}

Result<Receipt> read_fields(JsonObject object) {
  Receipt receipt;
  TRY(expect(object, "schema", schema));
  TRY(expect(object, "schema_version", schema_version));
  TRY_ASSIGN(receipt.exporter, object.get<std::string>("exporter"));
  TRY_ASSIGN(const JsonObject recipe, object.get<JsonObject>("recipe"));
  TRY_ASSIGN(receipt.recipe, read_recipe(recipe));
  TRY_ASSIGN(receipt.files, read_files(object, "files"));
  TRY_ASSIGN(const std::vector<JsonObject> shards, object.get<std::vector<JsonObject>>("shards"));
  for (const JsonObject& entry : shards) {
    TRY_ASSIGN(ReceiptShard shard, read_shard(entry));
    receipt.shards.push_back(std::move(shard));
  }
  TRY_ASSIGN(receipt.target, read_origin(object, "target"));
  TRY_ASSIGN(receipt.assistant, read_origin(object, "assistant"));
  TRY_ASSIGN(receipt.synthetic_seed, read_nullable<uint64_t>(object, "synthetic_seed"));
  TRY(object.finish());
  TRY(check_seed(receipt, object));
  return receipt;
}

// All fields but the digest, which is the sha256 of their canonical form.
Json body(const Receipt& receipt) {
  Json shards = Json::array();
  for (const ReceiptShard& shard : receipt.shards) {
    shards.push_back(
        {{"file", shard.file}, {"bytes", shard.bytes}, {"digest", shard.digest.hex()}});
  }
  return {{"schema", schema},
          {"schema_version", schema_version},
          {"exporter", receipt.exporter},
          {"recipe", to_json(receipt.recipe)},
          {"files", to_json(receipt.files)},
          {"shards", shards},
          {"target", to_json(receipt.target)},
          {"assistant", to_json(receipt.assistant)},
          {"synthetic_seed", receipt.synthetic_seed ? Json(*receipt.synthetic_seed) : Json()}};
}

Digest body_digest(const Receipt& receipt) { return sha256(canonical_json(body(receipt))); }

}  // namespace

Json to_json(const std::optional<Origin>& origin) {
  if (!origin) return nullptr;
  Json ignored = Json::array();
  for (const IgnoredTensor& tensor : origin->ignored)
    ignored.push_back({{"name", tensor.name}, {"rule", tensor.rule}});
  return {{"config_sha256", origin->config.hex()},
          {"published", to_json(origin->published)},
          {"sources", to_json(origin->sources)},
          {"ignored", ignored}};
}

Json to_json(const std::optional<Published>& published) {
  if (!published) return nullptr;
  return {{"repository", published->repository}, {"revision", published->revision}};
}

Result<std::optional<Published>> read_published(JsonObject& object) {
  TRY_ASSIGN(std::optional<JsonObject> place, read_nullable<JsonObject>(object, "published"));
  if (!place) return std::nullopt;
  Published published;
  TRY_ASSIGN(published.repository, place->get<std::string>("repository"));
  TRY_ASSIGN(published.revision, place->get<std::string>("revision"));
  TRY(place->finish());
  return published;
}

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
  std::vector<BoundFile> files = {{std::string(manifest_file), text.size(), sha256(text)}};
  if (manifest.attached_to) return files;
  files.push_back(manifest.tokenizer);
  if (manifest.chat_template) files.push_back(*manifest.chat_template);
  if (manifest.generation_config) files.push_back(*manifest.generation_config);
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.file < b.file; });
  return files;
}

std::vector<ReceiptShard> bound_shards(const Manifest& manifest) {
  std::vector<ReceiptShard> shards;
  for (const Shard& shard : manifest.shards) {
    if (manifest.attached_to && shard.role != assistant_role) continue;
    shards.push_back({shard.file, shard.bytes, shard_digest(shard)});
  }
  return shards;
}

}  // namespace tandem::artifact
