#include "artifact/receipt.h"

#include <algorithm>

#include "artifact/differences.h"
#include "base/error.h"

namespace tandem::artifact {
namespace {

constexpr std::string_view schema = "tandem.receipt";
constexpr std::string_view tokenizer_source = "tokenizer.json";  // of a Hugging Face folder

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

// Weights come from sources or from a seed.
Result<void> check_seed(const Origin& origin, const JsonObject& object) {
  if (origin.sources.empty() == origin.synthetic_seed.has_value()) return {};
  return fail(ErrorCode::bad_value, "{}: expected {}, found {} beside {} files in sources",
              object.where("synthetic_seed"),
              origin.sources.empty() ? "the seed of random weights" : "null beside sources",
              origin.synthetic_seed ? "a seed" : "null", origin.sources.size());
}

Result<std::optional<Origin>> read_origin(JsonObject& receipt, std::string_view key) {
  TRY_ASSIGN(std::optional<JsonObject> object, read_nullable<JsonObject>(receipt, key));
  if (!object) return std::nullopt;
  Origin origin;
  TRY_ASSIGN(origin.exporter, object->get<std::string>("exporter"));
  TRY_ASSIGN(origin.config, read_digest(*object, "config_sha256"));
  TRY_ASSIGN(origin.published, read_published(*object));
  TRY_ASSIGN(origin.sources, read_files(*object, "sources"));
  TRY_ASSIGN(const std::vector<JsonObject> ignored,
             object->get<std::vector<JsonObject>>("ignored"));
  for (const JsonObject& entry : ignored) {
    TRY_ASSIGN(IgnoredTensor tensor, read_ignored(entry));
    origin.ignored.push_back(std::move(tensor));
  }
  TRY_ASSIGN(origin.synthetic_seed, read_nullable<uint64_t>(*object, "synthetic_seed"));
  TRY(object->finish());
  TRY(check_seed(origin, *object));
  return origin;
}

Result<Receipt> read_fields(JsonObject object) {
  Receipt receipt;
  TRY(expect(object, "schema", schema));
  TRY(expect(object, "schema_version", schema_version));
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
  TRY(object.finish());
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
          {"recipe", to_json(receipt.recipe)},
          {"files", to_json(receipt.files)},
          {"shards", shards},
          {"target", to_json(receipt.target)},
          {"assistant", to_json(receipt.assistant)}};
}

Digest body_digest(const Receipt& receipt) { return sha256(canonical_json(body(receipt))); }

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::malformed_artifact, "{}: {}", receipt_file,
              fmt::format(format, std::forward<Args>(args)...));
}

// `bound`: the origin's digest in the manifest; none where the folder holds nothing of that part.
Result<void> check_origin(std::string_view part, const std::optional<Origin>& origin,
                          const std::optional<Digest>& bound, const std::string& config) {
  if (origin.has_value() != bound.has_value()) {
    return refuse("{}: expected {}, by {}, found {}", part,
                  bound ? "what it was made from" : "null", manifest_file,
                  origin ? "an object" : "null");
  }
  if (!origin) return {};
  if (origin->config != sha256(config)) {
    return refuse("{}.config_sha256: expected {}, of the config in {}, found {}", part,
                  sha256(config).hex(), manifest_file, origin->config.hex());
  }
  const Digest found = origin_digest(*origin);
  if (found == *bound) return {};
  return refuse("{}: expected the sha256 {}, the origin_sha256 in {}, found {}", part, bound->hex(),
                manifest_file, found.hex());
}

const BoundFile* find_source(const Origin& origin, std::string_view file) {
  const auto found = std::find_if(origin.sources.begin(), origin.sources.end(),
                                  [&](const BoundFile& source) { return source.file == file; });
  return found == origin.sources.end() ? nullptr : &*found;
}

// A text of the artifact is the source file of its name.
Result<void> check_text(const Origin& origin, std::string_view file,
                        const std::optional<BoundFile>& text) {
  const BoundFile* source = find_source(origin, file);
  const auto shown = [](const BoundFile* f) {
    return f == nullptr ? "none" : fmt::format("{} bytes of sha256 {}", f->bytes, f->sha256.hex());
  };
  const BoundFile* own = text ? &*text : nullptr;
  if ((source == nullptr) == (own == nullptr) && (own == nullptr || *own == *source)) return {};
  return refuse("target.sources: {}: expected {}, by {}, found {}", file, shown(own), manifest_file,
                shown(source));
}

Result<void> check_tokenizer(std::string_view part, const Origin& origin,
                             const Manifest& manifest) {
  const BoundFile* source = find_source(origin, tokenizer_source);
  if (source != nullptr && source->sha256 == manifest.tokenizer_source) return {};
  return refuse(
      "{}.sources: {}: expected the sha256 {}, the tokenizer_source_sha256 in {}, found {}", part,
      tokenizer_source, manifest.tokenizer_source.hex(), manifest_file,
      source == nullptr ? "none" : source->sha256.hex());
}

// Rather than a GGUF file, or random weights.
bool is_folder(const std::optional<Origin>& origin) { return origin && origin->sources.size() > 1; }

}  // namespace

Json to_json(const std::optional<Origin>& origin) {
  if (!origin) return nullptr;
  Json ignored = Json::array();
  for (const IgnoredTensor& tensor : origin->ignored)
    ignored.push_back({{"name", tensor.name}, {"rule", tensor.rule}});
  return {{"config_sha256", origin->config.hex()},
          {"published", to_json(origin->published)},
          {"sources", to_json(origin->sources)},
          {"ignored", ignored},
          {"exporter", origin->exporter},
          {"synthetic_seed", origin->synthetic_seed ? Json(*origin->synthetic_seed) : Json()}};
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

Digest origin_digest(const Origin& origin) {
  return sha256(canonical_json(to_json(std::optional(origin))));
}

Result<void> check_receipt(const Receipt& receipt, const Manifest& manifest) {
  const std::optional<Mtp>& mtp = manifest.mtp;
  TRY(check_origin(target_role, receipt.target,
                   manifest.attached_to ? std::nullopt : std::optional(manifest.origin),
                   spec::canonical_config(manifest.config)));
  TRY(check_origin(assistant_role, receipt.assistant,
                   mtp ? std::optional(mtp->origin) : std::nullopt,
                   mtp ? spec::canonical_config(mtp->config) : std::string()));
  const Receipt expected{manifest.recipe, bound_files(manifest), bound_shards(manifest),
                         receipt.target, receipt.assistant};
  const std::vector<Difference> found = differences(body(expected), body(receipt));
  if (!found.empty()) {
    return refuse("{}: expected {}, by {}, found {}", found[0].place, found[0].expected,
                  manifest_file, found[0].found);
  }
  if (is_folder(receipt.target)) {
    TRY(check_text(*receipt.target, template_file, manifest.chat_template));
    TRY(check_text(*receipt.target, generation_file, manifest.generation_config));
    TRY(check_tokenizer(target_role, *receipt.target, manifest));
  }
  if (is_folder(receipt.assistant))
    TRY(check_tokenizer(assistant_role, *receipt.assistant, manifest));
  return {};
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
