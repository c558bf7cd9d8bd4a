#include "artifact/manifest.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "spec/pair.h"

namespace tandem::artifact {
namespace {

constexpr std::string_view schema = "tandem.artifact";
// The methods of the views in this schema version.
const Json plain_methods = {"decode", "prefill", "score"};
const Json mtp_methods = {"decode", "k2_round", "prefill", "score"};

Json to_json(const TensorEntry& tensor) {
  Json planes = Json::array();
  for (const Plane& plane : tensor.planes) {
    planes.push_back({{"name", plane.name}, {"shard", plane.shard}, {"offset", plane.offset}});
  }
  return {{"name", tensor.name},
          {"type", std::string(name(tensor.type))},
          {"rows", tensor.rows},
          {"columns", tensor.columns},
          {"planes", planes}};
}

Json to_json(const Shard& shard) {
  Json pieces = Json::array();
  for (const Digest& piece : shard.pieces) pieces.push_back(piece.hex());
  return {{"file", shard.file},
          {"role", shard.role},
          {"bytes", shard.bytes},
          {"digest", shard_digest(shard).hex()},
          {"pieces", pieces}};
}

Json to_json(const std::optional<BoundFile>& file) { return file ? to_json(*file) : Json(nullptr); }

// The target's layer that each kind of the assistant's layers reads.
Json donors_json(const spec::Config& target, const spec::AssistantConfig& assistant) {
  Json donors = Json::object();
  for (const spec::Layer& reader : assistant.text.layers) {
    const uint32_t donor = target.donor(reader.kind).value_or(0);
    donors[std::string(name(reader.kind))] = {{"layer", donor},
                                              {"kv_heads", target.layers[donor].kv_heads},
                                              {"head_dim", target.layers[donor].head_dim}};
  }
  return donors;
}

Json ordered_json(const Mtp& mtp) {
  if (!mtp.config.ordered) return nullptr;
  const spec::OrderedHead& head = *mtp.config.ordered;
  return {{"centroids", head.centroids},
          {"tokens_per_centroid", mtp.config.text.vocabulary / head.centroids},
          {"top_k", head.top_k},
          {"token_ordering_sha256", mtp.token_ordering.value_or(Digest()).hex()}};
}

Json to_json(const Mtp& mtp, const spec::Config& target) {
  return {{"methods", mtp_methods},
          {"config", Json::parse(spec::canonical_config(mtp.config), nullptr, false)},
          {"donors", donors_json(target, mtp.config)},
          {"window", mtp.config.text.window},
          {"embedding_scale", double{std::sqrt(static_cast<float>(target.hidden))}},
          {"ordered_embeddings", ordered_json(mtp)},
          {"origin_sha256", mtp.origin.hex()}};
}

Json views_json(const Manifest& manifest) {
  Json views = {{"plain", {{"methods", plain_methods}}}};
  if (manifest.mtp) views["mtp"] = to_json(*manifest.mtp, manifest.config);
  return views;
}

tl::unexpected<Error> bad_value(const std::string& where, std::string_view expected,
                                const Json& found) {
  return fail(ErrorCode::bad_value, "{}: expected {}, found {}", where, expected, found.dump());
}

Result<Digest> to_digest(const std::string& where, const std::string& text) {
  const std::optional<Digest> digest = Digest::from_hex(text);
  if (!digest) return bad_value(where, "a sha256 of 64 lower-case hexadecimal digits", text);
  return *digest;
}

Result<spec::WeightType> read_type(JsonObject& object, std::string_view key) {
  TRY_ASSIGN(const std::string text, object.get<std::string>(key));
  const std::optional<spec::WeightType> type = spec::weight_type(text);
  if (!type) return bad_value(object.where(key), "q4_0, q8_0, f16, f32 or u32", text);
  return *type;
}

Result<TensorEntry> read_tensor(JsonObject object) {
  TensorEntry tensor;
  TRY_ASSIGN(tensor.name, object.get<std::string>("name"));
  TRY_ASSIGN(tensor.type, read_type(object, "type"));
  TRY_ASSIGN(tensor.rows, object.get<uint32_t>("rows"));
  TRY_ASSIGN(tensor.columns, object.get<uint32_t>("columns"));
  TRY_ASSIGN(std::vector<JsonObject> planes, object.get<std::vector<JsonObject>>("planes"));
  for (JsonObject& entry : planes) {
    Plane plane;
    TRY_ASSIGN(plane.name, entry.get<std::string>("name"));
    TRY_ASSIGN(plane.shard, entry.get<uint32_t>("shard"));
    TRY_ASSIGN(plane.offset, entry.get<uint64_t>("offset"));
    TRY(entry.finish());
    tensor.planes.push_back(std::move(plane));
  }
  TRY(object.finish());
  return tensor;
}

Result<Shard> read_shard(JsonObject object, size_t index) {
  Shard shard;
  shard.file = shard_file(index);
  TRY(expect(object, "file", shard.file));
  TRY_ASSIGN(shard.role, object.get<std::string>("role"));
  TRY_ASSIGN(shard.bytes, object.get<uint64_t>("bytes"));
  TRY_ASSIGN(const Digest digest, read_digest(object, "digest"));
  TRY_ASSIGN(const std::vector<std::string> pieces, object.get<std::vector<std::string>>("pieces"));
  for (const std::string& piece : pieces) {
    TRY_ASSIGN(const Digest piece_digest, to_digest(object.where("pieces"), piece));
    shard.pieces.push_back(piece_digest);
  }
  if (digest != shard_digest(shard)) {
    return fail(ErrorCode::hash_mismatch,
                "{}: expected {}, the digest of the shard's pieces, found {}",
                object.where("digest"), shard_digest(shard).hex(), digest.hex());
  }
  TRY(object.finish());
  return shard;
}

Result<BoundFile> read_file_of_name(JsonObject object, std::string_view file_name) {
  TRY(expect(object, "file", file_name));
  return read_bound_file(std::move(object));
}

Result<std::optional<BoundFile>> read_optional_file(JsonObject& object, std::string_view key,
                                                    std::string_view file_name) {
  TRY_ASSIGN(const std::optional<JsonObject> file, read_nullable<JsonObject>(object, key));
  if (!file) return std::nullopt;
  TRY_ASSIGN(BoundFile result, read_file_of_name(*file, file_name));
  return result;
}

// What follows from the two configs must be what follows from them.
Result<Mtp> read_mtp(JsonObject object, const spec::Config& target) {
  Mtp mtp;
  TRY_ASSIGN(const JsonValue config, object.get<JsonValue>("config"));
  TRY_ASSIGN(mtp.config,
             spec::read_assistant_config(canonical_json(config.json()), object.where("config")));
  TRY(spec::check_pair(target, mtp.config, object.where("config")));
  TRY_ASSIGN(auto ordered, object.nullable<JsonObject>("ordered_embeddings"));
  if (ordered && mtp.config.ordered) {
    TRY_ASSIGN(mtp.token_ordering, read_digest(*ordered, "token_ordering_sha256"));
  }
  TRY_ASSIGN(mtp.origin, read_digest(object, "origin_sha256"));
  const Json derived = to_json(mtp, target);
  for (const auto& [key, value] : derived.items()) TRY(expect(object, key, value));
  TRY(object.finish());
  return mtp;
}

Result<void> read_views(JsonObject views, Manifest& manifest) {
  TRY_ASSIGN(JsonObject plain, views.get<JsonObject>(name(View::plain)));
  TRY(expect(plain, "methods", plain_methods));
  TRY(plain.finish());
  TRY_ASSIGN(const auto mtp, views.find<JsonObject>(name(View::mtp)));
  if (mtp) {
    TRY_ASSIGN(manifest.mtp, read_mtp(*mtp, manifest.config));
  }
  return views.finish();
}

Result<Manifest> read_fields(JsonObject object) {
  Manifest manifest;
  TRY(expect(object, "schema", schema));
  TRY(expect(object, "schema_version", schema_version));
  TRY(expect(object, "layout_version", spec::layout_version));
  TRY(expect(object, "piece_bytes", piece_bytes));
  TRY_ASSIGN(const JsonValue config, object.get<JsonValue>("config"));
  TRY_ASSIGN(manifest.config,
             spec::read_config(canonical_json(config.json()), object.where("config")));
  TRY_ASSIGN(const JsonObject views, object.get<JsonObject>("views"));
  TRY(read_views(views, manifest));
  TRY_ASSIGN(const auto attached_to, read_nullable<std::string>(object, "attached_to"));
  if (attached_to) {
    TRY_ASSIGN(manifest.attached_to, to_digest(object.where("attached_to"), *attached_to));
    if (!manifest.mtp)
      return bad_value(object.where("attached_to"), "null without a view mtp", *attached_to);
  }
  TRY_ASSIGN(manifest.origin, read_digest(object, "origin_sha256"));
  TRY_ASSIGN(const JsonObject recipe, object.get<JsonObject>("recipe"));
  TRY_ASSIGN(manifest.recipe, read_recipe(recipe));
  TRY_ASSIGN(const std::vector<JsonObject> tensors, object.get<std::vector<JsonObject>>("tensors"));
  for (const JsonObject& entry : tensors) {
    TRY_ASSIGN(TensorEntry tensor, read_tensor(entry));
    manifest.tensors.push_back(std::move(tensor));
  }
  TRY_ASSIGN(const std::vector<JsonObject> shards, object.get<std::vector<JsonObject>>("shards"));
  for (const JsonObject& entry : shards) {
    TRY_ASSIGN(Shard shard, read_shard(entry, manifest.shards.size()));
    manifest.shards.push_back(std::move(shard));
  }
  TRY_ASSIGN(const JsonObject tokenizer, object.get<JsonObject>("tokenizer"));
  TRY_ASSIGN(manifest.tokenizer, read_file_of_name(tokenizer, tokenizer_table_file));
  TRY_ASSIGN(manifest.tokenizer_source, read_digest(object, "tokenizer_source_sha256"));
  TRY_ASSIGN(manifest.chat_template, read_optional_file(object, "chat_template", template_file));
  TRY_ASSIGN(manifest.generation_config,
             read_optional_file(object, "generation_config", generation_file));
  TRY_ASSIGN(manifest.input_bound, object.get<uint32_t>("input_bound"));
  TRY_ASSIGN(manifest.context_bound, object.get<uint32_t>("context_bound"));
  TRY(object.finish());
  return manifest;
}

}  // namespace

Result<void> expect(JsonObject& object, std::string_view key, const Json& expected) {
  TRY_ASSIGN(const JsonValue value, object.get<JsonValue>(key));
  if (value.json().dump() != expected.dump())
    return bad_value(object.where(key), expected.dump(), value.json());
  return {};
}

std::string shard_file(size_t index) { return fmt::format("shard-{:05}.safetensors", index); }

std::string_view name(View view) { return view == View::plain ? "plain" : "mtp"; }

std::vector<spec::Tensor> registry(const Manifest& manifest) {
  std::vector<spec::Tensor> tensors = spec::tensors(manifest.config);
  if (!manifest.mtp) return tensors;
  for (spec::Tensor& tensor : spec::tensors(manifest.mtp->config))
    tensors.push_back(std::move(tensor));
  return tensors;
}

spec::WeightType Recipe::of_class(spec::TensorClass tensor_class) const {
  switch (tensor_class) {
    case spec::TensorClass::matrix:
      return matrix;
    case spec::TensorClass::table:
      return table;
    case spec::TensorClass::vector:
      return vector;
    case spec::TensorClass::ids:
      return spec::WeightType::u32;
  }
  return vector;
}

spec::WeightType Recipe::of(const spec::Tensor& tensor) const {
  const auto found = overrides.find(tensor.name);
  return found != overrides.end() ? found->second : of_class(tensor.tensor_class);
}

Result<void> check_bytes(const BoundFile& expected, std::string_view bytes) {
  if (bytes.size() != expected.bytes) {
    return fail(ErrorCode::malformed_artifact, "{}: expected {} bytes, found {}", expected.file,
                expected.bytes, bytes.size());
  }
  const Digest found = sha256(bytes);
  if (found != expected.sha256) {
    return fail(ErrorCode::hash_mismatch,
                "{}: expected sha256 {}, found {}; fetch or export it again", expected.file,
                expected.sha256.hex(), found.hex());
  }
  return {};
}

Digest shard_digest(const Shard& shard) {
  Sha256 hash;
  for (const Digest& piece : shard.pieces) hash.update(std::as_bytes(std::span(piece.bytes)));
  return hash.finish();
}

Manifest plain_part(Manifest manifest) {
  manifest.mtp.reset();
  manifest.attached_to.reset();
  std::erase_if(manifest.tensors, [](const auto& t) { return spec::is_assistants(t.name); });
  std::erase_if(manifest.shards, [](const auto& s) { return s.role == assistant_role; });
  std::erase_if(manifest.recipe.overrides,
                [](const auto& o) { return spec::is_assistants(o.first); });
  return manifest;
}

Json to_json(const BoundFile& file) {
  return {{"file", file.file}, {"bytes", file.bytes}, {"sha256", file.sha256.hex()}};
}

Json to_json(const std::vector<BoundFile>& files) {
  Json result = Json::array();
  for (const BoundFile& file : files) result.push_back(to_json(file));
  return result;
}

Json to_json(const Recipe& recipe) {
  Json overrides = Json::object();
  for (const auto& [tensor, type] : recipe.overrides) overrides[tensor] = std::string(name(type));
  return {{"matrix", std::string(name(recipe.matrix))},
          {"table", std::string(name(recipe.table))},
          {"vector", std::string(name(recipe.vector))},
          {"overrides", overrides}};
}

Result<Digest> read_digest(JsonObject& object, std::string_view key) {
  TRY_ASSIGN(const std::string text, object.get<std::string>(key));
  return to_digest(object.where(key), text);
}

Result<BoundFile> read_bound_file(JsonObject object) {
  BoundFile file;
  TRY_ASSIGN(file.file, object.get<std::string>("file"));
  TRY_ASSIGN(file.bytes, object.get<uint64_t>("bytes"));
  TRY_ASSIGN(file.sha256, read_digest(object, "sha256"));
  TRY(object.finish());
  return file;
}

Result<Recipe> read_recipe(JsonObject object) {
  Recipe recipe;
  TRY_ASSIGN(recipe.matrix, read_type(object, "matrix"));
  TRY_ASSIGN(recipe.table, read_type(object, "table"));
  TRY_ASSIGN(recipe.vector, read_type(object, "vector"));
  TRY_ASSIGN(JsonObject overrides, object.get<JsonObject>("overrides"));
  for (const std::string& tensor : overrides.keys()) {
    TRY_ASSIGN(recipe.overrides[tensor], read_type(overrides, tensor));
  }
  TRY(object.finish());
  return recipe;
}

std::string manifest_text(const Manifest& manifest) {
  Json tensors = Json::array();
  for (const TensorEntry& tensor : manifest.tensors) tensors.push_back(to_json(tensor));
  Json shards = Json::array();
  for (const Shard& shard : manifest.shards) shards.push_back(to_json(shard));
  return canonical_json(
      {{"schema", schema},
       {"schema_version", schema_version},
       {"layout_version", spec::layout_version},
       {"piece_bytes", piece_bytes},
       {"views", views_json(manifest)},
       {"attached_to", manifest.attached_to ? Json(manifest.attached_to->hex()) : Json(nullptr)},
       {"origin_sha256", manifest.origin.hex()},
       {"config", Json::parse(spec::canonical_config(manifest.config), nullptr, false)},
       {"recipe", to_json(manifest.recipe)},
       {"tensors", tensors},
       {"shards", shards},
       {"tokenizer", to_json(manifest.tokenizer)},
       {"tokenizer_source_sha256", manifest.tokenizer_source.hex()},
       {"chat_template", to_json(manifest.chat_template)},
       {"generation_config", to_json(manifest.generation_config)},
       {"input_bound", manifest.input_bound},
       {"context_bound", manifest.context_bound}});
}

Result<Manifest> read_manifest(std::string_view text) {
  const std::string file(manifest_file);
  Json json;
  TRY_ASSIGN(const JsonObject object, open_json_object(text, file, json));
  TRY_ASSIGN(Manifest manifest, read_fields(object));
  if (manifest_text(manifest) != text) {
    return fail(ErrorCode::malformed_artifact,
                "{}: not in its canonical form; export the artifact again", file);
  }
  return manifest;
}

}  // namespace tandem::artifact
